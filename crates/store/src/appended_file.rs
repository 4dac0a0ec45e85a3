//! A file that has its name from the start and is appended to, as of alerts, so that each line can be read at once.
//!
//! Without fields and periods it stays, and a file that another program has moved is begun again at a renewal. When a
//! period ends, a file without fields gives its name to the next one, and a name with fields changes.
//!
//! Invariants: nothing that exists is replaced, it is continued; one process appends to a file, and no symbolic link is
//! followed.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringtap_export::Store;
use ringtap_program::open_output::{self, OpenOutput};
use ringtap_program::retention::Retention;

use crate::record_file::FileNames;

/// A file that is appended to; also a pipe, a device or standard output.
pub struct AppendedFile {
    names: FileNames,
    keep: Retention,
    removed: u64,
    /// When the period began, in seconds since 1970.
    period: Option<u64>,
    /// The period of the open file has ended.
    is_over: bool,
    /// The name of the open file, or of that before.
    path: Option<PathBuf>,
    file: Option<File>,
    /// The open file did not exist before.
    is_new: bool,
    /// Its length before a write that failed.
    torn_at: Option<u64>,
    trace: Trace,
}

/// Whether a file that was created and is still empty is removed when its writer ends.
#[derive(Clone, Default)]
pub struct Trace(Arc<AtomicBool>);

impl Trace {
    /// With `true`, an empty file leaves no trace.
    pub fn remove_empty(&self, remove: bool) {
        // Relaxed: the writer ends later than the message that ends it, whose channel orders both.
        self.0.store(remove, Ordering::Relaxed);
    }
}

impl AppendedFile {
    /// Opens the file, if its name is known. A pipe is opened later, because that waits for its reader.
    ///
    /// # Errors
    /// Another process writes it; it cannot be written.
    pub fn open(names: FileNames, keep: Retention) -> io::Result<Self> {
        let mut own = Self {
            names,
            keep,
            removed: 0,
            period: None,
            is_over: false,
            path: None,
            file: None,
            is_new: false,
            torn_at: None,
            trace: Trace::default(),
        };
        if own.names.has_fields() {
            OpenOutput::check(own.names.path())?;
        } else if own.opens_at_once(own.names.path()) {
            own.begin()?;
        }
        Ok(own)
    }

    /// Decides what is left of an empty file.
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Whether opening cannot wait for a reader.
    fn opens_at_once(&self, path: &Path) -> bool {
        let is_file = || std::fs::metadata(path).is_ok_and(|data| data.is_file());
        !self.may_abandon() && (!path.exists() || is_file())
    }

    /// Opens the file that has the name now, and only then closes the one before, so that the lock is free at no time.
    fn begin(&mut self) -> io::Result<()> {
        let path = self.names.at(self.period);
        if let (Some(before), true) = (&self.file, self.is_over) {
            if !self.names.has_fields() {
                open_output::move_away(before, &path)?;
            } else if self.path.as_ref() == Some(&path) && self.is_in_place() {
                self.is_over = false;
                return Ok(());
            }
        }
        let (file, is_new) = open(&path)?;
        (self.file, self.is_new) = (Some(file), is_new);
        (self.path, self.is_over, self.torn_at) = (Some(path), false, None);
        if self.names.are_several() {
            self.removed += self.names.retain(self.keep);
        }
        Ok(())
    }

    /// Whether the open file still has its name, or was not opened.
    fn is_in_place(&self) -> bool {
        let identity = |data: io::Result<Metadata>| {
            let data = data.ok().filter(Metadata::is_file)?;
            Some((data.dev(), data.ino()))
        };
        let (Some(file), Some(path)) = (&self.file, &self.path) else { return true };
        let own = identity(file.metadata());
        own.is_some() && own == identity(std::fs::metadata(path))
    }
}

