//! A file of records.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringtap_export::Store;
use ringtap_program::atomic_file::{AtomicFile, Existing, Part};
use ringtap_program::pattern::{InvalidPattern, Pattern};
use ringtap_program::retention::{Own, Removed, Retention};
use ringtap_terminal::console::{note, print_message};
use ringtap_terminal::numbers::{bytes, count};

use crate::clock;
use crate::keep_free::KeepFree;

/// Pause before a full non-blocking pipe is retried.
const PIPE_PAUSE: Duration = Duration::from_millis(1);

/// What the files of a run have in common.
#[derive(Clone, Copy, Debug)]
pub struct FileRules {
    /// What becomes of files with the names of new ones.
    pub existing: Existing,
    /// The time between two files, whole seconds in nanoseconds.
    pub rotate_ns: Option<u64>,
    /// What remains of finished files.
    pub keep: Retention,
    /// What stays free on their file systems.
    pub keep_free: Option<KeepFree>,
}

/// The names of an output's files.
#[derive(Clone)]
pub struct FileNames {
    /// As given, with fields if there are some; those of folders are in the name.
    path: PathBuf,
    pattern: Pattern,
    rotate_ns: Option<u64>,
}

impl FileNames {
    /// Reads a path, perhaps with fields.
    ///
    /// # Errors
    /// A field that is unknown.
    pub fn new(path: &Path, rotate_ns: Option<u64>) -> Result<Self, InvalidPattern> {
        let pattern = Pattern::new(path)?;
        let path = if pattern.has_fields() {
            // Parts are in the folder without fields.
            let shown = path.strip_prefix(pattern.root()).unwrap_or(path);
            pattern.root().join(shown.to_string_lossy().replace('/', "-"))
        } else {
            // The name of the first file.
            pattern.at(0)
        };
        Ok(Self { path, pattern, rotate_ns })
    }

    /// The path by which other processes and runs recognise the output.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes old files. Returns their number.
    pub fn retain(&self, keep: Retention) -> u64 {
        self.report(&self.with_own(|own| keep.apply(own, clock::now(), |_| Ok(()))))
    }

    /// Calls `work` with the files of the output.
    pub(crate) fn with_own<T>(&self, work: impl FnOnce(&Own<'_>) -> T) -> T {
        let is_own = |name: &Path| self.pattern.names(name);
        work(&Own { folder: self.root(), depth: self.pattern.depth(), is_own: &is_own })
    }

    /// The folder of all files; empty for the current one.
    pub(crate) fn root(&self) -> &Path {
        self.pattern.root()
    }

    /// The folder of all files, as a name without a slash at its end.
    pub(crate) fn folder(&self) -> &Path {
        match self.root().components().as_path() {
            folder if folder == Path::new("") => Path::new("."),
            folder => folder,
        }
    }

    /// Says which old files were removed. Returns their number.
    pub(crate) fn report(&self, removed: &Removed) -> u64 {
        // The path of files in folders by time is that of no file.
        let shown = if self.pattern.depth() > 0 { self.folder() } else { &self.path };
        let shown = shown.display();
        if let Some(error) = &removed.error {
            print_message("warning", &format!("removing old files of {shown}: {error}"));
        }
        if removed.files > 0 {
            let (files, size) = (count(removed.files), bytes(removed.bytes));
            let noun = if removed.files == 1 { "file" } else { "files" };
            note(&format!("{shown}: removed {files} old {noun}, {size}"));
        }
        removed.files
    }

    /// Whether they depend on time.
    pub fn has_fields(&self) -> bool {
        self.pattern.has_fields()
    }

    /// Whether a run has several files, even without a renewal.
    pub fn are_several(&self) -> bool {
        self.has_fields() || self.rotate_ns.is_some()
    }

    /// The name of a file that is begun in a period, or now.
    pub fn at(&self, period: Option<u64>) -> PathBuf {
        period.map_or_else(|| self.at_clock(clock::now()), |seconds| self.pattern.at(seconds))
    }

    /// The name of a file that was begun then by the clock; with `--rotate`, at the last multiple.
    pub fn at_clock(&self, time: SystemTime) -> PathBuf {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let every = self.rotate_ns.map_or(1, |ns| ns / 1_000_000_000).max(1);
        self.pattern.at(seconds / every * every)
    }
}

/// A file to which records are appended. A regular file gets its final name when complete.
pub struct RecordFile {
    file: AtomicFile,
    names: FileNames,
    keep: Retention,
    /// The number of old files that were removed.
    removed: u64,
    /// When the period of the next files begins, in seconds since 1970; `None` before the first and without periods.
    period: Option<u64>,
    /// The name of the current file, if it is known.
    name: Option<PathBuf>,
    /// `None` until the next file is begun.
    out: Option<File>,
    /// Bytes of the open file that were written completely.
    len: u64,
    /// A partial write may follow these bytes.
    torn: bool,
}

impl RecordFile {
    /// Claims the name and opens the first file.
    ///
    /// # Errors
    /// A process writes files of these names; the file cannot be created.
    pub fn open(names: FileNames, rules: FileRules) -> io::Result<Self> {
        let file = AtomicFile::claim(names.path().to_owned(), rules.existing)?;
        let keep = rules.keep;
        let (period, name, out) = (None, None, None);
        let mut own =
            Self { file, names, keep, removed: 0, period, name, out, len: 0, torn: false };
        own.begin()?;
        Ok(own)
    }

