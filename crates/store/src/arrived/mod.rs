//! Records that arrived elsewhere, read as sums, to be compared with those of a store.
//!
//! | kind | recognised by | file |
//! |---|---|---|
//! | JSON lines | `{`, or the name; `-` is stdin | `json.rs` |
//! | CSV | its header, or the name | `csv.rs` |
//! | Parquet | `PAR1` | `parquet.rs` |
//! | files of nfcapd, read by nfdump | their first octets | `nfdump.rs` |
//!
//! In a folder all files are read, sorted by name; hidden and unfinished ones (`.part`, `nfcapd.current`) and symbolic
//! links are left out, and files of other kinds are counted.
//!
//! Invariants: any bytes are read in bounded memory: one line, or the pages of one row group. What is no record is counted,
//! and does not end the reading; a file that cannot be read to its end does.

mod csv;
mod json;
mod lines;
mod nfdump;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;
mod rows;
mod walk;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use rows::Rows;
pub use rows::{Arrived, ArrivedError, Counts, Invalid, Reason};

/// What a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Csv,
    Parquet,
    Nfcapd,
}

impl Kind {
    /// The kind of a file, by its first bytes and its name.
    fn of(path: &Path, first: &[u8]) -> Option<Self> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match first {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [0x0c, 0xa5, ..] | [0xa5, 0x0c, ..] => Some(Self::Nfcapd),
            _ if extension == "csv" || csv::is_header(first) => Some(Self::Csv),
            _ if ["json", "jsonl", "ndjson"].iter().any(|name| extension == *name) => {
                Some(Self::Json)
            }
            [b'{', ..] | [] => Some(Self::Json),
            _ => None,
        }
    }
}

/// The names of the columns of a Parquet file.
///
/// # Errors
/// The file is none, or cannot be read.
pub fn column_names(path: &Path) -> Result<Vec<String>, ArrivedError> {
    let file = File::open(path).map_err(|source| rows::failed(path, source))?;
    parquet::names(file, path)
}

/// Bytes read at a time. The header of a CSV file must fit.
const BUFFER_BYTES: usize = 64 << 10;

/// Reads all records of a file, of a folder, or of stdin (`-`, JSON lines), and gives each to `each`.
///
/// # Errors
/// A file cannot be read to its end, or is not of a known kind; a folder has no file of records.
pub fn read(path: &Path, each: &mut dyn FnMut(&Arrived)) -> Result<Counts, ArrivedError> {
    let mut rows = Rows::new(path, each);
    if path.as_os_str() == "-" {
        json::read(io::stdin().lock(), &mut rows)?;
        return Ok(rows.end());
    }
    let failed = |source| rows::failed(path, source);
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_dir() {
        file(path, &mut rows)?;
        return Ok(rows.end());
    }
    walk::files(path, &mut |path| match file(path, &mut rows) {
        Err(ArrivedError { reason: Reason::Unknown | Reason::NoColumn(_), path }) => {
            rows.skip(path);
            Ok(())
        }
        other => other,
    })?;
    let counts = rows.end();
    if counts.files == 0 {
        return Err(ArrivedError { path: path.to_owned(), reason: Reason::NoFiles });
    }
    Ok(counts)
}

/// Reads a file.
fn file(path: &Path, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let failed = |source| rows::failed(path, source);
    let file = File::open(path).map_err(failed)?;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let first = input.fill_buf().map_err(failed)?;
    let kind = Kind::of(path, first);
    rows.start(path);
    match kind {
        Some(Kind::Json) => json::read(input, rows),
        Some(Kind::Csv) => csv::read(input, rows),
        Some(Kind::Parquet) => parquet::read(input.into_inner(), rows),
        Some(Kind::Nfcapd) => nfdump::read(path, rows),
        None => Err(rows.error(Reason::Unknown)),
    }?;
    rows.finish();
    Ok(())
}
