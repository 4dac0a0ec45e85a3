//! Flow records in the formats of others: one [`RecordWriter`] a format, each in a file of its own.
//!
//! | [`Format`] | is | for |
//! |---|---|---|
//! | `json` | one object a line, IPFIX names | jq, log shippers |
//! | `csv` | a header and one line a record, the same names | spreadsheets, awk |
//! | `eve` | Suricata's `event_type: "flow"` | what reads `eve.json` |
//! | `zeek` | Zeek's `conn.log` | `zeek-cut` and what reads Zeek's logs |
//! | `parquet` | columns, the same names | DuckDB, Spark, pandas |
//!
//! What each field means, and what is there when, stands in `docs/RECORDS.md`.
//!
//! Invariants: a writer knows records, neither tables nor clocks nor files, so equal records are equal bytes. A line is
//! written whole or reported as an error, and no line allocates.
#![forbid(unsafe_code)]

mod address;
mod community_id;
mod csv;
mod date;
mod eve;
mod ids;
mod json;
mod lines;
mod parquet;
mod protocol;
#[cfg(test)]
mod tests;
mod way;
mod zeek;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

pub use community_id::CommunityId;
pub use csv::Csv;
pub use eve::Eve;
pub use json::JsonLines;
pub use parquet::Parquet;
use ringtap_flow::FlowRecord;
pub use zeek::Zeek;

/// Writes flow records somewhere.
pub trait RecordWriter: Send {
    /// Takes one record. It may be held back for a while.
    ///
    /// # Errors
    /// What the destination says, of this record or of those held back. Of lines, this one is then not written and
    /// those held back still are, if the destination recovers; a Parquet file is beyond repair.
    fn write(&mut self, record: &FlowRecord) -> io::Result<()>;

    /// Passes on what is held back, so that readers are up to date. Parquet holds rows back until a group is full.
    ///
    /// # Errors
    /// What the destination says.
    fn flush(&mut self) -> io::Result<()>;

    /// Passes on all that is held back, and what the format has at its end. Nothing may be written afterwards.
    ///
    /// # Errors
    /// What the destination says.
    fn finish(&mut self) -> io::Result<()>;
}

/// A format of flow records, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// [`JsonLines`].
    Json,
    /// [`Csv`].
    Csv,
    /// [`Eve`].
    Eve,
    /// [`Zeek`].
    Zeek,
    /// [`Parquet`].
    Parquet,
}

/// No record format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown record format {0:?}: json, csv, eve, zeek and parquet are written")]
pub struct UnknownFormat(pub String);

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Json, Self::Csv, Self::Eve, Self::Zeek, Self::Parquet];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Eve => "eve",
            Self::Zeek => "zeek",
            Self::Parquet => "parquet",
        }
    }

    /// A writer of this format. The destination needs no buffer of its own.
    pub fn writer<'a>(self, out: Box<dyn Write + Send + 'a>) -> Box<dyn RecordWriter + 'a> {
        match self {
            Self::Json => Box::new(JsonLines::new(out)),
            Self::Csv => Box::new(Csv::new(out)),
            Self::Eve => Box::new(Eve::new(out)),
            Self::Zeek => Box::new(Zeek::new(out)),
            Self::Parquet => Box::new(Parquet::new(out)),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