    /// The current file remains if it is not finished, for the next process to complete it.
    pub(crate) fn keep_part(&mut self) {
        self.file.keep();
    }

    /// The name of the file that was finished last.
    pub(crate) fn last(&self) -> Option<&Path> {
        self.file.last()
    }

    /// The temporary file, to be removed when the program exits early.
    pub fn part(&self) -> Part {
        self.file.part()
    }

    /// Opens the next file.
    fn begin(&mut self) -> io::Result<&mut File> {
        let file = self.file.begin_file()?;
        self.len = 0;
        // Without periods a file has the time of its begin.
        let is_known = self.period.is_some() || self.names.rotate_ns.is_none();
        self.name = is_known.then(|| self.names.at(self.period));
        Ok(self.out.insert(file))
    }

    /// Replaces the contents of the current file, all at once.
    pub(crate) fn rewrite(&mut self, octets: &[u8]) -> io::Result<()> {
        self.out = Some(self.file.rewrite(octets)?);
        (self.len, self.torn) = (octets.len() as u64, false);
        Ok(())
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
            None => self.begin()?,
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
        if self.names.has_fields() {
            // A run without packets has no period.
            let name = self.name.clone().unwrap_or_else(|| self.names.at(None));
            self.file.set_name(name);
        }
        // A file that cannot be renamed keeps the name that it should have.
        self.file.finish_and_claim()?;
        (self.out, self.name) = (None, None);
        self.removed += self.names.retain(self.keep);
        Ok(())
    }

    fn begins(&mut self, seconds: u64) {
        self.period = Some(seconds);
        if self.len == 0 {
            self.name = Some(self.names.at(self.period));
        }
    }

    fn removed(&self) -> u64 {
        self.removed
    }

    fn is_regular(&self) -> bool {
        self.file.is_regular() || self.out.is_none()
    }

    fn may_abandon(&self) -> bool {
        self.file.is_stdout()
    }
}

/// Like [`Write::write_all`], but stdout may be a pipe that another process made non-blocking.
pub(crate) fn write_all(out: &mut File, mut octets: &[u8]) -> io::Result<()> {
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
    use super::*;

    fn rules(existing: Existing) -> FileRules {
        FileRules { existing, rotate_ns: None, keep: Retention::default(), keep_free: None }
    }

    #[test]
    fn between_two_files_the_name_is_not_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows");
        let claim =
            || RecordFile::open(FileNames::new(&path, None).unwrap(), rules(Existing::Next));
        let mut file = claim().unwrap();
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
            let names = FileNames::new(&path, None).unwrap();
            let mut file = RecordFile::open(names, rules(Existing::Replace)).unwrap();
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

    #[test]
    fn a_file_that_cannot_be_renamed_keeps_the_name_of_its_period() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("%Y/%s.json");
        let names = FileNames::new(&path, Some(60_000_000_000)).unwrap();
        let rules = FileRules { rotate_ns: Some(60_000_000_000), ..rules(Existing::Next) };
        let mut file = RecordFile::open(names, rules).unwrap();
        file.begins(600);
        file.write(b"line\n").unwrap();
        let year = folder.path().join("1970");
        std::fs::write(&year, "in the way").unwrap();
        assert!(file.finish().is_err());
        std::fs::remove_file(&year).unwrap();
        file.finish().unwrap();
        assert_eq!(file.last(), Some(&*year.join("600.json")));
    }
}
