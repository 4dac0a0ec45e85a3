//! A file that is written under a temporary name and renamed when complete, so that no reader sees
//! a partial file. Pipes and devices are written directly, and `-` is stdout.
//!
//! Invariants: a file opened by [`AtomicFile::begin`] is not renamed after a failed write (a caller of
//! [`AtomicFile::begin_file`] must ensure that itself). No file is replaced but the first, with
//! [`Existing::Replace`]. A temporary name is new and random, no symbolic link is followed, and its file is
//! locked until it is renamed: a second process finds the lock, and a part without a lock is left over.
//!
//! ```text
//! .flows.json.PID-RANDOM.part ── complete ─▶ flows.json ── next file: .flows.json.PID-RANDOM.part ─▶ flows.1.json
//! ```

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ringtap_terminal::console::note;
use rustix::io::Errno;
use tempfile::{PathPersistError, TempPath};

use crate::names::{REWRITTEN, SUFFIX, folder, persist, prefix};
use crate::{leftovers, named_pipe};

/// Random characters in a temporary name.
const RANDOM: usize = 10;

/// What becomes of a file that already has the name of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The command does not start.
    Refuse,
    /// The output gets the next free name.
    Next,
    /// The output replaces it.
    Replace,
}

impl Existing {
    /// A live run cannot be repeated, and a service manager restarts it, so it takes the next free name.
    pub fn of(force: bool, is_live: bool) -> Self {
        match (force, is_live) {
            (true, _) => Self::Replace,
            (false, true) => Self::Next,
            (false, false) => Self::Refuse,
        }
    }
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    /// Written directly: a pipe or a device, or an open file by its number.
    Direct,
    /// A regular file, or none yet.
    File,
}

impl Target {
    /// # Errors
    /// A device that must not be written, or a symbolic link to anything but a file.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
        if STDOUT.iter().any(|name| path.as_os_str() == *name) {
            return Ok(Self::Stdout);
        }
        if is_number(path) {
            return Ok(Self::Direct);
        }
        let Ok(data) = fs::metadata(path) else { return Ok(Self::File) };
        if data.is_file() {
            return Ok(Self::File);
        }
        let is_link = fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        if is_link && !path.starts_with("/dev") {
            return Err(io::Error::other(
                "a symbolic link to a device, a pipe or a folder is not followed: use its own name",
            ));
        }
        if data.file_type().is_block_device() {
            return Err(io::Error::other("it is a block device: use a file"));
        }
        Ok(Self::Direct)
    }
}

/// The error of the system, without the temporary name, which is of no use to people.
fn without_path(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound => Errno::NOENT.into(),
        ErrorKind::PermissionDenied => Errno::ACCESS.into(),
        ErrorKind::NotADirectory => Errno::NOTDIR.into(),
        ErrorKind::ReadOnlyFilesystem => Errno::ROFS.into(),
        ErrorKind::StorageFull => Errno::NOSPC.into(),
        _ => error,
    }
}

