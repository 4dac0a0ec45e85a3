//! Finds and identifies the programs of trials.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::LabError;
use crate::settings::Setting;

/// Paths of the two programs of one revision. Other programs are searched in PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program `ringtap`.
    pub ringtap: PathBuf,
    /// The program `ringtap-lab`.
    pub lab: PathBuf,
}

impl Programs {
    /// `lab`, and the ringtap in the same folder.
    pub fn of(lab: PathBuf) -> Self {
        Self { ringtap: lab.with_file_name("ringtap"), lab }
    }

    /// Identifies the lab and, if `settings` run it, `ringtap`. An error if a program is missing, or if
    /// they are not of one build: commit, profile and compiler must be equal.
    pub fn builds(&self, settings: &[Setting]) -> Result<BTreeMap<String, Build>, LabError> {
        let of = |name: &str| {
            let file = self.file(name).map_err(LabError::Unavailable)?;
            Build::of(&file).map_err(|reason| LabError::Program { path: file, reason })
        };
        let lab = of("ringtap-lab")?;
        let mut builds = BTreeMap::new();
        if settings.iter().any(|setting| setting.program() == "ringtap") {
            let ringtap = of("ringtap")?;
            if ringtap.kind() != lab.kind() {
                return Err(LabError::Program {
                    path: self.ringtap.clone(),
                    reason: format!(
                        "is of {}, but ringtap-lab of {}: build both with 'cargo build --release -p ringtap \
                         -p ringtap-lab'",
                        ringtap.kind(),
                        lab.kind()
                    ),
                });
            }
            builds.insert("ringtap".to_owned(), ringtap);
        }
        builds.insert("ringtap-lab".to_owned(), lab);
        Ok(builds)
    }

    /// The programs in a folder; the files need not exist.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { ringtap: folder.join("ringtap"), lab: folder.join("ringtap-lab") }
    }

    /// The file of the program `name`; an error if it is not installed.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, String> {
        let file = match name {
            "ringtap" => Some(self.ringtap.clone()),
            "ringtap-lab" => Some(self.lab.clone()),
            other => find(other),
        };
        file.filter(|file| file.is_file()).ok_or_else(|| format!("{name} is not installed"))
    }
}

/// What a program is built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of the program.
    pub version: String,
    /// Commit, with `-changed` if tracked files differed from it.
    pub commit: String,
    /// Profile of cargo.
    pub profile: String,
    /// Enabled features, separated by commas.
    pub features: String,
    /// Version of the compiler.
    pub compiler: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

impl Build {
    /// Asks a program of this project for its build, and hashes its file.
    fn of(file: &Path) -> Result<Self, String> {
        let output = Command::new(file).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let version = lines.next().map(|(_, version)| version.to_owned());
        let known: BTreeMap<_, _> = lines.collect();
        let value = |key: &str| {
            let value = known.get(key).filter(|_| output.status.success());
            value.map(|value| (*value).to_owned()).ok_or_else(|| {
                format!("--version does not print its {key}: build it from this revision")
            })
        };
        Ok(Self {
            commit: value("commit")?,
            profile: value("profile")?,
            features: value("features")?,
            compiler: value("compiler")?,
            version: version.unwrap_or_default(),
            sha256: sha256(file)?,
        })
    }

    /// What programs that are measured together have in common.
    fn kind(&self) -> String {
        format!("commit {}, profile {}, {}", self.commit, self.profile, self.compiler)
    }
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    // Debian installs administrative programs here; the PATH of ordinary users lacks these folders.
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}
