//! A file that is written under a temporary name and renamed when complete, so that no reader sees
//! a partial file. Pipes and devices are written directly, and `-` is stdout.
//!
//! Invariant: a file opened by [`AtomicFile::begin`] is not renamed after a failed write. A caller
//! of [`AtomicFile::begin_file`] must ensure that itself.
//!
//! ```text
//! .flows.json.PID.part ── complete ─▶ flows.json ── next file: .flows.json.PID.part ─▶ flows.json.1
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::named_pipe;

/// An output file, and its successors under the same name.
pub(crate) struct AtomicFile {
    path: PathBuf,
    part: Part,
    /// Set when a write to the current file fails.
    failed: Arc<AtomicBool>,
    /// Number of files finished under this name.
    finished: usize,
    /// The temporary file is complete; it is kept if it cannot be renamed.
    keep: bool,
}

/// The path of the temporary file, while one exists.
#[derive(Clone, Default)]
pub(crate) struct Part(Arc<Mutex<Option<PathBuf>>>);

impl AtomicFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, part: Part::default(), failed: Arc::default(), finished: 0, keep: false }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The temporary file, to be removed when the program exits early.
    pub(crate) fn part(&self) -> Part {
        self.part.clone()
    }

    /// Opens the first file, or the next one after a regular file was finished.
    pub(crate) fn begin(&mut self) -> io::Result<Box<dyn Write + Send>> {
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
    pub(crate) fn begin_file(&mut self) -> io::Result<File> {
        if self.is_stdout() {
            return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
        }
        if std::fs::metadata(&self.path).is_ok_and(|data| !data.is_file()) {
            return named_pipe::open(&self.path);
        }
        let part = part(&self.path);
        let file = File::create(&part)?;
        *self.part.lock() = Some(part);
        Ok(file)
    }

    /// Whether the current file is a regular one, which is renamed when complete.
    pub(crate) fn is_regular(&self) -> bool {
        self.part.lock().is_some()
    }

    /// Renames the complete file. Returns whether it is a regular one, after which another may
    /// begin. A file with a failed write is removed instead, and that is an error.
    pub(crate) fn finish(&mut self) -> io::Result<bool> {
        // Relaxed: the writer has been dropped or flushed by this thread, or its thread was joined.
        if self.failed.load(Ordering::Relaxed) {
            self.part.remove();
            return Err(io::Error::other(
                "a write failed, so the file is incomplete and was removed",
            ));
        }
        let mut part = self.part.lock();
        let Some(path) = &*part else { return Ok(false) };
        if let Err(error) = std::fs::rename(path, self.name()) {
            // A later rename may succeed; until then the file is kept.
            self.keep = true;
            let text = format!("{error}; the data is in {}", path.display());
            return Err(io::Error::new(error.kind(), text));
        }
        self.keep = false;
        *part = None;
        drop(part);
        self.finished += 1;
        Ok(true)
    }

    /// The final name. The first file replaces that of an earlier run; later ones replace nothing.
    fn name(&self) -> PathBuf {
        let mut name = self.path.clone();
        let mut number = 1;
        while self.finished > 0 && name.exists() {
            name = self.path.clone();
            name.as_mut_os_string().push(format!(".{number}"));
            number += 1;
        }
        name
    }
}

/// A file that records failed writes.
struct Checked {
    file: File,
    failed: Arc<AtomicBool>,
}

impl Checked {
    fn check<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
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
        }
    }
}

impl Part {
    /// Removes the temporary file; if that fails, the file keeps its temporary name.
    pub(crate) fn remove(&self) {
        if let Some(part) = self.lock().take() {
            let _ = std::fs::remove_file(part);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The temporary name: `.flows.json.PID.part` for `flows.json`.
fn part(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
