//! Packets of any length in chunks of one length, chained.
//!
//! ```text
//!  packet ─▶ | next: 4 | 124 bytes | ─▶ | next: 4 | 124 bytes | ─▶ | – | the rest |        two cache lines each
//! ```
//!
//! Invariants: nothing is allocated after construction, nothing is lost by fragmentation but the end of a last chunk.

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

/// A packet kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    first: u32,
    len: u32,
}

impl Store {
    pub(super) fn new(chunks: usize) -> Self {
        Self(Pool::new(chunks))
    }

    /// Chunks that a packet takes.
    pub(super) fn chunks_of(len: usize) -> usize {
        len.div_ceil(CHUNK)
    }

    pub(super) fn room(&self) -> usize {
        self.0.room()
    }

    /// Keeps a copy; `None` if there is no room.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Kept> {
        if Self::chunks_of(bytes.len()) > self.room() {
            return None;
        }
        let mut first = NONE;
        // From the last to the first, so that each knows what follows.
        for piece in bytes.chunks(CHUNK).rev() {
            let new = || Chunk { next: NONE, bytes: [0; CHUNK] };
            let at = self.0.again().or_else(|| self.0.put(new()))?;
            let chunk = &mut self.0[at];
            chunk.next = first;
            chunk.bytes[..piece.len()].copy_from_slice(piece);
            first = at;
        }
        Some(Kept { first, len: bytes.len() as u32 })
    }

    pub(super) fn free(&mut self, kept: Kept) {
        let mut at = kept.first;
        while at != NONE {
            self.0.free(at);
            at = self.0[at].next;
        }
    }

    /// Brings the beginning of a packet near.
    #[inline]
    pub(super) fn prefetch(&self, kept: Kept) {
        self.0.prefetch(kept.first);
    }

    /// Brings the chunk near that is taken after so many others.
    #[inline]
    pub(super) fn prefetch_free(&self, others: usize) {
        self.0.prefetch_free(others);
    }

    /// Its bytes, in place of what is in `out`.
    pub(super) fn read(&self, kept: Kept, out: &mut Vec<u8>) {
        out.clear();
        let (mut at, mut left) = (kept.first, kept.len as usize);
        while left > 0 {
            let (chunk, piece) = (&self.0[at], left.min(CHUNK));
            out.extend_from_slice(&chunk.bytes[..piece]);
            (at, left) = (chunk.next, left - piece);
        }
    }

    /// Whether these bytes stand at this place of it.
    #[inline]
    pub(super) fn has(&self, kept: Kept, mut from: usize, mut bytes: &[u8]) -> bool {
        if from + bytes.len() > kept.len as usize {
            return false;
        }
        let mut at = kept.first;
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
