//! A file of records that has its name while it is written (`,open`), so that other programs can follow it.
//!
//! Names with fields change from file to file. A file without fields gives its name to the next one, as programs that
//! rotate logs do; if such a program has moved it, the next file is begun.

use std::io;

use ringtap_export::Store;
use ringtap_program::open_output::OpenOutput;
use ringtap_program::retention::Retention;
use ringtap_terminal::console::note;

use crate::record_file::{FileNames, write_all};

/// A file, and its successors.
pub struct OpenFile {
    names: FileNames,
    keep: Retention,
    removed: u64,
    /// When the period of the next files begins, in seconds since 1970.
    period: Option<u64>,
    /// The current file, or that before.
    file: Option<OpenOutput>,
    /// The file is finished.
    finished: bool,
    /// Bytes of the file that were written completely.
    len: u64,
    /// A partial write may follow these bytes.
    torn: bool,
}

impl OpenFile {
    /// Creates the first file, if its name does not depend on time.
    ///
    /// # Errors
    /// It is not a file, or it cannot be created.
    pub fn open(names: FileNames, keep: Retention) -> io::Result<Self> {
        OpenOutput::check(names.path())?;
        let (period, file) = (None, None);
        let mut own =
            Self { names, keep, removed: 0, period, file, finished: false, len: 0, torn: false };
        // A name by time is known when there are records.
        if !own.names.has_fields() {
            own.begin()?;
        }
        Ok(own)
    }

    /// Creates the next file.
    fn begin(&mut self) -> io::Result<()> {
        let name = match &self.file {
            // A run keeps the name that it has.
            Some(before) if !self.names.has_fields() => {
                before.move_away()?;
                before.path().to_owned()
            }
            _ => self.names.at(self.period),
        };
        let file = OpenOutput::create(&name)?;
        if file.path() != name {
            note(&format!("{} exists: writes {}", name.display(), file.path().display()));
        }
        // The lock of the file before is free then.
        (self.file, self.finished, self.len, self.torn) = (Some(file), false, 0, false);
        self.removed += self.names.retain(self.keep);
        Ok(())
    }

    /// Truncates the file after a partial write.
    fn truncate_torn(&mut self) -> io::Result<()> {
        if let (true, Some(file)) = (self.torn, &mut self.file) {
            file.file().set_len(self.len)?;
            self.torn = false;
        }
        Ok(())
    }
}

impl Store for OpenFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.truncate_torn()?;
        if self.file.is_none() || self.finished {
            self.begin()?;
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let written = write_all(file.file(), octets);
        if written.is_ok() {
            self.len += octets.len() as u64;
        } else {
            self.torn = true;
            // Truncating at once frees space. If it fails, the next call retries it first.
            let _ = self.truncate_torn();
        }
        written
    }

    fn finish(&mut self) -> io::Result<()> {
        self.truncate_torn()?;
        if let (Some(file), false) = (&mut self.file, self.finished) {
            file.file().sync_all()?;
            self.finished = true;
        }
        Ok(())
    }

    fn begins(&mut self, seconds: u64) {
        self.period = Some(seconds);
    }

    fn removed(&self) -> u64 {
        self.removed
    }

    fn is_regular(&self) -> bool {
        true
    }

    fn may_abandon(&self) -> bool {
        false
    }
}
