//! Finds the programs of trials.

use std::path::{Path, PathBuf};

/// Paths of the two programs of one revision. Other programs are searched in PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program `ringtap`.
    pub ringtap: PathBuf,
    /// The program `ringtap-lab`.
    pub lab: PathBuf,
}

impl Programs {
    /// `lab`, and the ringtap in the same folder or, if there is none, in PATH.
    pub fn of(lab: PathBuf) -> Self {
        let beside = lab.with_file_name("ringtap");
        let ringtap = Some(beside.clone()).filter(|file| file.is_file());
        Self { ringtap: ringtap.or_else(|| find("ringtap")).unwrap_or(beside), lab }
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

/// Whether a program is one of [`Programs`].
pub(crate) fn is_own(name: &str) -> bool {
    matches!(name, "ringtap" | "ringtap-lab")
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    // Debian installs administrative programs here; the PATH of ordinary users lacks these folders.
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}
