//! A file that gets its name when it is whole, so that nobody reads half of one. Pipes and devices are written as they
//! are, and `-` is stdout.
//!
//! ```text
//! .flows.json.PID.part ── whole ─▶ flows.json ── begun anew: .flows.json.PID.part ─▶ flows.json.1
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct Whole {
    path: PathBuf,
    part: Part,
    /// Files finished under this name.
    finished: usize,
}

/// Where a regular file lies until it is whole.
#[derive(Clone, Default)]
pub(crate) struct Part(Arc<Mutex<Option<PathBuf>>>);

impl Whole {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, part: Part::default(), finished: 0 }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Whether what was begun is a regular file.
    pub(crate) fn is_regular(&self) -> bool {
        self.part.lock().is_some()
    }

    /// To be removed by whoever ends the program at once.
    pub(crate) fn part(&self) -> Part {
        self.part.clone()
    }

    /// Opens the first file, or the next one after a regular file is finished.
    pub(crate) fn begin(&mut self) -> io::Result<Box<dyn Write + Send>> {
        if self.is_stdout() {
            return Ok(Box::new(io::stdout()));
        }
        if std::fs::metadata(&self.path).is_ok_and(|data| !data.is_file()) {
            return Ok(Box::new(File::options().write(true).open(&self.path)?));
        }
        let part = part(&self.path);
        let file = File::create(&part)?;
        *self.part.lock() = Some(part);
        Ok(Box::new(file))
    }

    /// Gives the file its name. Whether it is a regular one, after which another may begin.
    pub(crate) fn finish(&mut self) -> io::Result<bool> {
        let mut part = self.part.lock();
        let Some(path) = &*part else { return Ok(false) };
        std::fs::rename(path, self.name())?;
        *part = None;
        drop(part);
        self.finished += 1;
        Ok(true)
    }

    /// The first file replaces one of an earlier run; later ones replace nothing.
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

impl Drop for Whole {
    fn drop(&mut self) {
        self.part.remove();
    }
}

impl Part {
    /// It is not whole and never will be; if it stays, it stays under its own name.
    pub(crate) fn remove(&self) {
        if let Some(part) = self.lock().take() {
            let _ = std::fs::remove_file(part);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// `flows.json` is `.flows.json.PID.part` beside it until it is whole.
fn part(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
