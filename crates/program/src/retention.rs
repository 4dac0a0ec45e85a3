//! Removal of an output's old files.
//!
//! Invariants: a file is removed only if its name is one of the output's, it is a regular file of this user in the
//! output's folder or below it, and no process has its lock, as the writer of a file does. No symbolic link is followed.

use std::collections::BinaryHeap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

/// Most files that are removed in one pass over the folder, which bounds its memory.
const MOST: usize = 4096;

/// The unit of [`MetadataExt::blocks`].
const BLOCK: u64 = 512;

/// What remains of an output's finished files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long ago they were written last, at most.
    pub age: Option<Duration>,
    /// Their bytes together, at most; the latest remain.
    pub bytes: Option<u64>,
}

/// What was removed of an output's files.
#[derive(Debug, Default)]
pub struct Removed {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// A file that could not be removed.
    pub error: Option<io::Error>,
}

/// A file, by its path in the folder, in the order of age.
type Old = (SystemTime, PathBuf, u64);

/// The files of an output.
pub struct Own<'a> {
    /// The folder that they are in.
    pub folder: &'a Path,
    /// How many folders below it.
    pub depth: usize,
    /// Whether a path in the folder is that of one.
    pub is_own: &'a dyn Fn(&Path) -> bool,
}

impl Retention {
    /// Removes the oldest of an output's files, and folders that are empty then. `removes` gets the path of each file before.
    /// After an error of `removes`, nothing more is removed.
    pub fn apply(
        &self,
        own: &Own<'_>,
        now: SystemTime,
        mut removes: impl FnMut(&Path) -> io::Result<()>,
    ) -> Removed {
        let mut removed = Removed::default();
        if *self == Self::default() {
            return removed;
        }
        loop {
            let before = removed.files;
            let (oldest, mut total) = match oldest(own) {
                Ok(found) => found,
                Err(error) => {
                    removed.error = Some(error);
                    return removed;
                }
            };
            let found = oldest.len();
            for (modified, name, len) in oldest {
                // The time may lie ahead, if the clock was set back.
                let age = now.duration_since(modified).unwrap_or_default();
                let is_due = self.age.is_some_and(|most| age > most)
                    || self.bytes.is_some_and(|most| total > most);
                if !is_due {
                    return removed;
                }
                if let Err(error) = removes(&name) {
                    removed.error = Some(error);
                    return removed;
                }
                match remove(&own.folder.join(&name)) {
                    Ok(Some(_)) => {
                        remove_empty(own.folder, &name);
                        total = total.saturating_sub(len);
                        removed.files += 1;
                        removed.bytes += len;
                    }
                    Ok(None) => {}
                    Err(error) => removed.error = Some(error),
                }
            }
            if found < MOST || removed.files == before {
                return removed;
            }
        }
    }
}

/// The oldest files, and the bytes of all.
fn oldest(own: &Own<'_>) -> io::Result<(Vec<Old>, u64)> {
    let user = rustix::process::geteuid().as_raw();
    let (mut oldest, mut total) = (BinaryHeap::new(), 0);
    walk(own, |path, data| {
        let Ok(modified) = data.modified() else { return };
        if data.uid() != user {
            return;
        }
        total += data.len();
        oldest.push((modified, path, data.len()));
        if oldest.len() > MOST {
            oldest.pop();
        }
    })?;
    Ok((oldest.into_sorted_vec(), total))
}

/// Calls `found` with the path in its folder, and the metadata, of each regular file of an output.
///
/// # Errors
/// The folder cannot be read.
pub fn walk(own: &Own<'_>, mut found: impl FnMut(PathBuf, Metadata)) -> io::Result<()> {
    let root = if own.folder == Path::new("") { Path::new(".") } else { own.folder };
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if folder == Path::new("") => return Err(error),
            // Removed meanwhile, or of another user.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            // Of the entry itself, also if it is a link.
            let Ok(data) = entry.metadata() else { continue };
            if data.is_dir() && path.components().count() <= own.depth {
                folders.push(path);
            } else if data.is_file() && (own.is_own)(&path) {
                found(path, data);
            }
        }
    }
    Ok(())
}

/// Removes the folders of a file below `root` that are empty.
fn remove_empty(root: &Path, file: &Path) {
    for folder in file.ancestors().skip(1).take_while(|folder| *folder != Path::new("")) {
        if fs::remove_dir(root.join(folder)).is_err() {
            return;
        }
    }
}

/// The oldest files of an output, at most 4096, with their times, in the order of age.
///
/// # Errors
/// The folder cannot be read.
pub fn oldest_of(own: &Own<'_>) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let (oldest, _) = oldest(own)?;
    Ok(oldest.into_iter().map(|(modified, path, _)| (modified, path)).collect())
}

/// Removes a file of an output, by its path in the folder, and counts it by its bytes on the disk.
pub fn remove_one(folder: &Path, path: &Path, removed: &mut Removed) {
    match remove(&folder.join(path)) {
        Ok(Some(of_disk)) => {
            remove_empty(folder, path);
            removed.files += 1;
            removed.bytes += of_disk;
        }
        Ok(None) => {}
        // Another output or process removed it.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => removed.error = Some(error),
    }
}

