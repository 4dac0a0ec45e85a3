//! What readers give, and count.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ringtap_export::sums::{Column, NamedRow, RowSum};

/// A record that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its sum.
    pub sum: RowSum,
    /// Whether [`RowSum::all`] counts: the source has all fields of records, not only those of the core.
    pub is_whole: bool,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files that were read to their ends.
    pub files: u64,
    /// Records.
    pub rows: u64,
    /// Lines and rows that are not records.
    pub invalid: u64,
    /// The first of them.
    pub first_invalid: Option<Invalid>,
    /// Files in the folder that are of no known kind.
    pub skipped: u64,
    /// The first of them.
    pub first_skipped: Option<PathBuf>,
}

/// A line, or a row, that is not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The file.
    pub path: PathBuf,
    /// Its number in the file, from 1.
    pub line: u64,
    /// Why it is none.
    pub reason: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.path.display(), self.line, self.reason)
    }
}

/// Records could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ArrivedError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

/// Why records could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The system's error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A file of no known kind.
    #[error(
        "neither JSON lines of records, nor CSV with their header, nor Parquet, nor a file of nfcapd; unpack it, if it \
         is compressed"
    )]
    Unknown,
    /// No column has these names.
    #[error("no flow records: there is no column {0}")]
    NoColumn(&'static str),
    /// The folder has no file of records.
    #[error("no file of records is in the folder")]
    NoFiles,
    /// nfdump could not be started.
    #[error("a file of nfcapd is read with nfdump, which is not installed: install nfdump")]
    NoNfdump,
    /// The message of nfdump.
    #[error("nfdump cannot read it: {0}")]
    Nfdump(String),
    /// The error of the Parquet library.
    #[error("no whole Parquet file of records: {0}")]
    Parquet(String),
    /// The program was built without the feature.
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without the feature parquet, so it does not read Parquet")]
    NotBuilt,
}

/// The system's error about a file.
pub(super) fn failed(path: &Path, source: io::Error) -> ArrivedError {
    ArrivedError { path: path.to_owned(), reason: source.into() }
}

/// Names without which no row is a record.
const NEEDED: [&str; 3] = ["flowEndMilliseconds", "sourceIPAddress", "destinationIPAddress"];

/// Takes the rows of all files.
pub(super) struct Rows<'a> {
    /// The values of the current row.
    pub(super) row: NamedRow,
    path: PathBuf,
    counts: Counts,
    each: &'a mut dyn FnMut(&Arrived),
}

impl<'a> Rows<'a> {
    pub(super) fn new(path: &Path, each: &'a mut dyn FnMut(&Arrived)) -> Self {
        let (row, counts) = (NamedRow::default(), Counts::default());
        Self { row, path: path.to_owned(), counts, each }
    }

    /// Starts a file.
    pub(super) fn start(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
    }

    /// The file was read to its end.
    pub(super) fn finish(&mut self) {
        self.counts.files += 1;
    }

    /// A file in the folder is of no known kind.
    pub(super) fn skip(&mut self, path: PathBuf) {
        self.counts.skipped += 1;
        self.counts.first_skipped.get_or_insert(path);
    }

    /// The row of this line is complete; `added` is the error of its values.
    pub(super) fn end_row(
        &mut self,
        line: u64,
        added: Result<(), impl fmt::Display>,
        is_whole: bool,
    ) {
        match (added, self.row.sum()) {
            (Ok(()), Some(sum)) => {
                self.counts.rows += 1;
                (self.each)(&Arrived { sum, is_whole });
            }
            (Ok(()), None) => {
                self.invalid(line, "no flow record: the flow's end or an address is missing")
            }
            (Err(error), _) => self.invalid(line, error),
        }
        self.row.clear();
    }

    /// A line is not a record.
    pub(super) fn invalid(&mut self, line: u64, reason: impl fmt::Display) {
        self.counts.invalid += 1;
        let path = &self.path;
        self.counts.first_invalid.get_or_insert_with(|| Invalid {
            path: path.clone(),
            line,
            reason: reason.to_string(),
        });
    }

    /// Whether these columns have all fields of records.
    ///
    /// # Errors
    /// They are not those of records.
    pub(super) fn is_whole(&self, columns: &[Option<Column>]) -> Result<bool, ArrivedError> {
        let has = |column: Column| columns.contains(&Some(column));
        for name in NEEDED {
            if !Column::named(name).is_some_and(has) {
                return Err(self.error(Reason::NoColumn(name)));
            }
        }
        Ok(Column::of_all_runs().all(has))
    }

    /// An error about the current file.
    pub(super) fn error(&self, reason: impl Into<Reason>) -> ArrivedError {
        ArrivedError { path: self.path.clone(), reason: reason.into() }
    }

    pub(super) fn end(self) -> Counts {
        self.counts
    }
}
