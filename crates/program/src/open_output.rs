//! Files that have their names while they are written, so that other programs can follow them.
//!
//! Invariants: a file is created, never opened or replaced, and no symbolic link is followed; its writer has its lock.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};
use tempfile::TempPath;

use crate::atomic_file::Target;
use crate::names::{create_folders, folder, names, persist};

/// A new file, which is appended to.
pub struct OpenOutput {
    file: File,
    path: PathBuf,
}

impl OpenOutput {
    /// Checks that files of this name can be created.
    ///
    /// # Errors
    /// It is not a file; that of the system for the folder.
    pub fn check(path: &Path) -> io::Result<()> {
        if Target::of(path)? != Target::File {
            return Err(io::Error::other("it is not a file: omit ,open"));
        }
        Ok(rustix::fs::access(folder(path), Access::WRITE_OK | Access::EXEC_OK)?)
    }

    /// Creates a file with the name `path` or, if that exists, the next free one.
    ///
    /// # Errors
    /// That of the system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        create_folders(folder(path))?;
        for path in names(path) {
            let mut options = File::options();
            match options.append(true).create_new(true).custom_flags(flags).open(&path) {
                Ok(file) => {
                    // Some file systems have no locks.
                    let _ = file.try_lock();
                    return Ok(Self { file, path });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("numbers do not end")
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives up the name, if it is still the file's: the file gets the next free one.
    ///
    /// # Errors
    /// That of the system.
    pub fn move_away(&self) -> io::Result<()> {
        move_away(&self.file, &self.path)
    }
}

/// Gives an open file the next free name after `path`, if `path` is still its name.
///
/// # Errors
/// That of the system.
pub fn move_away(file: &File, path: &Path) -> io::Result<()> {
    let (own, named) = (file.metadata()?, fs::symlink_metadata(path));
    let has_name = named.is_ok_and(|data| (data.dev(), data.ino()) == (own.dev(), own.ino()));
    if !has_name {
        return Ok(());
    }
    let mut from = TempPath::try_from_path(path.to_owned())?;
    from.disable_cleanup(true);
    persist(from, path).map(drop).map_err(|mut failed| {
        failed.path.disable_cleanup(true);
        failed.error
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_that_exists_is_written_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("f.json"), "old").unwrap();
        symlink("victim", path("f.1.json")).unwrap();
        let mut own = OpenOutput::create(&path("f.json")).unwrap();
        own.file().write_all(b"new").unwrap();
        assert_eq!(own.path(), path("f.2.json"));
        assert!(!path("victim").exists());
        fs::write(path("f.2.1.json"), "other").unwrap();
        own.move_away().unwrap();
        assert!(!path("f.2.json").exists());
        let read = |name: &str| fs::read_to_string(path(name)).unwrap();
        assert_eq!(
            [read("f.json"), read("f.2.1.json"), read("f.2.2.json")],
            ["old", "other", "new"]
        );
        // Another program has moved it, and something else has its name.
        fs::write(path("f.2.json"), "foreign").unwrap();
        own.move_away().unwrap();
        assert_eq!(read("f.2.json"), "foreign");
    }

    #[test]
    fn only_files_can_be_followed() {
        assert!(OpenOutput::check(Path::new("/dev/null")).is_err());
        assert!(OpenOutput::check(Path::new("/no/such/folder/f")).is_err());
    }
}
