//! Where the programs of trials are.

use std::path::{Path, PathBuf};

/// The two programs of one revision. Others are looked for where programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The product.
    pub ringtap: PathBuf,
    /// The lab.
    pub lab: PathBuf,
}

impl Programs {
    /// `lab`, and the ringtap beside it, else that which the shell would find.
    pub fn of(lab: PathBuf) -> Self {
        let beside = lab.with_file_name("ringtap");
        let ringtap = Some(beside.clone()).filter(|file| file.is_file());
        Self { ringtap: ringtap.or_else(|| find("ringtap")).unwrap_or(beside), lab }
    }

    /// Those in a folder, whether they are there or not.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { ringtap: folder.join("ringtap"), lab: folder.join("ringtap-lab") }
    }

    /// The file of the program that a command begins with; an error says that there is none.
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
    // Where Debian puts what is not for every user.
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}
