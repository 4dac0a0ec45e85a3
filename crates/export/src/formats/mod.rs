//! The formats of flow records, one file each.
//!
//! | [`Format`] | contents | for |
//! |---|---|---|
//! | `json` | one object a line, IPFIX names | jq, log shippers |
//! | `csv` | a header and one line a record, the same names | spreadsheets, awk |
//! | `eve` | Suricata's `event_type: "flow"` | readers of `eve.json` |
//! | `zeek` | Zeek's `conn.log` | `zeek-cut` and readers of Zeek's logs |
//! | `parquet` | columns, the same names | DuckDB, Spark, pandas |
//!
//! `docs/RECORDS.md` has the meaning of each field, and when it is present.
//!
//! Invariants: formats are pure functions of records, without tables, clocks or files, so equal records are equal bytes.
//! A line allocates nothing once its buffer has grown.
#![forbid(unsafe_code)]

pub(crate) mod address;
mod community_id;
mod csv;
pub(crate) mod date;
pub(crate) mod eve;
mod ids;
pub(crate) mod json;
pub(crate) mod lines;
mod origins;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
pub(crate) mod protocol;
mod service;
#[cfg(test)]
mod tests;
pub(crate) mod way;
pub(crate) mod zeek;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

pub use community_id::CommunityId;
pub use origins::Origins;
#[cfg(feature = "arrow")]
pub(crate) use parquet::GrowingBatch;
#[cfg(feature = "parquet")]
pub(crate) use parquet::finish as finish_parquet;
#[cfg(feature = "parquet")]
pub use parquet::{GROUP_BYTES, GROUP_ROWS, GROUPS_MOST, ParquetFile, Rows};
use ringtap_flow::FlowRecord;

/// A text format of flow records or events: a head, one line an item, and a tail. Each function appends to its first
/// argument.
#[derive(Debug)]
pub struct TextFormat<I = FlowRecord> {
    /// Text before the lines, if any; takes the earliest packet time of the first item, nanoseconds.
    pub head: Option<fn(&mut Vec<u8>, u64, &Interfaces)>,
    /// The line of an item, with its line feed; nothing if the format has no line for it.
    pub line: fn(&mut Vec<u8>, &I, &Interfaces),
    /// Text after the lines, if any; takes the latest packet time of all items, nanoseconds.
    pub tail: Option<fn(&mut Vec<u8>, u64)>,
}

impl<I> Clone for TextFormat<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for TextFormat<I> {}

/// Defines the enum of formats, their names and their functions from one list.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $module:ident,)*) => {
        /// A format of flow records, with its name on the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[$doc])* $variant,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$variant),*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($module),)*
                }
            }

            /// The functions of a text format; `None` for a column format.
            pub const fn text(self) -> Option<TextFormat> {
                match self {
                    $(Self::$variant => $module::FORMAT,)*
                }
            }
        }
    };
}

// A new text format is a file with a constant `FORMAT`, and a line here.
formats! {
    /// JSON lines.
    Json = json,
    /// CSV.
    Csv = csv,
    /// Suricata's EVE.
    Eve = eve,
    /// Zeek's `conn.log`.
    Zeek = zeek,
    /// Apache Parquet.
    Parquet = parquet,
}

/// An interface that received packets of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number, as in `record.path.ingress`.
    pub index: u32,
    /// Its name when it was opened.
    pub name: String,
}

/// The interfaces of a run; its records contain the interface of a flow's first packet. Empty for a run over files.
/// Zeek's format has no field for it. Also which [`Origins`] the run's records have.
#[derive(Clone, Debug, Default)]
pub struct Interfaces {
    list: Arc<[(u32, String)]>,
    origins: Origins,
}

impl Interfaces {
    /// Creates the list.
    pub fn new(interfaces: &[Interface]) -> Self {
        let list = interfaces.iter().map(|one| (one.index, quoted(&one.name))).collect();
        Self { list, origins: Origins::default() }
    }

    /// Returns true if there are none: records come from files.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds columns for origins.
    #[must_use]
    pub fn with(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// The columns that not all runs have.
    #[cfg(feature = "parquet")]
    pub(crate) fn columns(&self) -> Columns {
        Columns { ingress: !self.is_empty(), origins: self.origins }
    }

    /// The name of an interface as a JSON string; `None` if it is unknown.
    pub(crate) fn quoted_name(&self, index: u32) -> Option<&str> {
        let known = self.list.iter().find(|(own, _)| index > 0 && *own == index);
        known.map(|(_, name)| name.as_str())
    }
}

/// The columns that not all runs have.
#[cfg(feature = "parquet")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// The receiving interface.
    pub ingress: bool,
    /// The origins of source and destination.
    pub origins: Origins,
}

/// A name as a JSON string.
fn quoted(name: &str) -> String {
    let mut text = Vec::new();
    ringtap_base::text::push_json(&mut text, name);
    String::from_utf8(text).unwrap_or_default()
}

/// The record format does not exist, or is not built in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// There is no such format.
    #[error("unknown record format {0:?}: use {names}", names = names())]
    Name(String),
    /// The program was built without the format.
    #[error("this program was built without the feature {0}, so it does not write {0}")]
    NotBuilt(Format),
}

/// The names of all formats, for an error message.
fn names() -> String {
    let names = Format::ALL.map(Format::name);
    match names.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

impl Format {
    /// All records as one file: what any writer of this format produces, except for the order of records and, in
    /// Parquet, the sizes of the row groups.
    ///
    /// # Errors
    /// The error of the Parquet library, or that it is not built in.
    pub fn encode(self, records: &[FlowRecord], interfaces: &Interfaces) -> io::Result<Vec<u8>> {
        let Some(TextFormat { head, line, tail }) = self.text() else {
            #[cfg(feature = "parquet")]
            return parquet::file(records, interfaces.columns());
            #[cfg(not(feature = "parquet"))]
            return Err(io::Error::other(UnknownFormat::NotBuilt(self)));
        };
        let mut out = Vec::new();
        if let Some(head) = head {
            head(&mut out, records.first().map_or(0, |record| record.first_ns), interfaces);
        }
        records.iter().for_each(|record| line(&mut out, record, interfaces));
        if let Some(tail) = tail {
            tail(&mut out, records.iter().map(|record| record.last_ns).max().unwrap_or(0));
        }
        Ok(out)
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        match known {
            Some(Self::Parquet) if cfg!(not(feature = "parquet")) => {
                Err(UnknownFormat::NotBuilt(Self::Parquet))
            }
            known => known.ok_or_else(|| UnknownFormat::Name(name.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
