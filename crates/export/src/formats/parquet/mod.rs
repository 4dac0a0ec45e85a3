//! Parquet: columns have the names of IPFIX Information Elements. Source: the Apache Parquet format.
//!
//! ```text
//! records ─▶ Rows of a worker ─▶ Rows of the file ─▶ PAR1 │ row group │ row group │ … │ footer │ PAR1
//!                               at most 65,536
//! ```
//!
//! [`ParquetFile`] returns the bytes to append and writes nothing itself, so the caller handles write errors. The file
//! is written in one pass, so it can be a pipe. Memory is bounded by the row group and the footer's data of each group:
//! some 30 KB, kept until the end. Numbers are unsigned with their own width, times are milliseconds in UTC, and
//! addresses are text, which every reader can show, compare and convert.

#[cfg(feature = "arrow")]
mod arrow;
mod column;
mod columns;

use std::io;
use std::sync::Arc;

#[cfg(feature = "arrow")]
pub(crate) use arrow::GrowingBatch;
pub use columns::Rows;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use ringtap_flow::FlowRecord;

use crate::formats::Columns;

/// Not a text format.
pub(super) const FORMAT: Option<super::TextFormat> = None;

/// Rows in a group: enough to compress well and to be read in parallel; some tens of megabytes in memory.
pub const GROUP_ROWS: usize = 1 << 16;

/// One Parquet file, encoded in memory piece by piece.
pub struct ParquetFile(SerializedFileWriter<Vec<u8>>);

impl ParquetFile {
    /// Creates an empty file, for rows that were [created](Rows::new) with the same argument.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn new(columns: Columns) -> io::Result<Self> {
        let schema = Rows::new(columns).schema().map_err(error)?;
        SerializedFileWriter::new(Vec::new(), schema, properties()).map(Self).map_err(error)
    }

    /// Encodes `rows` as a row group, clears them and returns the bytes to append to the file.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn group(&mut self, rows: &mut Rows) -> io::Result<Vec<u8>> {
        if !rows.is_empty() {
            rows.write_to(&mut self.0).map_err(error)?;
        }
        self.0.flush()?;
        Ok(std::mem::take(self.0.inner_mut()))
    }

    /// The last bytes of the file: the footer.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn end(self) -> io::Result<Vec<u8>> {
        self.0.into_inner().map_err(error)
    }
}

/// All records as one file.
pub(crate) fn file(records: &[FlowRecord], columns: Columns) -> io::Result<Vec<u8>> {
    let (mut file, mut rows) = (ParquetFile::new(columns)?, Rows::new(columns));
    let mut out = Vec::new();
    for records in records.chunks(GROUP_ROWS) {
        records.iter().for_each(|record| rows.push(record));
        out.extend(file.group(&mut rows)?);
    }
    out.extend(file.end()?);
    Ok(out)
}

/// Times and record identifiers differ in every row, so a dictionary has no benefit for them.
fn properties() -> WriterPropertiesPtr {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("ringtap ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for name in columns::TIMES {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let unique = ColumnPath::from(columns::COMMUNITY_ID);
    Arc::new(properties.set_column_dictionary_enabled(unique, false).build())
}

fn error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
