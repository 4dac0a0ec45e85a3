//! The body of a block: the rows, byte column by byte column, and their tails.
//!
//! ```text
//! columns         each as in column.rs
//! tails           0                       all are empty
//!                 1, length (4), length inflated (4), bytes
//!                                         deflated: the length of each tail (4), then all tails
//! ```

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::Row;
use crate::column;
use crate::format::{Error, MOST_BODY, MOST_TAIL, take};
use crate::tails::Tails;
use crate::transpose::{BYTES, Piece, SIDE, Word, differences, into_columns, into_rows, words};

const EMPTY: u8 = 0;
const DEFLATED: u8 = 1;

/// Rows of a block.
#[derive(Default)]
pub(crate) struct Block {
    rows: usize,
    /// Words of a fixed part.
    words: usize,
    /// Fixed parts, one after the other, each filled up to a whole word.
    fixed: Vec<Word>,
    tails: Tails,
    /// Of blocks that are read, the words that all rows have.
    constant: Vec<Option<Word>>,
    /// Columns of the words that differ between rows.
    columns: Vec<Piece>,
    deflate: Deflate,
}

/// Compresses and decompresses the tails of one block after the other, in the same memory.
#[derive(Default)]
struct Deflate {
    compress: Option<Compress>,
    decompress: Option<Decompress>,
    /// The tails of a block with their lengths.
    whole: Vec<u8>,
    deflated: Vec<u8>,
}

impl Deflate {
    /// Deflates `whole`.
    fn deflate(&mut self) -> Result<&[u8], Error> {
        let Self { compress, whole, deflated, .. } = self;
        let compress = compress.get_or_insert_with(|| Compress::new(Compression::fast(), false));
        compress.reset();
        deflated.clear();
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            // Once is enough, so the bytes do not depend on the room that blocks before needed.
            deflated.reserve(whole.len() + whole.len() / 8 + 64);
            let rest = &whole[compress.total_in() as usize..];
            status = compress
                .compress_vec(rest, deflated, FlushCompress::Finish)
                .map_err(|error| Error::Io(error.into()))?;
        }
        Ok(deflated)
    }

    /// Inflates to exactly `length` bytes. A wrong length takes at most 1 MiB more.
    fn inflate(&mut self, bytes: &[u8], length: usize) -> Result<&[u8], Error> {
        const WRONG: Error = Error::Damaged("compressed bytes");
        let Self { decompress, whole, .. } = self;
        let decompress = decompress.get_or_insert_with(|| Decompress::new(false));
        decompress.reset(false);
        whole.clear();
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            let before = (decompress.total_in(), whole.len());
            whole.reserve(whole.len().clamp(1 << 14, 1 << 20));
            let rest = &bytes[decompress.total_in() as usize..];
            status =
                decompress.decompress_vec(rest, whole, FlushDecompress::None).map_err(|_| WRONG)?;
            if whole.len() > length || (decompress.total_in(), whole.len()) == before {
                return Err(WRONG);
            }
        }
        if whole.len() == length { Ok(whole) } else { Err(WRONG) }
    }
}

