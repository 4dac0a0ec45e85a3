//! The buffer between read(2) and the parser of a capture file.
//!
//! ```text
//!  0        start            end          len
//! | parsed | not parsed yet | free       |
//!          └── offset: position of this byte in the (decompressed) stream
//! ```
//!
//! A fill moves the rest (less than one record) to the front and reads as much as there is room for. The bytes belong
//! to a chunk, which lends them to be filled; only the rest is copied to the next chunk.
//!
//! Invariant: the buffer doubles only when it is full of bytes that were really read, so a record with a wrong length
//! costs no memory.

use std::io::{ErrorKind, Read, Result};
use std::mem::swap;

use crate::capture::frame::Stretch;

/// Bytes of one read(2). From 64 KiB to 1 MiB the speed is the same; this holds one record of the largest common
/// capture length.
pub(crate) const SIZE: usize = 256 << 10;

pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, offset: 0 }
    }

    /// The bytes that were read and not consumed.
    #[inline(always)]
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The bytes that were read and not consumed, with their position in the stream.
    pub(crate) fn stretch(&self) -> Stretch<'_> {
        Stretch { bytes: self.unread(), start: self.start, offset: self.offset }
    }

    /// Continues in `chunk`, whose bytes are no longer needed.
    pub(crate) fn borrow(&mut self, chunk: &mut Vec<u8>) {
        let unread = self.end - self.start;
        let len = unread.next_multiple_of(SIZE).max(SIZE);
        if chunk.len() < len {
            // The kernel provides zeroed pages when they are first used.
            *chunk = vec![0; len];
        } else if chunk.len() > len {
            chunk.truncate(len);
            chunk.shrink_to_fit();
        }
        self.pass(chunk);
    }

    /// Returns the bytes to `chunk` and keeps those that were not consumed.
    pub(crate) fn give_back(&mut self, chunk: &mut Vec<u8>) {
        let unread = self.end - self.start;
        if chunk.len() < unread {
            chunk.resize(unread, 0);
        }
        self.pass(chunk);
    }

    /// Exchanges the bytes with `other`, and copies those that were not consumed.
    fn pass(&mut self, other: &mut Vec<u8>) {
        let unread = self.start..self.end;
        other[..unread.len()].copy_from_slice(&self.bytes[unread.clone()]);
        swap(&mut self.bytes, other);
        (self.start, self.end) = (0, unread.len());
    }

    /// Position of the first unread byte in the stream.
    #[inline(always)]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Position behind the last byte read from the stream.
    pub(crate) fn end_offset(&self) -> u64 {
        self.offset + self.unread().len() as u64
    }

    /// Consumes the first `count` unread bytes.
    #[inline(always)]
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start = (self.start + count).min(self.end);
        self.offset += count as u64;
    }

    /// Reads until at least `want` bytes are unread; false if the source ends before.
    pub(crate) fn fill(&mut self, source: &mut impl Read, want: usize) -> Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let most = want.max(SIZE);
        while self.end < want {
            if self.end == self.bytes.len() {
                self.bytes.resize((2 * self.bytes.len()).min(most), 0);
            }
            let upto = self.bytes.len().min(most);
            let free = &mut self.bytes[self.end..upto];
            match source.read(free) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count.min(free.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Consumes `count` bytes, read or not; false if the source ends before.
    pub(crate) fn skip(&mut self, source: &mut impl Read, count: u64) -> Result<bool> {
        let mut left = count;
        loop {
            let unread = (self.end - self.start) as u64;
            let step = left.min(unread) as usize;
            self.consume(step);
            left -= step as u64;
            if left == 0 {
                return Ok(true);
            }
            if !self.fill(source, 1)? {
                return Ok(false);
            }
        }
    }

    /// Removes and returns the unread bytes, as if they had not been read.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = self.unread().to_vec();
        self.clear();
        bytes
    }

    /// Removes everything and frees the memory beyond the initial size, for the next file.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.offset = 0;
        self.bytes.truncate(SIZE);
        self.bytes.shrink_to_fit();
    }
}
