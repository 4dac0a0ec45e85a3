//! The body of a block: the rows, byte column by byte column, and their tails.
//!
//! ```text
//! columns         each as in column.rs
//! tails           0                       all are empty
//!                 1, length (4), length inflated (4), bytes
//!                                         deflated: the length of each tail (4), then all tails
//! ```

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use crate::column;
use crate::format::{Error, MOST_BODY, MOST_TAIL};

/// Rows whose columns are copied together, so that they stay in the cache.
const TILE: usize = 64;

const EMPTY: u8 = 0;
const DEFLATED: u8 = 1;

/// Rows of a block.
#[derive(Default)]
pub(crate) struct Block {
    /// Fixed parts, one after the other.
    pub(crate) fixed: Vec<u8>,
    pub(crate) tails: Vec<u8>,
    /// Where the tail of each row ends.
    pub(crate) ends: Vec<usize>,
    /// Columns that are not constant, one after the other; then tails.
    bytes: Vec<u8>,
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

    #[inline]
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
        let Self { fixed, tails, ends, bytes } = self;
        let (first, rows) = (&fixed[..width], ends.len());
        let mut differ = vec![0; width];
        for row in fixed.chunks_exact(width) {
            differ.iter_mut().zip(row).zip(first).for_each(|((differ, a), b)| *differ |= a ^ b);
        }
        let columns: Vec<usize> = (0..width).filter(|&at| differ[at] != 0).collect();
        bytes.clear();
        bytes.resize(columns.len() * rows, 0);
        for (tile, start) in fixed.chunks(TILE * width).zip((0..).step_by(TILE)) {
            for (column, &at) in bytes.chunks_exact_mut(rows).zip(&columns) {
                let from = tile[at..].iter().step_by(width);
                column[start..].iter_mut().zip(from).for_each(|(byte, from)| *byte = *from);
            }
        }
        let mut varying = bytes.chunks_exact(rows).peekable();
        for (&byte, &differ) in first.iter().zip(&differ) {
            match varying.next_if(|_| differ != 0) {
                Some(column) => column::encode(column, into),
                None => column::encode_constant(byte, into),
            }
        }
        if tails.is_empty() {
            into.push(EMPTY);
            return Ok(());
        }
        bytes.clear();
        let mut start = 0;
        for &end in &*ends {
            put_length(end - start, bytes);
            start = end;
        }
        bytes.extend_from_slice(tails);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes)?;
        let deflated = encoder.finish()?;
        into.push(DEFLATED);
        put_length(deflated.len(), into);
        put_length(bytes.len(), into);
        into.extend_from_slice(&deflated);
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
        let Self { fixed, tails, ends, bytes } = self;
        let body = &mut body;
        let (mut columns, mut row) = (Vec::new(), vec![0; width]);
        bytes.clear();
        for (at, byte) in row.iter_mut().enumerate() {
            match column::decode(body, rows, bytes)? {
                Some(constant) => *byte = constant,
                None => columns.push(at),
            }
        }
        (0..rows).for_each(|_| fixed.extend_from_slice(&row));
        for (tile, start) in fixed.chunks_mut(TILE * width).zip((0..).step_by(TILE)) {
            for (column, &at) in bytes.chunks_exact(rows).zip(&columns) {
                let to = tile[at..].iter_mut().step_by(width);
                to.zip(&column[start..]).for_each(|(to, byte)| *to = *byte);
            }
        }
        match take(body, 1)?[0] {
            EMPTY => ends.resize(rows, 0),
            DEFLATED => {
                let length = take_length(body)?;
                let whole = take_length(body)?;
                if whole > MOST_BODY {
                    return Err(Error::Damaged("tails that are too long"));
                }
                inflate(take(body, length)?, whole, bytes)?;
                let rest = &mut &bytes[..];
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

/// The next bytes of a body.
pub(crate) fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) =
        from.split_at_checked(length).ok_or(Error::Damaged("a block that is too short"))?;
    *from = rest;
    Ok(taken)
}

fn take_length(from: &mut &[u8]) -> Result<usize, Error> {
    let bytes = take(from, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}
