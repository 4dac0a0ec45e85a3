//! Parquet: columns have the names of IPFIX Information Elements. Source: the Apache Parquet format.
//!
//! ```text
//! records ─▶ Rows of a worker ─▶ Rows of the file ─▶ PAR1 │ row group │ row group │ … │ footer │ PAR1
//!                               at most 65,536
//! ```
//!
//! [`ParquetFile`] returns the bytes to append and writes nothing itself, so the caller handles write errors. The file
//! is written in one pass, so it can be a pipe. Memory is bounded by the row group and the footer's data of each group,
//! [`GROUP_BYTES`] kept until the end, of at most [`GROUPS_MOST`] groups. Numbers are unsigned with their own width, times are milliseconds in UTC, and
//! addresses are text, which every reader can show, compare and convert.

#[cfg(feature = "arrow")]
mod arrow;
mod column;
mod columns;
mod recover;

use std::io;
use std::sync::Arc;

#[cfg(feature = "arrow")]
pub(crate) use arrow::GrowingBatch;
pub use column::GROUP_ROWS;
pub use columns::Rows;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
pub(crate) use recover::finish;
use recover::{CREATED_BY, error};
use ringtap_flow::FlowRecord;

use crate::fields::{Columns, FIELDS, Row, Type, communityId};
use crate::formats::TextFormat;

/// Not a text format.
pub(super) const FORMAT: Option<TextFormat> = None;

/// The most row groups of a file: the memory for its footer is bounded.
pub const GROUPS_MOST: usize = 512;

/// Memory for the footer's data of a row group, bytes.
pub const GROUP_BYTES: usize = 60 << 10;

/// One Parquet file, encoded in memory piece by piece.
pub struct ParquetFile {
    writer: SerializedFileWriter<Vec<u8>>,
    has_trailers: bool,
}

impl ParquetFile {
    /// Creates an empty file, for rows that were [created](Rows::new) with the same argument.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn new(columns: Columns) -> io::Result<Self> {
        let schema = Rows::new(columns).schema().map_err(error)?;
        let writer = SerializedFileWriter::new(Vec::new(), schema, properties()).map_err(error)?;
        Ok(Self { writer, has_trailers: false })
    }

    /// Adds metadata behind each row group, from which the footer can be made if the file does not get it.
    #[must_use]
    pub fn with_trailers(self) -> Self {
        Self { has_trailers: true, ..self }
    }

    /// Number of row groups so far.
    pub fn groups(&self) -> usize {
        self.writer.flushed_row_groups().len()
    }

    /// Encodes `rows` as a row group, clears them and returns the bytes to append to the file.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn group(&mut self, rows: &mut Rows) -> io::Result<Vec<u8>> {
        if !rows.is_empty() {
            rows.write_to(&mut self.writer).map_err(error)?;
            if let (true, Some(group)) =
                (self.has_trailers, self.writer.flushed_row_groups().last())
            {
                let trailer = recover::trailer(group)?;
                self.writer.write_all(&trailer)?;
            }
        }
        self.writer.flush()?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// The last bytes of the file: the footer.
    ///
    /// # Errors
    /// The error of the Parquet library.
    pub fn end(self) -> io::Result<Vec<u8>> {
        self.writer.into_inner().map_err(error)
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
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for field in FIELDS.iter().filter(|field| field.value == Type::Time) {
        let path = ColumnPath::from(field.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let unique = ColumnPath::from(communityId::FIELD.name);
    Arc::new(properties.set_column_dictionary_enabled(unique, false).build())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

    use super::*;
    use crate::cut::Cut;

    fn record() -> FlowRecord {
        FlowRecord::new(FlowKey {
            version: IpVersion::V4,
            src: [1; 16],
            dst: [2; 16],
            src_port: 1,
            dst_port: 2,
            protocol: 6,
        })
    }

    /// A file of `groups` groups of growing size: the bytes that are written, and the rows until then.
    fn pieces(groups: usize) -> (Vec<(Vec<u8>, i64)>, Vec<u8>) {
        let columns = Columns::default();
        let mut file = ParquetFile::new(columns).unwrap().with_trailers();
        let mut rows = Rows::new(columns);
        let mut total = 0;
        let all = (1..=groups).map(|number| {
            (0..number).for_each(|_| rows.push(&record()));
            total += number as i64;
            (file.group(&mut rows).unwrap(), total)
        });
        (all.collect(), file.end().unwrap())
    }

    fn joined(pieces: &[(Vec<u8>, i64)]) -> Vec<u8> {
        pieces.iter().flat_map(|(bytes, _)| bytes.clone()).collect()
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_row_groups() {
        let (pieces, footer) = pieces(3);
        let whole = [joined(&pieces), footer].concat();
        let mut ends = vec![(0, 0)];
        for (bytes, rows) in &pieces {
            ends.push((ends[ends.len() - 1].0 + bytes.len(), *rows));
        }
        let of_interest = |len: &usize| {
            len.is_multiple_of(1_009)
                || ends.iter().any(|(end, _)| len.abs_diff(*end) < 20)
                || *len == whole.len()
        };
        for len in (0..=whole.len()).filter(of_interest) {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&whole[..len]).unwrap();
            let end = Cut::RowGroup.finish(&mut file).unwrap();
            let (expected, rows) = *ends.iter().rfind(|(end, _)| *end <= len).unwrap();
            assert_eq!(end as usize, expected, "{len}");
            if rows > 0 {
                let read = SerializedFileReader::new(file).unwrap();
                assert_eq!(read.metadata().file_metadata().num_rows(), rows);
                assert_eq!(read.get_row_iter(None).unwrap().count() as i64, rows);
                if rows == 6 {
                    let mut file = tempfile::tempfile().unwrap();
                    file.write_all(&whole).unwrap();
                    let finished = SerializedFileReader::new(file).unwrap();
                    assert_eq!(read.metadata().row_groups(), finished.metadata().row_groups());
                }
            }
        }
    }

    #[test]
    fn a_damaged_row_group_is_an_error() {
        let (pieces, _) = pieces(2);
        let mut bytes = joined(&pieces);
        let first = pieces[0].0.len();
        bytes[first - 1] ^= 1;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let error = Cut::RowGroup.finish(&mut file).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }

    #[test]
    fn the_memory_of_the_footer_is_bounded() {
        let columns = Columns::default();
        let mut file = ParquetFile::new(columns).unwrap().with_trailers();
        let mut rows = Rows::new(columns);
        for _ in 0..8 {
            rows.push(&record());
            file.group(&mut rows).unwrap();
        }
        let groups = file.writer.flushed_row_groups();
        let all = groups.to_vec();
        let bytes = memory(&groups[0], all) - memory(&groups[0], Vec::new());
        assert!(bytes / 8 <= GROUP_BYTES, "{} bytes a row group", bytes / 8);
    }

    /// The memory of the metadata of a file with these row groups, of the schema of `one`.
    fn memory(one: &RowGroupMetaData, groups: Vec<RowGroupMetaData>) -> usize {
        let file = FileMetaData::new(1, 1, None, None, one.schema_descr_ptr(), None);
        ParquetMetaData::new(file, groups).memory_size()
    }
}
