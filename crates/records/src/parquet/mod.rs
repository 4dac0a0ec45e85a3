//! Parquet: columns named as the IPFIX Information Elements are. Source: the Apache Parquet format.
//!
//! ```text
//! records ─▶ columns in memory ─▶ PAR1 │ row group │ row group │ … │ footer │ PAR1
//!            65,536 rows at the most     by finish(), which makes it a file ─┘
//! ```
//!
//! Written in one pass, so a pipe does as well as a file. Memory is bounded by the row group. Numbers are unsigned of
//! their own width, times are milliseconds in UTC, and addresses are text: every reader shows, compares and casts those,
//! while bytes of 4 or 16 would need a function first.

mod columns;

use std::io::{self, Write};
use std::sync::Arc;

use columns::Columns;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use ringtap_flow::FlowRecord;

use crate::RecordWriter;

/// Rows in a group: enough to compress well and to be read in parallel, and some tens of megabytes while in memory.
const GROUP: usize = 1 << 16;

/// Writes one Parquet file, which is whole after [`RecordWriter::finish`].
pub struct Parquet<W: Write + Send> {
    columns: Columns,
    file: File<W>,
}

enum File<W: Write + Send> {
    /// Nothing is written yet.
    Fresh(W),
    Begun(SerializedFileWriter<W>),
    /// Finished, or failed: what could follow would not fit what is there.
    Over,
}

impl<W: Write + Send> Parquet<W> {
    /// A writer to `out`, which needs no buffer of its own.
    pub fn new(out: W) -> Self {
        Self { columns: Columns::new(), file: File::Fresh(out) }
    }

    /// Writes what rows there are as a row group; a failure is the end of the file.
    fn end_group(&mut self) -> io::Result<SerializedFileWriter<W>> {
        let begun = match std::mem::replace(&mut self.file, File::Over) {
            File::Fresh(out) => {
                SerializedFileWriter::new(out, Columns::schema().map_err(error)?, properties())
            }
            File::Begun(file) => Ok(file),
            File::Over => return Err(io::Error::other("the Parquet file has ended")),
        };
        let mut file = begun.map_err(error)?;
        if self.columns.rows() > 0 {
            self.columns.write_to(&mut file).map_err(error)?;
        }
        Ok(file)
    }
}

impl<W: Write + Send> RecordWriter for Parquet<W> {
    fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        if self.columns.rows() == GROUP || matches!(self.file, File::Over) {
            self.file = File::Begun(self.end_group()?);
        }
        self.columns.push(record);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            File::Begun(file) => file.inner_mut().flush(),
            File::Fresh(_) | File::Over => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut out = self.end_group()?.into_inner().map_err(error)?;
        out.flush()
    }
}

/// Times and the names of single flows have a new value in every row, so a dictionary of them would only cost.
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

/// What the destination said, as it said it.
fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
