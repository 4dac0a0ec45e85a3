//! Temporary files of outputs that their process did not finish: it was killed, or the machine stopped.
//!
//! A part that a process writes is locked. A part without a lock is left over: [`finish`] gives it the next free
//! name of its output, up to its last whole record, if its format allows that; otherwise it is reported when the name is used again.
//! Only files of this user with a single name are touched, so no other file can be put in their place.
//!
//! ```text
//! .flows.json.4711-a8F3kQz01b.part ─ locked ──▶ an error: process 4711 writes flows.json
//!                                  ─ unlocked ▶ cut to the last line ─▶ flows.json, or flows.1.json
//! ```

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringtap_terminal::console::print_message;
use rustix::fs::OFlags;
use tempfile::TempPath;

use crate::names::{REWRITTEN, SUFFIX, folder, persist, prefix};

/// How often the lock of a folder is tried, and the pause between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// A part of an output.
struct Part {
    path: PathBuf,
    pid: u32,
}

/// The state of a part.
enum State {
    /// A process writes it.
    Written,
    /// Its process ended. The open file holds the lock.
    Left(File),
    /// The file belongs to another user, or is something else.
    Foreign,
}

/// What was made of a part.
#[derive(Debug)]
pub struct Completed {
    /// The file.
    pub path: PathBuf,
    /// Bytes at its end that were no whole record.
    pub cut: u64,
}

/// Checks that no process writes an output of this name, and reports what ended ones left. Until the returned
/// guard is dropped, no other process passes this check in the same folder.
///
/// # Errors
/// A process writes it.
pub(crate) fn check(path: &Path) -> io::Result<Option<File>> {
    let guard = guard(folder(path));
    for part in parts(path) {
        match part.state() {
            State::Written => {
                return Err(io::Error::other(format!(
                    "process {} is writing it: use another name, or end that process",
                    part.pid
                )));
            }
            // Of a process that ended before it wrote anything.
            State::Left(file) if file.metadata().is_ok_and(|data| data.len() == 0) => {
                let _ = fs::remove_file(&part.path);
            }
            State::Left(_) => print_message(
                "warning",
                &format!(
                    "{}: incomplete, left by process {}, which ended early: remove it",
                    part.path.display(),
                    part.pid
                ),
            ),
            State::Foreign => {}
        }
    }
    Ok(guard)
}

/// Finishes the parts of the output `path` that their processes left: they get their last whole record as their end,
/// which `cut` finds, and the next free name after that which `name` makes of the time when they were written last.
/// `cut` returns the number of bytes of whole records. Returns the files that were completed.
pub fn finish(
    path: &Path,
    cut: impl Fn(&mut File) -> io::Result<u64>,
    name: impl Fn(SystemTime) -> PathBuf,
) -> Vec<Completed> {
    let _guard = guard(folder(path));
    let mut all = Vec::new();
    // The parts that these were to replace are there.
    for rewritten in named(path, REWRITTEN) {
        if let State::Left(_) = rewritten.state() {
            let _ = fs::remove_file(&rewritten.path);
        }
    }
    for part in parts(path) {
        let State::Left(file) = part.state() else { continue };
        let shown = part.path.display();
        match part.finish(file, &cut, &name) {
            Ok((text, completed)) => {
                print_message("warning", &format!("{shown}: {text}"));
                all.extend(completed);
            }
            Err(error) => {
                print_message("warning", &format!("{shown}: left by an earlier run: {error}"));
            }
        }
    }
    all
}

/// The lock of a folder, if it can be had soon.
pub(crate) fn guard(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    for _ in 0..TRIES {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// The parts of the output `path`.
fn parts(path: &Path) -> Vec<Part> {
    named(path, SUFFIX)
}

/// The temporary files of the output `path` whose names have this end.
fn named(path: &Path, suffix: &str) -> Vec<Part> {
    let prefix = prefix(path);
    let Ok(entries) = fs::read_dir(folder(path)) else { return Vec::new() };
    let mut all: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let pid = pid(&entry.file_name(), &prefix, suffix)?;
            Some(Part { path: folder(path).join(entry.file_name()), pid })
        })
        .collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

/// The process in the name of a part; `None` if it is no part of this output.
fn pid(name: &OsStr, prefix: &OsStr, suffix: &str) -> Option<u32> {
    let middle = name.as_bytes().strip_prefix(prefix.as_bytes())?;
    let middle = str::from_utf8(middle.strip_suffix(suffix.as_bytes())?).ok()?;
    let (pid, random) = middle.split_once('-')?;
    let is_random = random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    pid.parse().ok().filter(|_| is_random)
}

impl Part {
    fn state(&self) -> State {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = File::options();
        let opened = options.read(true).write(true).custom_flags(flags).open(&self.path);
        let Ok(file) = opened else { return State::Foreign };
        let Ok(data) = file.metadata() else { return State::Foreign };
        match file.try_lock() {
            _ if !data.is_file() || data.nlink() != 1 => State::Foreign,
            _ if data.uid() != rustix::process::geteuid().as_raw() => State::Foreign,
            Ok(()) => State::Left(file),
            Err(TryLockError::WouldBlock) => State::Written,
            Err(TryLockError::Error(_)) => State::Foreign,
        }
    }

    /// Cuts the part to its last whole record and renames it. Returns what was done.
    fn finish(
        &self,
        mut file: File,
        cut: impl Fn(&mut File) -> io::Result<u64>,
        name: impl Fn(SystemTime) -> PathBuf,
    ) -> io::Result<(String, Option<Completed>)> {
        let data = file.metadata()?;
        let (before, wanted) = (data.len(), name(data.modified()?));
        let end = cut(&mut file)?;
        let by = format!("left by process {}, which ended early", self.pid);
        if end == 0 {
            fs::remove_file(&self.path)?;
            return Ok((format!("{by}; removed, because it had no whole record"), None));
        }
        file.sync_all()?;
        let mut part = TempPath::try_from_path(self.path.clone())?;
        part.disable_cleanup(true);
        let path = persist(part, &wanted).map_err(|failed| {
            let mut part = failed.path;
            part.disable_cleanup(true);
            failed.error
        })?;
        let cut = before.saturating_sub(end);
        let lost = match cut {
            0 => String::new(),
            lost => format!(" without its last {lost} bytes, an incomplete record"),
        };
        let text = format!("{by}; renamed to {}{lost}", path.display());
        Ok((text, Some(Completed { path, cut })))
    }
}
