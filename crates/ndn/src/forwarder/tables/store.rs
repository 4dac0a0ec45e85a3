//! A store for packets of any length, in chains of chunks of fixed size.
//!
//! ```text
//!  packet ─▶ | next: 4 | 124 bytes | ─▶ | next: 4 | 124 bytes | ─▶ | – | the rest |   two lines each
//! ```
//!
//! Invariants: nothing is allocated after construction. Fragmentation wastes only the end of a
//! packet's last chunk.

use super::NONE;
use super::pool::Pool;

const CHUNK: usize = 124;

#[derive(Debug)]
pub(super) struct Store(Pool<Chunk>);

#[derive(Debug)]
#[repr(C, align(64))]
struct Chunk {
    next: u32,
    bytes: [u8; CHUNK],
}

const _: () = assert!(size_of::<Chunk>() == 128);

/// A reference to a stored packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    first: u32,
    len: u32,
}

impl Store {
    pub(super) fn new(chunks: usize) -> Self {
        Self(Pool::new(chunks))
    }

    /// Number of chunks of a packet of `len` bytes.
    pub(super) fn chunks_of(len: usize) -> usize {
        len.div_ceil(CHUNK)
    }

    /// Number of free chunks.
    pub(super) fn room(&self) -> usize {
        self.0.room()
    }

    /// Stores a copy of a packet; `None` if there is no room.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Stored> {
        if Self::chunks_of(bytes.len()) > self.room() {
            return None;
        }
        let mut first = NONE;
        // From the last chunk to the first, so that each can refer to the next.
        for piece in bytes.chunks(CHUNK).rev() {
            let new = || Chunk { next: NONE, bytes: [0; CHUNK] };
            let at = self.0.take_freed().or_else(|| self.0.put(new()))?;
            let chunk = &mut self.0[at];
            chunk.next = first;
            chunk.bytes[..piece.len()].copy_from_slice(piece);
            first = at;
        }
        Some(Stored { first, len: bytes.len() as u32 })
    }

    /// Frees the chunks of a packet.
    pub(super) fn free(&mut self, stored: Stored) {
        let mut at = stored.first;
        while at != NONE {
            self.0.free(at);
            at = self.0[at].next;
        }
    }

    /// Prefetches the first chunk of a packet.
    #[inline]
    pub(super) fn prefetch(&self, stored: Stored) {
        self.0.prefetch(stored.first);
    }

    /// Prefetches the free chunk that will be used after `others` other chunks.
    #[inline]
    pub(super) fn prefetch_free(&self, others: usize) {
        self.0.prefetch_free(others);
    }

    /// Writes a packet to `out`, replacing the contents.
    pub(super) fn read(&self, stored: Stored, out: &mut Vec<u8>) {
        out.clear();
        let (mut at, mut left) = (stored.first, stored.len as usize);
        while left > 0 {
            let (chunk, piece) = (&self.0[at], left.min(CHUNK));
            out.extend_from_slice(&chunk.bytes[..piece]);
            (at, left) = (chunk.next, left - piece);
        }
    }

    /// Whether a packet has `bytes` at the position `from`.
    #[inline]
    pub(super) fn has(&self, stored: Stored, mut from: usize, mut bytes: &[u8]) -> bool {
        if from + bytes.len() > stored.len as usize {
            return false;
        }
        let mut at = stored.first;
        while from >= CHUNK && at != NONE {
            (at, from) = (self.0[at].next, from - CHUNK);
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - from));
            let chunk = &self.0[at];
            if chunk.bytes[from..from + now.len()] != *now {
                return false;
            }
            (at, from, bytes) = (chunk.next, 0, later);
        }
        true
    }
}
