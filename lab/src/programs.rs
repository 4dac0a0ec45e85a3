//! Finds and identifies the programs of trials.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::LabError;
use crate::settings::Setting;

/// The name of this program.
const LAB: &str = "ringtap-lab";

/// The names of the programs that it measures.
const RINGTAP: &str = "ringtap";
const NDN: &str = "ringtap-ndn";
const OTHERS: [&str; 2] = [RINGTAP, NDN];

/// Paths of the programs of one revision. Other programs are searched in PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program `ringtap`.
    pub ringtap: PathBuf,
    /// The program `ringtap-ndn`.
    pub ndn: PathBuf,
    /// The program `ringtap-lab`.
    pub lab: PathBuf,
}

impl Programs {
    /// `lab`, and the others in the same folder.
    pub fn of(lab: PathBuf) -> Self {
        Self { ringtap: lab.with_file_name("ringtap"), ndn: lab.with_file_name("ringtap-ndn"), lab }
    }

    /// Identifies the lab and the others that `settings` run. An error if a program is missing, or if
    /// they are not of one build: commit, profile and compiler must be equal.
    pub fn builds(&self, settings: &[Setting]) -> Result<BTreeMap<String, Build>, LabError> {
        let mut builds = BTreeMap::new();
        for name in OTHERS {
            if settings.iter().any(|setting| setting.runs(name)) {
                builds.insert(name.to_owned(), self.build_of(name)?);
            }
        }
        builds.insert(LAB.to_owned(), self.build(LAB)?);
        Ok(builds)
    }

    /// Identifies the program `name`, which must be of the lab's build.
    pub fn build_of(&self, name: &str) -> Result<Build, LabError> {
        let (lab, other) = (self.build(LAB)?, self.build(name)?);
        if other.kind() != lab.kind() {
            return Err(LabError::Program {
                path: self.lab.with_file_name(name),
                reason: format!(
                    "is of {}, but {LAB} of {}: build all with 'cargo build --release --workspace --bins'",
                    other.kind(),
                    lab.kind()
                ),
            });
        }
        Ok(other)
    }

    fn build(&self, name: &str) -> Result<Build, LabError> {
        let file = self.file(name).map_err(LabError::Unavailable)?;
        Build::of(&file).map_err(|reason| LabError::Program { path: file, reason })
    }

    /// The programs in a folder; the files need not exist.
    pub(crate) fn within(folder: &Path) -> Self {
        Self::of(folder.join(LAB))
    }

    /// The file of the program `name`; an error if it is not installed.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, String> {
        let file = match name {
            RINGTAP => Some(self.ringtap.clone()),
            NDN => Some(self.ndn.clone()),
            LAB => Some(self.lab.clone()),
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