fn put_length(length: usize, into: &mut Vec<u8>) {
    into.extend_from_slice(&(length as u32).to_le_bytes());
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of all tails.
    pub(crate) fn tails(&self) -> usize {
        self.tails.len()
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.fixed.clear();
        self.tails.clear();
    }

    /// Ends the block: it has no row until it is decoded again.
    pub(crate) fn end(&mut self) {
        self.rows = 0;
    }

    #[inline]
    pub(crate) fn push(&mut self, row: &Row<'_>) {
        self.fixed.extend_from_slice(row.fixed);
        self.tails.push(self.rows, row.tail);
        self.rows += 1;
    }

    /// The fixed part of a row.
    #[inline]
    pub(crate) fn fixed(&self, at: usize) -> &[Word] {
        &self.fixed[at * self.words..(at + 1) * self.words]
    }

    /// The tail of a row.
    #[inline]
    pub(crate) fn tail(&self, at: usize) -> &[u8] {
        self.tails.get(at)
    }

    /// Appends the body to `into`.
    pub(crate) fn encode(&mut self, width: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let Self { rows, fixed, tails, columns, deflate, .. } = self;
        let padded = rows.next_multiple_of(SIDE);
        let differences = differences(fixed, words(width));
        let differing: Vec<_> = (0..words(width)).filter(|&word| differences[word] != 0).collect();
        fixed.resize(padded * words(width), [0; BYTES]);
        columns.resize(padded / SIDE * BYTES * differing.len(), [0; SIDE]);
        into_columns(fixed, words(width), &differing, columns);
        let mut columns = columns.as_flattened().chunks_exact(padded * BYTES);
        for (first, bits) in fixed.as_flattened()[..width].chunks(BYTES).zip(differences) {
            if bits == 0 {
                first.iter().for_each(|&byte| column::encode_constant(byte, into));
                continue;
            }
            let columns = columns.next().unwrap_or_default().chunks_exact(padded);
            for ((&byte, differs), column) in first.iter().zip(bits.to_ne_bytes()).zip(columns) {
                match differs {
                    0 => column::encode_constant(byte, into),
                    _ => column::encode(&column[..*rows], into),
                }
            }
        }
        if tails.len() == 0 {
            into.push(EMPTY);
            return Ok(());
        }
        let whole = &mut deflate.whole;
        whole.clear();
        (0..*rows).for_each(|at| put_length(tails.get(at).len(), whole));
        (0..*rows).for_each(|at| whole.extend_from_slice(tails.get(at)));
        let length = whole.len();
        let deflated = deflate.deflate()?;
        into.push(DEFLATED);
        put_length(deflated.len(), into);
        put_length(length, into);
        into.extend_from_slice(deflated);
        Ok(())
    }

    /// Reads a body of `rows` rows.
    pub(crate) fn decode(
        &mut self,
        mut body: &[u8],
        width: usize,
        rows: usize,
    ) -> Result<(), Error> {
        self.tails.clear();
        let body = &mut body;
        let padded = rows.next_multiple_of(SIDE);
        let words = words(width);
        let mut constant = vec![None; words];
        self.columns.resize(padded / SIDE * BYTES * words, [0; SIDE]);
        let mut columns = self.columns.as_flattened_mut().chunks_exact_mut(padded);
        for (word, constant) in constant.iter_mut().enumerate() {
            let bytes = BYTES.min(width - word * BYTES);
            *constant = column::take_constants(body, bytes);
            if constant.is_none() {
                for column in columns.by_ref().take(bytes) {
                    column::decode(body, &mut column[..rows])?;
                }
                columns.by_ref().take(BYTES - bytes).for_each(|padding| padding.fill(0));
            }
        }
        // Words that all rows had in the block before are there.
        let mut before = constant.iter().zip(&self.constant);
        let are_there = before.all(|(word, before)| word.is_none() || word == before);
        if !are_there || constant.len() != self.constant.len() || self.fixed.len() < padded * words
        {
            self.fixed.clear();
            let row: Vec<Word> = constant.iter().map(|word| word.unwrap_or_default()).collect();
            (0..padded).for_each(|_| self.fixed.extend_from_slice(&row));
        }
        let differing: Vec<_> = (0..words).filter(|&word| constant[word].is_none()).collect();
        into_rows(&self.columns, &mut self.fixed[..padded * words], words, &differing);
        self.constant = constant;
        (self.rows, self.words) = (rows, words);
        match take(body, 1)?[0] {
            EMPTY => {}
            DEFLATED => {
                let length = take_length(body)?;
                let whole = take_length(body)?;
                if whole > MOST_BODY {
                    return Err(Error::Damaged("tails that are too long"));
                }
                let rest = &mut self.deflate.inflate(take(body, length)?, whole)?;
                let lengths = &mut take(rest, 4 * rows)?;
                for at in 0..rows {
                    let length = take_length(lengths)?;
                    if length > MOST_TAIL {
                        return Err(Error::Damaged("a tail that is too long"));
                    }
                    self.tails.push(at, take(rest, length)?);
                }
                if !rest.is_empty() {
                    return Err(Error::Damaged("the lengths of tails"));
                }
            }
            _ => return Err(Error::Damaged("tails of an unknown kind")),
        }
        if body.is_empty() { Ok(()) } else { Err(Error::Damaged("a block that is too long")) }
    }
}

fn take_length(from: &mut &[u8]) -> Result<usize, Error> {
    let bytes = take(from, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}