impl Drop for AppendedFile {
    fn drop(&mut self) {
        let (Some(file), Some(path)) = (&self.file, &self.path) else { return };
        let is_empty = || file.metadata().is_ok_and(|data| data.is_file() && data.len() == 0);
        // Its lock is held until it is removed, so no other process appends to it.
        if self.trace.0.load(Ordering::Relaxed) && self.is_new && is_empty() && self.is_in_place() {
            // If it cannot be removed, an empty file is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens a file to append to it. Returns whether it is a new one.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
    if is_link && !path.starts_with("/dev") && !path.starts_with("/proc") {
        return Err(io::Error::other("it is a symbolic link, which is not followed"));
    }
    let (file, is_new) = match File::options().append(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            (File::options().append(true).create(true).open(path)?, false)
        }
        opened => (opened?, true),
    };
    // Only files: several processes may write to one pipe.
    if file.metadata().is_ok_and(|data| data.is_file())
        && let Err(TryLockError::WouldBlock) = file.try_lock()
    {
        return Err(io::Error::other("another process is writing it: use another name"));
    }
    Ok((file, is_new))
}

impl Store for AppendedFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.may_abandon() {
            let mut out = io::stdout().lock();
            return out.write_all(octets).and_then(|()| out.flush());
        }
        if self.file.is_none() || self.is_over {
            self.begin()?;
        }
        let torn_at = self.torn_at.take();
        let Some(file) = &mut self.file else { return Err(ErrorKind::NotFound.into()) };
        let mut end = None;
        if let Ok(data) = file.metadata()
            && data.is_file()
        {
            // Another program may have shortened the file meanwhile: then nothing torn is left.
            let length = torn_at.unwrap_or(u64::MAX).min(data.len());
            if length < data.len()
                && let Err(error) = file.set_len(length)
            {
                self.torn_at = torn_at;
                return Err(error);
            }
            end = Some(length);
        }
        let written = file.write_all(octets);
        if written.is_err() {
            self.torn_at = end;
        }
        written
    }

    /// Opens the file again, if another one or none has its name now.
    fn finish(&mut self) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        if self.names.has_fields() {
            // The name may be another one now.
            self.is_over |= self.period.is_none() || !self.is_in_place();
        } else if !self.is_in_place() {
            self.is_over = false;
            let before = self.file.take();
            if self.opens_at_once(&path) {
                // The next line tries it again, and reports the error.
                let _ = self.begin();
            }
            drop(before);
        }
        Ok(())
    }

    fn begins(&mut self, seconds: u64) {
        let is_file = |file: &File| file.metadata().is_ok_and(|data| data.is_file());
        let is_file = self.file.as_ref().is_some_and(is_file);
        self.is_over |= is_file && self.period.is_some_and(|before| before != seconds);
        self.period = Some(seconds);
    }

    fn removed(&self) -> u64 {
        self.removed
    }

    fn is_regular(&self) -> bool {
        // A whole line in one write.
        true
    }

    fn may_abandon(&self) -> bool {
        self.names.path().as_os_str() == "-"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in this folder; with periods of a minute, or without.
    fn appended(folder: &tempfile::TempDir, name: &str, periods: bool) -> io::Result<AppendedFile> {
        let every_ns = periods.then_some(60_000_000_000);
        let names = FileNames::new(&folder.path().join(name), every_ns).unwrap();
        AppendedFile::open(names, Retention::default())
    }

    fn read(folder: &tempfile::TempDir, name: &str) -> String {
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn lines_are_appended_and_a_renewal_opens_the_file_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("alerts"), "before\n").unwrap();
        let mut file = appended(&folder, "alerts", false).unwrap();
        file.write(b"one\n").unwrap();
        std::fs::rename(path("alerts"), path("old")).unwrap();
        file.write(b"two\n").unwrap();
        file.finish().unwrap();
        let is_free = || appended(&folder, "alerts", false).is_ok();
        assert!(!is_free(), "before the next line");
        file.write(b"three\n").unwrap();
        // The same file.
        file.finish().unwrap();
        assert!(!is_free());
        assert_eq!(read(&folder, "old"), "before\none\ntwo\n");
        assert_eq!(read(&folder, "alerts"), "three\n");
    }

    #[test]
    fn a_file_without_fields_gives_its_name_to_that_of_the_next_period() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("alerts.json"), "before\n").unwrap();
        let mut file = appended(&folder, "alerts.json", true).unwrap();
        for (period, line) in [(60, "one\n"), (60, "two\n"), (120, "three\n"), (240, "four\n")] {
            file.begins(period);
            file.write(line.as_bytes()).unwrap();
        }
        // The current one is moved by another program, and then the period ends.
        std::fs::rename(folder.path().join("alerts.json"), folder.path().join("old")).unwrap();
        file.begins(300);
        file.write(b"five\n").unwrap();
        assert_eq!(names(&folder), ["alerts.1.json", "alerts.2.json", "alerts.json", "old"]);
        assert_eq!(read(&folder, "alerts.1.json"), "before\none\ntwo\n");
        assert_eq!(read(&folder, "alerts.2.json"), "three\n");
        assert_eq!(
            (read(&folder, "old"), read(&folder, "alerts.json")),
            ("four\n".into(), "five\n".into())
        );
        assert!(appended(&folder, "alerts.json", true).is_err(), "the lock");
    }

    #[test]
    fn a_name_with_fields_has_the_period_and_a_file_that_exists_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a-60"), "before\n").unwrap();
        let mut file = appended(&folder, "a-%s", true).unwrap();
        for (period, line) in [(60, "one\n"), (120, "two\n"), (60, "back\n")] {
            file.begins(period);
            file.write(line.as_bytes()).unwrap();
            file.finish().unwrap();
        }
        assert_eq!(names(&folder), ["a-120", "a-60"]);
        assert_eq!(read(&folder, "a-60"), "before\none\nback\n");
        // Periods of one name share a file, and one that was moved is begun again at a renewal.
        let mut file = appended(&folder, "b-%Y", true).unwrap();
        for period in [60, 120] {
            file.begins(period);
            file.write(b"line\n").unwrap();
        }
        std::fs::rename(folder.path().join("b-1970"), folder.path().join("old")).unwrap();
        file.finish().unwrap();
        file.write(b"next\n").unwrap();
        assert_eq!(
            (read(&folder, "old"), read(&folder, "b-1970")),
            ("line\nline\n".into(), "next\n".into())
        );
    }

    #[test]
    fn old_files_are_removed_only_with_fields_or_periods() {
        let folder = tempfile::tempdir().unwrap();
        let keep = Retention { age: None, bytes: Some(1) };
        for (periods, left) in [(None, 3), (Some(60_000_000_000), 1)] {
            for name in ["a.json", "a.1.json", "a.2.json"] {
                std::fs::write(folder.path().join(name), "line\n").unwrap();
            }
            let file = FileNames::new(&folder.path().join("a.json"), periods).unwrap();
            let file = AppendedFile::open(file, keep).unwrap();
            assert_eq!((names(&folder).len(), file.removed()), (left, 3 - left as u64));
        }
    }

    #[test]
    fn an_empty_file_leaves_no_trace_only_if_it_is_new_and_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("before"), "").unwrap();
        let end = |name: &str, line: &[u8], remove: bool| {
            let mut file = appended(&folder, name, false).unwrap();
            file.trace().remove_empty(remove);
            if !line.is_empty() {
                file.write(line).unwrap();
            }
        };
        end("before", b"", true);
        end("empty", b"", true);
        end("stays", b"", false);
        end("full", b"line\n", true);
        assert_eq!(names(&folder), ["before", "full", "stays"]);
        // One that another file has replaced.
        let file = appended(&folder, "moved", false).unwrap();
        file.trace().remove_empty(true);
        std::fs::rename(path("moved"), path("old")).unwrap();
        std::fs::write(path("moved"), "").unwrap();
        drop(file);
        assert_eq!(names(&folder), ["before", "full", "moved", "old", "stays"]);
    }

    #[test]
    fn a_torn_line_is_removed_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        // In the second case the file was shortened meanwhile, and is not extended.
        for (found, left) in [("whole\nto", "whole\nnext\n"), ("", "next\n")] {
            std::fs::write(folder.path().join("alerts"), found).unwrap();
            let mut file = appended(&folder, "alerts", false).unwrap();
            file.torn_at = Some(6);
            file.write(b"next\n").unwrap();
            assert_eq!(read(&folder, "alerts"), left);
        }
    }

    #[test]
    fn one_process_appends_to_a_file_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let _first = appended(&folder, "alerts", false).unwrap();
        let error = appended(&folder, "alerts", false).err().unwrap();
        assert!(error.to_string().contains("another process"), "{error}");
        std::os::unix::fs::symlink("victim", folder.path().join("link")).unwrap();
        assert!(appended(&folder, "link", false).is_err());
        assert!(!folder.path().join("victim").exists());
        assert!(appended(&folder, "no/folder/alerts", false).is_err());
        assert!(appended(&folder, "no/folder/alerts-%H", false).is_err());
    }
}
