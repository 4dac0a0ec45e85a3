//! A file of records.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::time::Duration;

use ringtap_export::Store;
use ringtap_program::atomic_file::{AtomicFile, Part};

/// Pause before a full non-blocking pipe is retried.
const PIPE_PAUSE: Duration = Duration::from_millis(1);

/// A file to which records are appended. A regular file gets its final name when complete.
pub(crate) struct RecordFile {
    file: AtomicFile,
    /// `None` until the next file is begun.
    out: Option<File>,
    /// Bytes of the open file that were written completely.
    len: u64,
    /// A partial write may follow these bytes.
    torn: bool,
}

impl RecordFile {
    pub(crate) fn open(mut file: AtomicFile) -> io::Result<Self> {
        let out = Some(file.begin_file()?);
        Ok(Self { file, out, len: 0, torn: false })
    }

    /// The temporary file, to be removed when the program exits early.
    pub(crate) fn part(&self) -> Part {
        self.file.part()
    }

    /// Truncates the file after a partial write.
    fn truncate_torn(&mut self) -> io::Result<()> {
        if let (true, Some(out)) = (self.torn, &mut self.out) {
            out.set_len(self.len)?;
            out.seek(SeekFrom::Start(self.len))?;
            self.torn = false;
        }
        Ok(())
    }
}

impl Store for RecordFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.truncate_torn()?;
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                self.len = 0;
                none.insert(self.file.begin_file()?)
            }
        };
        let written = write_all(out, octets);
        if written.is_ok() {
            self.len += octets.len() as u64;
        } else if self.file.is_regular() {
            self.torn = true;
            // Truncating at once frees space. If it fails, the next call retries it first.
            let _ = self.truncate_torn();
        }
        written
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.file.is_regular() || self.out.is_none() {
            return Ok(());
        }
        self.truncate_torn()?;
        self.file.finish_and_claim()?;
        self.out = None;
        Ok(())
    }

    fn is_regular(&self) -> bool {
        self.file.is_regular() || self.out.is_none()
    }

    fn may_abandon(&self) -> bool {
        self.file.is_stdout()
    }
}

/// Like [`Write::write_all`], but stdout may be a pipe that another process made non-blocking.
fn write_all(out: &mut File, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match out.write(octets) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => octets = &octets[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PIPE_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ringtap_program::atomic_file::Existing;

    use super::*;

    #[test]
    fn between_two_files_the_name_is_not_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        let claim = || AtomicFile::claim(path.clone(), Existing::Next);
        let mut file = RecordFile::open(claim().unwrap()).unwrap();
        for _ in 0..2 {
            file.write(b"record\n").unwrap();
            // The second time there is no record between.
            for _ in 0..2 {
                file.finish().unwrap();
                let error = claim().err().unwrap().to_string();
                assert!(error.contains("is writing it"), "{error}");
            }
        }
        drop(file);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        assert!(claim().is_ok());
    }

    /// Both the write and the truncation fail; the next call truncates.
    #[test]
    fn a_torn_write_is_truncated_before_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        for further in ["", "next\n"] {
            let mut file =
                RecordFile::open(AtomicFile::new(path.clone(), Existing::Replace)).unwrap();
            file.write(b"whole\n").unwrap();
            let part = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let part = part.into_iter().find(|name| *name != path).unwrap();
            let mut whole = file.out.replace(File::open(&part).unwrap()).unwrap();
            whole.write_all(b"to").unwrap();
            assert!(file.write(b"torn\n").is_err());
            assert!(file.write(b"torn\n").is_err());
            file.out = Some(whole);
            if !further.is_empty() {
                file.write(further.as_bytes()).unwrap();
            }
            file.finish().unwrap();
            let read = std::fs::read_to_string(&path).unwrap();
            assert_eq!(read, format!("whole\n{further}"));
        }
    }
}
