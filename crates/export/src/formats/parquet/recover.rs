//! Row groups of a Parquet file that did not get its footer.
//!
//! The footer alone says where the row groups are, and it comes last. So each row group is followed by a *trailer*: a
//! footer that describes this row group alone. Readers never look at it. From the trailers of a file that ends early,
//! [`finish`] makes its footer.
//!
//! ```text
//! PAR1 │ row group │ trailer │ row group │ trailer │ row gr      as a killed process leaves it
//! PAR1 │ row group │ trailer │ row group │ trailer │ footer      finished
//! ```

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData,
};

use crate::search::rfind;

/// The first and last bytes of a file, and the last of a trailer. The length of the metadata is before them.
const MAGIC: &[u8; 4] = b"PAR1";
const END: u64 = 8;

/// The program, as named in the footer.
pub(super) const CREATED_BY: &str = concat!("ringtap ", env!("CARGO_PKG_VERSION"));

/// The most bytes of a trailer.
const TRAILER_MOST: u64 = 1 << 20;

pub(super) fn error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// The trailer of a row group.
pub(super) fn trailer(group: &RowGroupMetaData) -> io::Result<Vec<u8>> {
    footer(vec![group.clone()]).map_err(error)
}

fn footer(groups: Vec<RowGroupMetaData>) -> Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    let Some(first) = groups.first() else { return Ok(bytes) };
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let by = Some(CREATED_BY.to_owned());
    let file = FileMetaData::new(1, rows, by, None, first.schema_descr_ptr(), None);
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish()?;
    Ok(bytes)
}

/// Gives a file of `len` bytes its footer, after its last whole row group. Returns the end of that; 0 if there is none.
pub(crate) fn finish(file: &mut File, len: u64) -> io::Result<u64> {
    let mut last = None;
    rfind(file, len, MAGIC, |file, at| {
        last = read(file, at + MAGIC.len() as u64)?;
        Ok(last.is_some())
    })?;
    let Some(mut found) = last else { return Ok(0) };
    let end = found.end;
    let mut groups = vec![found.group];
    while found.start > MAGIC.len() as u64 {
        let before = read(file, found.start)?;
        found = before.ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidData, "the metadata of a row group is damaged")
        })?;
        groups.push(found.group);
    }
    groups.reverse();
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(&footer(groups).map_err(error)?)?;
    Ok(end)
}

/// A row group with its trailer.
struct Found {
    group: RowGroupMetaData,
    /// First byte of the row group.
    start: u64,
    /// First byte after the trailer.
    end: u64,
}

/// The row group whose trailer ends at `end`; `None` if no trailer ends there.
fn read(file: &mut File, end: u64) -> io::Result<Option<Found>> {
    let Some(from) = end.checked_sub(END) else { return Ok(None) };
    let mut last = [0; END as usize];
    file.seek(SeekFrom::Start(from))?;
    file.read_exact(&mut last)?;
    let [l0, l1, l2, l3, magic @ ..] = last;
    let octets = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    if magic != *MAGIC || octets > TRAILER_MOST.min(from) {
        return Ok(None);
    }
    let mut bytes = vec![0; octets as usize];
    file.seek(SeekFrom::Start(from - octets))?;
    file.read_exact(&mut bytes)?;
    // All of it is written again.
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let decoded = ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options));
    let Ok(metadata) = decoded else { return Ok(None) };
    let [group] = metadata.row_groups() else { return Ok(None) };
    let ranges = || group.columns().iter().map(|column| column.byte_range());
    let start = ranges().map(|(start, _)| start).min();
    let stop = ranges().map(|(start, octets)| start.saturating_add(octets)).max();
    // The group ends where its trailer begins.
    Ok(match (start, stop) {
        (Some(start), Some(stop)) if start >= MAGIC.len() as u64 && stop == from - octets => {
            Some(Found { group: group.clone(), start, end })
        }
        _ => None,
    })
}
