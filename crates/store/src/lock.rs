//! The lock of a probe: one process at a time writes its files.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::clock;
use crate::layout::Layout;
use crate::manifest::seconds_of;

/// How often the lock is tried again, and the pause between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// The lock, held until this is dropped. The time of its file is that of the last [`Self::beat`].
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    /// The file was not there before, and is removed with this.
    is_removed: AtomicBool,
}

impl Lock {
    /// Takes the lock of a probe. Returns the time of the last beat of the process before, too.
    ///
    /// # Errors
    /// Another process has it; that of the system.
    pub(crate) fn take(layout: &Layout) -> io::Result<(Self, u64)> {
        let path = layout.lock();
        let (mut file, mut is_new) = open(&path)?;
        // A process that only asks whether another has the lock has it for a moment.
        let mut locked = file.try_lock();
        for _ in 0..TRIES {
            match locked {
                Ok(()) if is_at(&file, &path)? => break,
                // The process that had the lock has removed its file.
                Ok(()) => (file, is_new) = open(&path)?,
                Err(_) => std::thread::sleep(PAUSE),
            }
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                file.take(20).read_to_string(&mut process)?;
                return Err(io::Error::other(format!(
                    "process {} writes the files of the probe {}: use another --probe NAME, or end that process",
                    process.trim_end(),
                    layout.probe
                )));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut own = Self { file, path, is_removed: AtomicBool::new(is_new) };
        let beat = own.file.metadata()?.modified()?;
        own.file.set_len(0)?;
        writeln!(own.file, "{}", std::process::id())?;
        // A start that fails is no run. Only the owner can set the time.
        let _ = own.file.set_modified(beat);
        Ok((own, seconds_of(beat)))
    }

    /// The run lives.
    pub(crate) fn beat(&self) {
        // The time only says until when the run was there.
        let _ = self.file.set_modified(clock::now());
    }

    /// The run begins: the file remains.
    pub(crate) fn keep(&self) {
        self.beat();
        // Relaxed: it carries no data.
        self.is_removed.store(false, Ordering::Relaxed);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if *self.is_removed.get_mut() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens the file of a lock. Returns whether it was not there before, too. No symbolic link is followed.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((options.create(true).open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether an open file has this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    let named = fs::symlink_metadata(path);
    Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_removed_unless_it_was_there_or_is_kept_and_its_successor_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), "edge", 300).unwrap();
        let take = || Lock::take(&layout).map(|(lock, _)| lock);
        let first = take().unwrap();
        let error = take().err().unwrap().to_string();
        assert!(error.contains(&format!("process {} writes", std::process::id())), "{error}");
        // A process that has opened the file, and gets the lock when the file has gone.
        std::thread::scope(|scope| {
            let second = scope.spawn(take);
            std::thread::sleep(PAUSE);
            drop(first);
            let second = second.join().unwrap().unwrap();
            assert!(is_at(&second.file, &layout.lock()).unwrap());
            second.keep();
        });
        let modified = || layout.lock().metadata().unwrap().modified().unwrap();
        let before = modified();
        drop(take().unwrap());
        assert_eq!(modified(), before);
        fs::remove_file(layout.lock()).unwrap();
        drop(take().unwrap());
        assert!(!layout.lock().exists());
    }
}
