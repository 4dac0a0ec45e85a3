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
//! `docs/OUTPUTS.md` has the meaning of each field, and when it is present.
//!
//! Invariants: formats are pure functions of records, without tables, clocks or files, so equal records are equal bytes.
//! A line allocates nothing once its buffer has grown.
#![forbid(unsafe_code)]

pub(crate) mod address;
mod community_id;
mod csv;
pub(crate) mod date;
pub(crate) mod eve;
pub(crate) mod ids;
pub(crate) mod json;
pub(crate) mod lines;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
pub(crate) mod protocol;
mod service;
#[cfg(test)]
pub(crate) mod tests;
mod text;
pub(crate) mod zeek;

use std::fmt;
use std::io;
use std::str::FromStr;

pub use crate::fields::{Columns, Origins};
pub use community_id::CommunityId;
#[cfg(feature = "arrow")]
pub(crate) use parquet::GrowingBatch;
#[cfg(feature = "parquet")]
pub(crate) use parquet::finish as finish_parquet;
#[cfg(feature = "parquet")]
pub use parquet::{GROUP_BYTES, GROUP_ROWS, GROUPS_MOST, ParquetFile, Rows};
use ringtap_flow::FlowRecord;
pub use text::{Interface, Interfaces, TextFormat};

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

/// The names that users may expect of the format of IPFIX files.
const IPFIX: [&str; 2] = ["ipfix", "ipfix-file"];

/// The record format does not exist, or is not built in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// There is no such format.
    #[error("unknown record format {0:?}: use {names}", names = names())]
    Name(String),
    /// IPFIX has files of its own.
    #[error("IPFIX is not a format of --write: use --export ipfix-file:PATH")]
    Ipfix,
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
            None if IPFIX.contains(&name) => Err(UnknownFormat::Ipfix),
            known => known.ok_or_else(|| UnknownFormat::Name(name.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