/// Whether the path names an open file of this process by its number.
fn is_number(path: &Path) -> bool {
    path == Path::new("/dev/stderr")
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// An output file, and its successors under the same name.
pub struct AtomicFile {
    path: PathBuf,
    /// The name of the current file, if it is not the path. It replaces none.
    name: Option<PathBuf>,
    existing: Existing,
    part: Part,
    /// The current file, if it is regular. It holds the lock.
    file: Option<File>,
    /// The file was created to hold the lock, and not begun yet.
    claimed: bool,
    /// Set when a write to the current file fails.
    failed: Arc<AtomicBool>,
    /// Number of files finished under this name.
    finished: usize,
    /// The name of the last one.
    last: Option<PathBuf>,
    /// The temporary file remains, because it is complete and cannot be renamed, or on request.
    keep: bool,
}

/// The path of the temporary file, while one exists.
#[derive(Clone, Default)]
pub struct Part(Arc<Mutex<Option<TempPath>>>);

impl Part {
    /// Whether its file may still be written.
    pub fn is_open(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl AtomicFile {
    /// A file that is not begun yet.
    pub fn new(path: PathBuf, existing: Existing) -> Self {
        Self {
            path,
            name: None,
            existing,
            part: Part::default(),
            file: None,
            claimed: false,
            failed: Arc::default(),
            finished: 0,
            last: None,
            keep: false,
        }
    }

    /// Like [`new`](Self::new); a regular file is created, so that no other process takes the name.
    ///
    /// # Errors
    /// Another process writes a file of this name; the file cannot be created.
    pub fn claim(path: PathBuf, existing: Existing) -> io::Result<Self> {
        let mut file = Self::new(path, existing);
        if Target::of(&file.path)? == Target::File {
            let _guard = leftovers::check(&file.path)?;
            file.create()?;
            file.claimed = true;
        }
        Ok(file)
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the file that was finished last.
    pub fn last(&self) -> Option<&Path> {
        self.last.as_deref()
    }

    /// The temporary file remains if it is not finished, for the next process to complete it.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Sets the name of the current file, in the folder of the path or below it.
    pub fn set_name(&mut self, name: PathBuf) {
        self.name = Some(name);
    }

    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(Target::of(&self.path), Ok(Target::Stdout))
    }

    /// The temporary file, to be removed when the program exits early.
    pub fn part(&self) -> Part {
        self.part.clone()
    }

    /// Opens the first file, or the next one after a regular file was finished.
    pub fn begin(&mut self) -> io::Result<Box<dyn Write + Send>> {
        if self.is_stdout() {
            return Ok(Box::new(io::stdout()));
        }
        let file = self.begin_file()?;
        if !self.is_regular() {
            return Ok(Box::new(file));
        }
        self.failed = Arc::default();
        Ok(Box::new(Checked { file, failed: Arc::clone(&self.failed) }))
    }

    /// Like [`begin`](Self::begin), but returns the file itself; stdout is not buffered.
    pub fn begin_file(&mut self) -> io::Result<File> {
        match Target::of(&self.path)? {
            Target::Stdout => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            // Appended, because a file that was opened by the caller may have contents.
            Target::Direct if is_number(&self.path) => {
                File::options().append(true).open(&self.path)
            }
            Target::Direct => named_pipe::open(&self.path),
            Target::File => {
                if !std::mem::take(&mut self.claimed) {
                    self.create()?;
                }
                let file = self.file.as_ref().ok_or(ErrorKind::NotFound)?;
                file.try_clone()
            }
        }
    }

    /// Like [`finish`](Self::finish), for an output that goes on: the next temporary file is created before this one is
    /// renamed, so that at no time another process finds the name free.
    pub fn finish_and_claim(&mut self) -> io::Result<bool> {
        // A process that looks for parts meanwhile could miss both.
        let _guard = leftovers::guard(folder(&self.path));
        // If this fails, the next file is created when there is something to write.
        let next = self.temporary();
        let finished = self.finish()?;
        if let (Ok((file, path)), true) = (next, finished) {
            self.hold(file, path);
            self.claimed = true;
        }
        Ok(finished)
    }

    /// Creates the temporary file.
    fn create(&mut self) -> io::Result<()> {
        let (file, path) = self.temporary()?;
        self.hold(file, path);
        Ok(())
    }

    fn hold(&mut self, file: File, path: TempPath) {
        self.file = Some(file);
        *self.part.lock() = Some(path);
    }

    /// A new temporary file, with the lock.
    fn temporary(&self) -> io::Result<(File, TempPath)> {
        self.create_temporary(SUFFIX)
    }

    fn create_temporary(&self, suffix: &str) -> io::Result<(File, TempPath)> {
        let mut name = prefix(&self.path);
        name.push(format!("{}-", std::process::id()));
        let part = tempfile::Builder::new()
            .prefix(&name)
            .suffix(suffix)
            .rand_bytes(RANDOM)
            // As of any new file; the process's mask removes rights.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder(&self.path))
            .map_err(without_path)?;
        let (file, path) = part.into_parts();
        // Some file systems have no locks.
        let _ = file.try_lock();
        Ok((file, path))
    }

    /// Replaces the contents of the temporary file, all at once: a process that is killed meanwhile leaves one of both.
    ///
    /// # Errors
    /// The temporary file is as before.
    pub fn rewrite(&mut self, bytes: &[u8]) -> io::Result<File> {
        let part = self.part.lock();
        let path = part.as_ref().ok_or(ErrorKind::NotFound)?;
        let (mut file, new) = self.create_temporary(REWRITTEN)?;
        file.write_all(bytes)?;
        new.persist(path).map_err(|failed| failed.error)?;
        drop(part);
        let other = file.try_clone()?;
        self.file = Some(file);
        Ok(other)
    }

    /// Whether the current file is a regular one, which is renamed when complete.
    pub fn is_regular(&self) -> bool {
        self.part.lock().is_some()
    }

    /// Renames the complete file, which is on the disk then. Returns whether it is a regular one, after which
    /// another may begin. A file with a failed write is removed instead, and that is an error.
    pub fn finish(&mut self) -> io::Result<bool> {
        self.check_writes()?;
        let part = self.part.clone();
        let mut part = part.lock();
        let Some(path) = part.take() else { return Ok(false) };
        match self.rename(path) {
            Err(PathPersistError { error, path }) => {
                // A later rename may succeed; until then the file is kept.
                self.keep = true;
                let text = format!("{error}; the data is in {}", path.display());
                *part = Some(path);
                Err(io::Error::new(error.kind(), text))
            }
            Ok(name) => {
                drop(part);
                self.renamed(name);
                Ok(true)
            }
        }
    }

    /// Like [`finish`](Self::finish), but a file that cannot be renamed is removed.
    pub fn finish_or_discard(&mut self) -> io::Result<bool> {
        self.check_writes()?;
        let part = self.part.clone();
        let mut part = part.lock();
        let Some(path) = part.take() else { return Ok(false) };
        // The error has the path, which is removed with it.
        let named = self.rename(path).map_err(|failed| failed.error);
        drop(part);
        match named {
            Err(error) => {
                self.discard();
                Err(error)
            }
            Ok(name) => {
                self.renamed(name);
                Ok(true)
            }
        }
    }

    /// Removes the current file, so that its space is free.
    pub fn discard(&mut self) {
        self.part.remove();
        (self.keep, self.claimed, self.file) = (false, false, None);
    }

    /// # Errors
    /// A write failed; the file is removed.
    fn check_writes(&mut self) -> io::Result<()> {
        // Relaxed: the writer has been dropped or flushed by this thread, or its thread was joined.
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.part.remove();
        Err(io::Error::other("a write failed, so the file is incomplete and was removed"))
    }

    /// Gives the temporary file its name, and returns that.
    fn rename(&self, part: TempPath) -> Result<PathBuf, PathPersistError> {
        if let Err(error) = self.file.as_ref().map_or(Ok(()), File::sync_all) {
            return Err(PathPersistError { error, path: part });
        }
        let wanted = self.name.as_ref().unwrap_or(&self.path);
        let replaces =
            self.existing == Existing::Replace && self.finished == 0 && self.name.is_none();
        match replaces {
            true => part.persist(wanted).map(|()| wanted.clone()),
            false => persist(part, wanted),
        }
    }

    /// The file has this name.
    fn renamed(&mut self, name: PathBuf) {
        // If the name is not on the disk yet, the temporary one is.
        let _ = File::open(folder(&name)).and_then(|folder| folder.sync_all());
        let wanted = self.name.as_ref().unwrap_or(&self.path);
        if name != *wanted {
            note(&format!("{} exists: wrote {}", wanted.display(), name.display()));
        }
        (self.keep, self.file) = (false, None);
        self.finished += 1;
        self.last = Some(name);
    }
}

/// A file that records failed writes.
struct Checked {
    file: File,
    failed: Arc<AtomicBool>,
}

impl Checked {
    fn check<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.check(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.check(flushed)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.keep {
            self.part.remove();
        } else if let Some(path) = self.part.lock().take() {
            // If that fails, the file is removed with the path.
            let _ = path.keep();
        }
    }
}

impl Part {
    /// Removes the temporary file; if that fails, the file keeps its temporary name.
    pub fn remove(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<TempPath>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, existing: Existing) -> io::Result<()> {
        let mut file = AtomicFile::claim(path.to_owned(), existing)?;
        file.begin()?.write_all(b"new")?;
        file.finish().map(drop)
    }

    #[test]
    fn a_file_that_exists_is_replaced_only_on_request_and_only_by_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows.tar.gz");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        fs::write(&path, "old").unwrap();
        write(&path, Existing::Next).unwrap();
        assert_eq!(
            [read("flows.tar.gz"), read("flows.tar.1.gz")].map(Option::unwrap),
            ["old", "new"]
        );

        let mut file = AtomicFile::new(path.clone(), Existing::Replace);
        for _ in 0..2 {
            file.begin().unwrap().write_all(b"again").unwrap();
            assert!(file.finish().unwrap());
        }
        let names = ["flows.tar.gz", "flows.tar.1.gz", "flows.tar.2.gz"];
        assert_eq!(names.map(|name| read(name).unwrap()), ["again", "new", "again"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_kept_or_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(&folder).unwrap().count();
        let own = folder.path().join("of-another");
        fs::write(&own, "old").unwrap();
        let mut file = AtomicFile::new(folder.path().join("flows"), Existing::Next);
        let too_long = folder.path().join("x".repeat(300));
        for name in [&too_long, &own.join("below-a-file")] {
            file.begin().unwrap().write_all(b"whole").unwrap();
            file.set_name(name.clone());
            let error = file.finish().unwrap_err().to_string();
            assert!(error.contains("the data is in") && count() == 2, "{error}");
            let error = file.finish_or_discard().unwrap_err().to_string();
            assert!(!error.contains("the data is in") && count() == 1, "{error}");
        }
        file.begin().unwrap().write_all(b"begun").unwrap();
        file.discard();
        assert_eq!((count(), file.finish_or_discard().unwrap()), (1, false));
        // The next one is complete, and replaces none.
        file.begin().unwrap().write_all(b"whole").unwrap();
        file.set_name(own.clone());
        assert!(file.finish_or_discard().unwrap());
        assert_eq!(fs::read(file.last().unwrap()).unwrap(), b"whole");
        assert_eq!(fs::read(&own).unwrap(), b"old");
    }

    #[test]
    fn a_part_is_rewritten_all_at_once_and_what_is_left_of_that_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        let mut file = AtomicFile::claim(path.clone(), Existing::Refuse).unwrap();
        file.begin_file().unwrap().write_all(b"many small pieces").unwrap();
        let mut out = file.rewrite(b"one").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(AtomicFile::claim(path.clone(), Existing::Refuse).is_err(), "without a lock");
        out.write_all(b" piece").unwrap();
        assert!(file.finish().unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one piece");
        let name = |process| format!(".flows.{process}-abc.rewritten");
        fs::write(folder.path().join(name(7)), "on").unwrap();
        let done = leftovers::finish(&path, |_| panic!("no part"), |_| panic!("no part"));
        assert!(done.is_empty());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn no_link_is_followed_and_no_link_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, link] = ["victim", "link"].map(|name| folder.path().join(name));
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &link).unwrap();
        write(&link, Existing::Next).unwrap();
        write(&link, Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        // Links with the names that a part once had.
        let planted = folder.path().join(format!(".other.{}.part", std::process::id()));
        symlink(&victim, planted).unwrap();
        write(&folder.path().join("other"), Existing::Refuse).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        // A device is written by its own name alone.
        let device = folder.path().join("device");
        symlink("/dev/null", &device).unwrap();
        assert!(write(&device, Existing::Replace).is_err());
        write(Path::new("/dev/null"), Existing::Refuse).unwrap();
    }
}