/// Removes a file, unless a process writes it. Returns the bytes of the disk that are free then.
fn remove(path: &Path) -> io::Result<Option<u64>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    if !data.is_file() || file.try_lock_shared().is_err() {
        return Ok(None);
    }
    let of_disk = if data.nlink() == 1 { data.blocks() * BLOCK } else { 0 };
    fs::remove_file(path).map(|()| Some(of_disk))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::pattern::Pattern;

    const DAY: Duration = Duration::from_secs(86_400);

    /// A folder with files of ten bytes, the second one day younger than the first and so on, and the time of the last.
    fn folder_of(names: &[&str]) -> (tempfile::TempDir, SystemTime) {
        let folder = tempfile::tempdir().unwrap();
        let mut at = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        for name in names {
            at += DAY;
            let path = folder.path().join(name);
            fs::write(&path, "123456789\n").unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        }
        (folder, at)
    }

    fn left(folder: &tempfile::TempDir) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn own<'a>(pattern: &'a Pattern, is_own: &'a dyn Fn(&Path) -> bool) -> Own<'a> {
        Own { folder: pattern.root(), depth: pattern.depth(), is_own }
    }

    fn apply(keep: Retention, folder: &tempfile::TempDir, now: SystemTime) -> Removed {
        let pattern = Pattern::new(&folder.path().join("f-%d.json")).unwrap();
        keep.apply(&own(&pattern, &|name| pattern.names(name)), now, |_| Ok(()))
    }

    #[test]
    fn the_oldest_files_of_the_pattern_are_removed_and_nothing_else() {
        let names = ["f-09.json", "f-01.json", "g-01.json", "f-01.1.json", "f-x.json", "f-02.json"];
        let age = Retention { age: Some(DAY * 3), bytes: None };
        let (folder, last) = folder_of(&names);
        let removed = apply(age, &folder, last);
        assert_eq!((removed.files, removed.bytes), (2, 20));
        assert_eq!(left(&folder), ["f-01.1.json", "f-02.json", "f-x.json", "g-01.json"]);
        assert_eq!(apply(age, &folder, last).files, 0);

        let (folder, last) = folder_of(&names);
        let size = Retention { age: None, bytes: Some(25) };
        assert_eq!(apply(size, &folder, last).files, 2);
        assert_eq!(left(&folder), ["f-01.1.json", "f-02.json", "f-x.json", "g-01.json"]);
        assert_eq!(apply(Retention::default(), &folder, last + DAY * 99).files, 0);
        assert_eq!(apply(Retention { age: None, bytes: Some(0) }, &folder, last).files, 2);
    }

    #[test]
    fn a_clock_that_was_set_back_removes_nothing() {
        let (folder, last) = folder_of(&["f-01.json", "f-02.json"]);
        let age = Retention { age: Some(DAY), bytes: None };
        assert_eq!(apply(age, &folder, last - DAY * 999).files, 0);
        assert_eq!(left(&folder).len(), 2);
    }

    #[test]
    fn files_that_are_written_and_links_and_their_targets_stay() {
        let (folder, last) = folder_of(&["f-01.json", "f-02.json", "victim"]);
        symlink("victim", folder.path().join("f-03.json")).unwrap();
        fs::create_dir(folder.path().join("f-04.json")).unwrap();
        let written = File::open(folder.path().join("f-01.json")).unwrap();
        written.try_lock().unwrap();
        let removed = apply(Retention { age: Some(DAY), bytes: Some(0) }, &folder, last + DAY * 9);
        assert_eq!((removed.files, removed.error.is_none()), (1, true));
        assert_eq!(left(&folder), ["f-01.json", "f-03.json", "f-04.json", "victim"]);
    }

    #[test]
    fn files_in_folders_by_date_are_removed_with_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["2026/01/01.json", "2026/01/02.json", "2026/02/01.json", "2026/02/other"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "123456789\n").unwrap();
        }
        symlink(folder.path().join("2026"), folder.path().join("2027")).unwrap();
        let pattern = Pattern::new(&folder.path().join("%Y/%m/%d.json")).unwrap();
        let is_own = |name: &Path| pattern.names(name);
        let mut removed = Vec::new();
        let keep = Retention { age: None, bytes: Some(0) };
        let now = SystemTime::UNIX_EPOCH;
        let all = keep.apply(&own(&pattern, &is_own), now, |path| {
            removed.push(path.to_owned());
            Ok(())
        });
        removed.sort();
        let names = ["2026/01/01.json", "2026/01/02.json", "2026/02/01.json"];
        assert_eq!((all.files, removed), (3, names.map(PathBuf::from).to_vec()));
        assert!(!folder.path().join("2026/01").exists());
        assert!(folder.path().join("2026/02/other").exists());
    }

    #[test]
    fn more_files_than_a_pass_removes_are_removed_too() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST + 9 {
            fs::write(folder.path().join(format!("f-01.{number}.json")), "x").unwrap();
        }
        let removed =
            apply(Retention { age: None, bytes: Some(3) }, &folder, SystemTime::UNIX_EPOCH);
        assert_eq!(removed.files, MOST as u64 + 6);
    }
}
