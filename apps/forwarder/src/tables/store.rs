//! Packets of any length in chunks of one length, chained.
//!
//! ```text
//!  packet ─▶ | 128 bytes | ─▶ | 128 bytes | ─▶ | the rest |
//! ```
//!
//! Invariants: nothing is allocated after construction, nothing is lost by fragmentation but the end of a last chunk.

use super::NONE;

const CHUNK: usize = 128;

#[derive(Debug)]
pub(super) struct Store {
    chunks: Vec<[u8; CHUNK]>,
    next: Vec<u32>,
    free: u32,
    room: usize,
    capacity: usize,
}

/// A packet kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    first: u32,
    len: u32,
}

impl Store {
    pub(super) fn new(chunks: usize) -> Self {
        let capacity = chunks.min(NONE as usize);
        Self {
            chunks: Vec::with_capacity(capacity),
            next: Vec::with_capacity(capacity),
            free: NONE,
            room: capacity,
            capacity,
        }
    }

    /// Chunks that a packet takes.
    pub(super) fn chunks_of(len: usize) -> usize {
        len.div_ceil(CHUNK)
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Keeps a copy; `None` if there is no room.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<Kept> {
        if Self::chunks_of(bytes.len()) > self.room {
            return None;
        }
        let mut first = NONE;
        // From the last to the first, so that each knows what follows.
        for piece in bytes.chunks(CHUNK).rev() {
            let at = self.take();
            self.chunks[at as usize][..piece.len()].copy_from_slice(piece);
            self.next[at as usize] = first;
            first = at;
        }
        Some(Kept { first, len: bytes.len() as u32 })
    }

    fn take(&mut self) -> u32 {
        self.room -= 1;
        if self.free == NONE {
            debug_assert!(self.chunks.len() < self.capacity);
            self.chunks.push([0; CHUNK]);
            self.next.push(NONE);
            return self.chunks.len() as u32 - 1;
        }
        let at = self.free;
        self.free = self.next[at as usize];
        at
    }

    pub(super) fn free(&mut self, kept: Kept) {
        let mut at = kept.first;
        while at != NONE {
            let next = self.next[at as usize];
            self.next[at as usize] = self.free;
            self.free = at;
            self.room += 1;
            at = next;
        }
    }

    /// Its bytes, in place of what is in `out`.
    pub(super) fn read(&self, kept: Kept, out: &mut Vec<u8>) {
        out.clear();
        let (mut at, mut left) = (kept.first, kept.len as usize);
        while left > 0 {
            let piece = left.min(CHUNK);
            out.extend_from_slice(&self.chunks[at as usize][..piece]);
            (at, left) = (self.next[at as usize], left - piece);
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
            (at, from) = (self.next[at as usize], from - CHUNK);
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - from));
            if self.chunks[at as usize][from..from + now.len()] != *now {
                return false;
            }
            (at, from, bytes) = (self.next[at as usize], 0, later);
        }
        true
    }
}
