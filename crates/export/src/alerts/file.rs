//! Alerts as JSON lines in a file. Unlike a file of records, it has its name from the start and is appended to, so that each
//! alert can be read at once.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::shared::Shared;
use crate::store::{Retry, Store, Unwritten, persist};

pub(crate) struct FileTarget {
    store: AppendedFile,
    reader_gone: bool,
}

impl FileTarget {
    /// Opens the file. A pipe is opened later, because that waits for its reader.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut store = AppendedFile { path: path.to_owned(), file: None, torn_at: None };
        if store.opens_at_once() {
            store.file()?;
        }
        Ok(Self { store, reader_gone: false })
    }
}

impl Target for FileTarget {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        let line = notice.object() + "\n";
        loop {
            if self.reader_gone {
                return count_lost(Reason::ReaderGone, shared);
            }
            match persist(&mut self.store, line.as_bytes(), shared, Retry::UntilRenewal) {
                Ok(()) => return count_sent(line.len(), shared),
                Err(Unwritten::Renewal) => self.renew(shared),
                Err(Unwritten::Lost(reason)) => {
                    self.reader_gone |= reason == Reason::ReaderGone;
                    return count_lost(reason, shared);
                }
            }
        }
    }

    fn renew(&mut self, _shared: &Shared) {
        self.store.open_again();
    }
}

/// A file that is appended to.
struct AppendedFile {
    path: PathBuf,
    file: Option<File>,
    /// Its length before a write that failed.
    torn_at: Option<u64>,
}

impl AppendedFile {
    /// Whether opening cannot wait for a reader.
    fn opens_at_once(&self) -> bool {
        let is_file = || std::fs::metadata(&self.path).is_ok_and(|data| data.is_file());
        !self.may_abandon() && (!self.path.exists() || is_file())
    }

    /// Opens the file that has the path now, and only then closes the one before, so that the lock is free at no time.
    fn open_again(&mut self) {
        let identity = |data: io::Result<Metadata>| {
            let data = data.ok().filter(Metadata::is_file)?;
            Some((data.dev(), data.ino()))
        };
        let before = self.file.as_ref().and_then(|file| identity(file.metadata()));
        if before.is_some() && before == identity(std::fs::metadata(&self.path)) {
            return;
        }
        let _before = self.file.take();
        self.torn_at = None;
        if self.opens_at_once() {
            // The next line tries it again, and reports the error.
            let _ = self.file();
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let is_link = std::fs::symlink_metadata(&self.path).is_ok_and(|data| data.is_symlink());
            if is_link && !self.path.starts_with("/dev") && !self.path.starts_with("/proc") {
                return Err(io::Error::other("it is a symbolic link, which is not followed"));
            }
            let file = File::options().append(true).create(true).open(&self.path)?;
            // Only files: several processes may write to one pipe.
            if file.metadata().is_ok_and(|data| data.is_file())
                && let Err(TryLockError::WouldBlock) = file.try_lock()
            {
                return Err(io::Error::other("another process is writing it: use another name"));
            }
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Store for AppendedFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.may_abandon() {
            let mut out = io::stdout().lock();
            return out.write_all(octets).and_then(|()| out.flush());
        }
        let torn_at = self.torn_at.take();
        let file = self.file()?;
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

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_regular(&self) -> bool {
        // A whole line in one write.
        true
    }

    fn may_abandon(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::tests::{notice, shared};

    #[test]
    fn lines_are_appended_and_a_renewal_opens_the_file_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        std::fs::write(&path, "before\n").unwrap();
        let shared = shared();
        let mut target = FileTarget::open(&path).unwrap();
        target.deliver(&notice("one"), &shared);
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        target.deliver(&notice("two"), &shared);
        target.renew(&shared);
        let is_free = || FileTarget::open(&path).is_ok();
        assert!(!is_free(), "before the next line");
        target.deliver(&notice("three"), &shared);
        // The same file.
        target.renew(&shared);
        assert!(!is_free());
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let line = |text: &str| notice(text).json + "\n";
        assert_eq!(read("old"), format!("before\n{}{}", line("one"), line("two")));
        assert_eq!(read("alerts"), line("three"));
        assert_eq!(shared.status().sent, 3);
    }

    #[test]
    fn a_torn_line_is_removed_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        std::fs::write(&path, "whole\nto").unwrap();
        let mut store = AppendedFile { path: path.clone(), file: None, torn_at: Some(6) };
        store.write(b"next\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole\nnext\n");
    }

    #[test]
    fn a_file_that_was_shortened_is_not_extended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        std::fs::write(&path, "").unwrap();
        let mut store = AppendedFile { path: path.clone(), file: None, torn_at: Some(6) };
        store.write(b"next\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next\n");
    }

    #[test]
    fn one_process_appends_to_a_file_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        let _first = FileTarget::open(&path).unwrap();
        let error = FileTarget::open(&path).err().unwrap();
        assert!(error.to_string().contains("another process"), "{error}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("victim"), &link).unwrap();
        assert!(FileTarget::open(&link).is_err());
        assert!(!folder.path().join("victim").exists());
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
        assert!(FileTarget::open(Path::new("/no/such/folder/alerts")).is_err());
    }
}
