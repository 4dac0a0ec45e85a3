//! Flow records in the formats of others, each format in a file of its own.
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
//! Invariants: formats are pure functions of records, without tables, clocks or files, so equal records are equal bytes.
//! A line allocates nothing once its buffer has grown.
#![forbid(unsafe_code)]

mod address;
mod community_id;
mod csv;
mod date;
mod eve;
mod ids;
mod json;
mod lines;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
mod protocol;
#[cfg(test)]
mod tests;
mod way;
mod zeek;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

pub use community_id::CommunityId;
#[cfg(feature = "parquet")]
pub use parquet::{GROUP_ROWS, ParquetFile, Rows};
use ringtap_flow::FlowRecord;

/// A format of text: a head, one line a record, and a tail. Each function appends to its first argument.
#[derive(Clone, Copy, Debug)]
pub struct TextFormat {
    /// What stands before the lines, if anything; takes the earliest packet time of the first record, nanoseconds.
    pub head: Option<fn(&mut Vec<u8>, u64, &Interfaces)>,
    /// The line of a record, with its line feed.
    pub line: fn(&mut Vec<u8>, &FlowRecord, &Interfaces),
    /// What stands behind the lines, if anything; takes the latest packet time of all records, nanoseconds.
    pub tail: Option<fn(&mut Vec<u8>, u64)>,
}

/// Makes of the list the enum, the names, and what each format is.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident = $module:ident,)*) => {
        /// A format of flow records, as named on the command line.
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

            /// The functions of a text format; `None` for one of columns.
            pub const fn text(self) -> Option<TextFormat> {
                match self {
                    $(Self::$variant => $module::FORMAT,)*
                }
            }
        }
    };
}

// A new format of text is a file with its `FORMAT`, and a line here.
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

/// An interface that packets of flows were received by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number, as in `record.path.ingress`.
    pub index: u32,
    /// Its name when it was opened.
    pub name: String,
}

/// The interfaces of a run, whose records name the interface of a flow's first packet; none for a run over files. Zeek's
/// format has no field for it.
#[derive(Clone, Debug, Default)]
pub struct Interfaces(Arc<[(u32, String)]>);

impl Interfaces {
    /// These interfaces.
    pub fn new(interfaces: &[Interface]) -> Self {
        Self(interfaces.iter().map(|one| (one.index, quoted(&one.name))).collect())
    }

    /// Whether there are none: records come from files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of an interface as a JSON string; `None` if it is unknown.
    pub(crate) fn quoted_name(&self, index: u32) -> Option<&str> {
        let known = self.0.iter().find(|(own, _)| index > 0 && *own == index);
        known.map(|(_, name)| name.as_str())
    }
}

/// A name as a JSON string.
fn quoted(name: &str) -> String {
    let mut text = String::from('"');
    for letter in name.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            control if control < ' ' => text += &format!("\\u{:04x}", u32::from(control)),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// No record format has this name, or not in this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// No format is called so.
    #[error("unknown record format {0:?}: use {names}", names = names())]
    Name(String),
    /// It is left out of this program.
    #[error("this program was built without the feature {0}, so it does not write {0}")]
    NotBuilt(Format),
}

/// The names of all formats, as a list in a sentence.
fn names() -> String {
    let names = Format::ALL.map(Format::name);
    match names.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

impl Format {
    /// All records as one file: what any writer of this format must produce, up to the order of records and, in
    /// Parquet, the sizes of the row groups.
    ///
    /// # Errors
    /// What the Parquet library reports, or that there is none in this program.
    pub fn encode(self, records: &[FlowRecord], interfaces: &Interfaces) -> io::Result<Vec<u8>> {
        let Some(TextFormat { head, line, tail }) = self.text() else {
            #[cfg(feature = "parquet")]
            return parquet::file(records, !interfaces.is_empty());
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
