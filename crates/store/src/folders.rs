//! The folders of a store: creating them, removing them again if the run does not start, and the right to use them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::layout::{Kind, Layout, MANIFEST};
use crate::manifest::files;

/// The folders that a start has created. Those that are empty are removed when this is dropped, unless they are
/// [kept](Self::keep).
#[derive(Debug, Default)]
pub struct Created {
    /// The first one first.
    folders: Vec<PathBuf>,
    /// The folder of manifests. The lock is shared by all processes that start.
    lock: Option<File>,
}

impl Created {
    /// The run has started.
    pub fn keep(mut self) {
        self.folders.clear();
    }

    /// The folder that the first of them is in, from which it is removed.
    pub fn parent(&self) -> Option<&Path> {
        self.folders.first().map(|first| parent(first))
    }

    /// Creates a folder, which did not exist, for a user.
    fn create(&mut self, folder: PathBuf, owner: Option<(u32, u32)>) -> io::Result<()> {
        match fs::create_dir(&folder) {
            // By another process, meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {
                return Ok(());
            }
            created => created?,
        }
        let owned = owner.map_or(Ok(()), |(user, group)| lchown(&folder, Some(user), Some(group)));
        self.folders.push(folder);
        owned
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        // Another process that starts may need them.
        let locked = self.lock.as_ref().map(File::try_lock);
        if matches!(locked, Some(Err(TryLockError::WouldBlock))) {
            return;
        }
        for folder in self.folders.iter().rev() {
            // What has something stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Creates the folders of a store that do not exist, for a user.
///
/// # Errors
/// That of the system; a folder of the store is a symbolic link. Then nothing was created.
pub fn create(root: &Path, owner: Option<(u32, u32)>) -> io::Result<Created> {
    let mut created = Created::default();
    if !root.is_dir() {
        for folder in missing(root) {
            created.create(folder, owner)?;
        }
    }
    for folder in folders(root) {
        match fs::symlink_metadata(&folder) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => {
                let text = format!("{} is not a folder, or is a symbolic link", folder.display());
                return Err(io::Error::other(text));
            }
            Err(_) => created.create(folder.clone(), owner)?,
        }
        if created.lock.is_none() {
            let folder = File::open(folder)?;
            // Some file systems have no locks.
            let _ = folder.try_lock_shared();
            created.lock = Some(folder);
        }
    }
    File::open(root)?.sync_all()?;
    Ok(created)
}

/// The folders in that of a store, the one of manifests first.
fn folders(root: &Path) -> impl Iterator<Item = PathBuf> {
    let names = [MANIFEST].into_iter().chain(Kind::ALL.map(Kind::folder));
    names.map(move |name| root.join(name))
}

/// The folders of a path that do not exist, the first one first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = path
        .ancestors()
        .take_while(|folder| *folder != Path::new("") && fs::symlink_metadata(folder).is_err())
        .map(Path::to_owned)
        .collect();
    all.reverse();
    all
}

/// The folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// A folder or file of a store that the process has no right to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Its path.
    pub path: PathBuf,
    /// Whether it cannot be written; otherwise it cannot be read.
    pub is_write: bool,
}

/// What the process, with the rights that it has now, may not use of a store: its folder, those in it, the lock and the
/// last manifest of the probe. Of folders that do not exist, that in which they would be.
pub fn denied(layout: &Layout) -> Option<Denied> {
    let root = &layout.root;
    let exists = |path: &&Path| fs::symlink_metadata(path).is_ok();
    let nearest = |folder: &Path| {
        let found = folder.ancestors().find(exists).map(Path::to_owned);
        found.unwrap_or_else(|| ".".into())
    };
    let all = [root.clone()].into_iter().chain(folders(root)).map(|folder| nearest(&folder));
    let rights =
        |path: PathBuf, write| [(path.clone(), write, true), (path, Access::READ_OK, false)];
    let folders = all.flat_map(|path| rights(path, Access::WRITE_OK | Access::EXEC_OK));
    let last = files(layout).ok().and_then(|files| files.into_iter().next_back());
    let files = last.map(|(_, path)| path).into_iter().chain([layout.lock()]);
    let files = files.filter(|path| exists(&&**path));
    let files = files.flat_map(|path| rights(path, Access::WRITE_OK));
    let is_denied = |(path, access, _): &(PathBuf, Access, bool)| {
        accessat(CWD, path, *access, AtFlags::EACCESS) == Err(Errno::ACCESS)
    };
    let (path, _, is_write) = folders.chain(files).find(is_denied)?;
    Some(Denied { path, is_write })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn folders_are_created_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/b");
        let user = rustix::process::geteuid().as_raw();
        let own = (user, rustix::process::getegid().as_raw());
        create(&root, Some(own)).unwrap().keep();
        create(&root, Some(own)).unwrap().keep();
        assert_eq!(root.join("flows").metadata().unwrap().uid(), user);
        let victim = folder.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::remove_dir(root.join("alerts")).unwrap();
        symlink(&victim, root.join("alerts")).unwrap();
        let error = create(&root, Some(own)).unwrap_err().to_string();
        assert!(error.contains("alerts is not a folder, or is a symbolic link"), "{error}");
    }

    #[test]
    fn what_a_start_has_created_is_removed_if_it_is_empty_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (above, root) = (folder.path().join("a"), folder.path().join("a/b"));
        let created = create(&root, None).unwrap();
        assert_eq!(created.parent(), Some(folder.path()));
        drop(created);
        assert!(!above.exists());
        // What was there stays, and what has something now.
        fs::create_dir_all(root.join("flows")).unwrap();
        let created = create(&root, None).unwrap();
        fs::write(root.join("alerts/file"), "").unwrap();
        drop(created);
        let left: Vec<_> = folders(&root).filter(|folder| folder.exists()).collect();
        assert_eq!(left, [root.join("flows"), root.join("alerts")]);
        // Another process that starts needs them.
        let (first, second) = (create(&root, None).unwrap(), create(&root, None).unwrap());
        drop(first);
        assert!(folders(&root).all(|folder| folder.exists()));
        drop(second);
        create(&root, None).unwrap().keep();
        assert!(folders(&root).all(|folder| folder.exists()));
        fs::write(above.join("file"), "").unwrap();
        assert!(create(&above.join("file/store"), None).is_err());
    }
}
