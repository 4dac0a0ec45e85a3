//! Removal of an output's old files.
//!
//! Invariants: a file is removed only if its name is one of the output's, it is a regular file of this user in the
//! output's folder, and no process has its lock, as the writer of a file does. No symbolic link is followed.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use crate::names::folder;

/// Most files that are removed in one pass over the folder, which bounds its memory.
const MOST: usize = 4096;

/// What remains of an output's finished files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long ago they were written last, at most.
    pub age: Option<Duration>,
    /// Their bytes together, at most; the latest remain.
    pub bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Default)]
pub struct Removed {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// A file that could not be removed.
    pub error: Option<io::Error>,
}

/// A file, in the order of age.
type Old = (SystemTime, OsString, u64);

impl Retention {
    /// Removes the oldest files beside `path` for which `is_own` is true.
    pub fn apply(&self, path: &Path, is_own: impl Fn(&OsStr) -> bool, now: SystemTime) -> Removed {
        let mut removed = Removed::default();
        if *self == Self::default() {
            return removed;
        }
        loop {
            let before = removed.files;
            let (oldest, mut total) = match oldest(folder(path), &is_own) {
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
                match remove(&folder(path).join(name)) {
                    Ok(true) => {
                        total = total.saturating_sub(len);
                        removed.files += 1;
                        removed.bytes += len;
                    }
                    Ok(false) => {}
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
fn oldest(folder: &Path, is_own: &impl Fn(&OsStr) -> bool) -> io::Result<(Vec<Old>, u64)> {
    let user = rustix::process::geteuid().as_raw();
    let (mut oldest, mut total) = (BinaryHeap::new(), 0);
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        if !is_own(&name) {
            continue;
        }
        // Of the entry itself, also if it is a link.
        let Ok(data) = entry.metadata() else { continue };
        let Ok(modified) = data.modified() else { continue };
        if !data.is_file() || data.uid() != user {
            continue;
        }
        total += data.len();
        oldest.push((modified, name, data.len()));
        if oldest.len() > MOST {
            oldest.pop();
        }
    }
    Ok((oldest.into_sorted_vec(), total))
}

/// Removes a file, unless a process writes it.
fn remove(path: &Path) -> io::Result<bool> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() || file.try_lock_shared().is_err() {
        return Ok(false);
    }
    fs::remove_file(path).map(|()| true)
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

    fn apply(keep: Retention, folder: &tempfile::TempDir, now: SystemTime) -> Removed {
        let path = folder.path().join("f-%d.json");
        let pattern = Pattern::new(&path).unwrap();
        keep.apply(&path, |name| pattern.names(name), now)
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
