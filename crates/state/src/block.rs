//! The body of a block: the rows, byte column by byte column, and their tails.
//!
//! ```text
//! each column     0, byte                 all rows have this byte
//!                 1, bytes                a byte for each row
//!                 2, length (4), bytes    the same, deflated
//! tails           0                       all are empty
//!                 2, length (4), length inflated (4), bytes
//!                                         deflated: the length of each tail (4), then all tails
//! ```
//!
//! Most columns of addresses, times and counters are constant or nearly so; the others hardly compress. So each is
//! stored in the shortest way, and a constant one costs nothing when it is read.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::format::{Error, MOST_BODY, MOST_TAIL};

const CONSTANT: u8 = 0;
const RAW: u8 = 1;
const DEFLATED: u8 = 2;

/// Rows of a block.
#[derive(Default)]
pub(crate) struct Block {
    /// Fixed parts, one after the other.
    pub(crate) fixed: Vec<u8>,
    pub(crate) tails: Vec<u8>,
    /// Where the tail of each row ends.
    pub(crate) ends: Vec<usize>,
    column: Vec<u8>,
    packed: Vec<u8>,
}

fn deflate(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
    into.clear();
    let mut encoder = DeflateEncoder::new(into, Compression::new(3));
    encoder.write_all(bytes)?;
    encoder.finish()?;
    Ok(())
}

/// Inflates exactly `length` bytes.
fn inflate(bytes: &[u8], length: usize, into: &mut Vec<u8>) -> Result<(), Error> {
    const WRONG: Error = Error::Damaged("compressed bytes");
    into.clear();
    let mut decoder = DeflateDecoder::new(bytes).take(length as u64 + 1);
    decoder.read_to_end(into).map_err(|_| WRONG)?;
    if into.len() == length { Ok(()) } else { Err(WRONG) }
}

fn put_length(length: usize, into: &mut Vec<u8>) {
    into.extend_from_slice(&(length as u32).to_le_bytes());
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.fixed.clear();
        self.tails.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, fixed: &[u8], tail: &[u8]) {
        self.fixed.extend_from_slice(fixed);
        self.tails.extend_from_slice(tail);
        self.ends.push(self.tails.len());
    }

    /// The tail of a row.
    #[inline]
    pub(crate) fn tail(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.tails[start..self.ends[at]]
    }

    /// Appends the body to `into`.
    pub(crate) fn encode(&mut self, width: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let Self { fixed, tails, ends, column, packed } = self;
        for at in 0..width {
            let mut bytes = fixed[at..].iter().step_by(width).copied();
            let first = fixed[at];
            if bytes.clone().all(|byte| byte == first) {
                into.extend_from_slice(&[CONSTANT, first]);
                continue;
            }
            column.clear();
            column.extend(&mut bytes);
            deflate(column, packed)?;
            if packed.len() + 4 < column.len() {
                into.push(DEFLATED);
                put_length(packed.len(), into);
                into.extend_from_slice(packed);
            } else {
                into.push(RAW);
                into.extend_from_slice(column);
            }
        }
        if tails.is_empty() {
            into.push(CONSTANT);
            return Ok(());
        }
        column.clear();
        let mut start = 0;
        for &end in &*ends {
            put_length(end - start, column);
            start = end;
        }
        column.extend_from_slice(tails);
        deflate(column, packed)?;
        into.push(DEFLATED);
        put_length(packed.len(), into);
        put_length(column.len(), into);
        into.extend_from_slice(packed);
        Ok(())
    }

    /// Reads a body of `rows` rows.
    pub(crate) fn decode(
        &mut self,
        mut body: &[u8],
        width: usize,
        rows: usize,
    ) -> Result<(), Error> {
        self.clear();
        let Self { fixed, tails, ends, column, .. } = self;
        let body = &mut body;
        // A row with the constant columns, to begin with.
        let mut columns: Vec<(usize, usize)> = Vec::new();
        let mut first = vec![0; width];
        column.clear();
        let mut inflated = Vec::new();
        for (at, byte) in first.iter_mut().enumerate() {
            match take(body, 1)?[0] {
                CONSTANT => *byte = take(body, 1)?[0],
                RAW => {
                    columns.push((at, column.len()));
                    column.extend_from_slice(take(body, rows)?);
                }
                DEFLATED => {
                    let length = take_length(body)?;
                    inflate(take(body, length)?, rows, &mut inflated)?;
                    columns.push((at, column.len()));
                    column.extend_from_slice(&inflated);
                }
                _ => return Err(Error::Damaged("a column of an unknown kind")),
            }
        }
        for _ in 0..rows {
            fixed.extend_from_slice(&first);
        }
        for (at, start) in columns {
            let places = fixed[at..].iter_mut().step_by(width);
            places.zip(&column[start..start + rows]).for_each(|(place, byte)| *place = *byte);
        }
        match take(body, 1)?[0] {
            CONSTANT => ends.resize(rows, 0),
            DEFLATED => {
                let length = take_length(body)?;
                let whole = take_length(body)?;
                if whole > MOST_BODY {
                    return Err(Error::Damaged("tails that are too long"));
                }
                inflate(take(body, length)?, whole, &mut inflated)?;
                let rest = &mut &inflated[..];
                let mut end = 0_usize;
                for _ in 0..rows {
                    let length = take_length(rest)?;
                    if length > MOST_TAIL {
                        return Err(Error::Damaged("a tail that is too long"));
                    }
                    end += length;
                    ends.push(end);
                }
                if rest.len() != end {
                    return Err(Error::Damaged("the lengths of tails"));
                }
                tails.extend_from_slice(rest);
            }
            _ => return Err(Error::Damaged("tails of an unknown kind")),
        }
        if body.is_empty() { Ok(()) } else { Err(Error::Damaged("a block that is too long")) }
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) =
        from.split_at_checked(length).ok_or(Error::Damaged("a block that is too short"))?;
    *from = rest;
    Ok(taken)
}

fn take_length(from: &mut &[u8]) -> Result<usize, Error> {
    let bytes = take(from, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}
