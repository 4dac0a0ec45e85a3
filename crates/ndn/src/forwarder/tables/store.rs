//! A store for packets of any length: the first bytes beside the owner's data, the others in a chain
//! of chunks of fixed size.
//!
//! ```text
//!  owner: | … | 94 bytes | ─▶ | next: 4 | 124 bytes | ─▶ | – | the rest |        two lines a chunk
//! ```
//!
//! Invariants: nothing is allocated after construction. Fragmentation wastes only the end of a
//! packet's last chunk.

use super::NONE;
use super::pool::Pool;

/// Bytes of a packet beside its owner's data. Most Interests are shorter.
const HEAD: usize = 94;
/// Bytes of a packet in a chunk.
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

/// A stored packet.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Stored {
    /// The first chunk.
    rest: u32,
    /// Length of the packet in bytes.
    len: u16,
    head: [u8; HEAD],
}

impl Stored {
    pub(super) const EMPTY: Self = Self { rest: NONE, len: 0, head: [0; HEAD] };
}

impl Store {
    pub(super) fn new(chunks: usize) -> Self {
        Self(Pool::new(chunks))
    }

    /// Stores a copy of a packet in `stored`, which must be free; returns false if there is no
    /// room.
    #[inline]
    pub(super) fn put(&mut self, stored: &mut Stored, packet: &[u8]) -> bool {
        let (head, rest) = packet.split_at(packet.len().min(HEAD));
        if rest.len().div_ceil(CHUNK) > self.0.room() {
            return false;
        }
        stored.len = packet.len() as u16;
        stored.head[..head.len()].copy_from_slice(head);
        stored.rest = NONE;
        // From the last chunk to the first, so that each can refer to the next.
        for piece in rest.chunks(CHUNK).rev() {
            let new = || Chunk { next: NONE, bytes: [0; CHUNK] };
            let Some(at) = self.0.take(new) else { return false };
            let chunk = &mut self.0[at];
            chunk.next = stored.rest;
            chunk.bytes[..piece.len()].copy_from_slice(piece);
            stored.rest = at;
        }
        true
    }

    /// Frees the chunks of a packet.
    #[inline]
    pub(super) fn free(&mut self, stored: &Stored) {
        let mut at = stored.rest;
        while at != NONE {
            self.0.free(at);
            at = self.0[at].next;
        }
    }

    /// Writes a packet to `out`, replacing the contents.
    pub(super) fn read(&self, stored: &Stored, out: &mut Vec<u8>) {
        let len = usize::from(stored.len);
        out.clear();
        out.extend_from_slice(&stored.head[..len.min(HEAD)]);
        let mut at = stored.rest;
        while at != NONE {
            let chunk = &self.0[at];
            out.extend_from_slice(&chunk.bytes[..CHUNK.min(len - out.len())]);
            at = chunk.next;
        }
    }

    /// Whether a packet has `bytes` at the position `from`.
    #[inline]
    pub(super) fn has(&self, stored: &Stored, from: usize, bytes: &[u8]) -> bool {
        let end = from + bytes.len();
        if end > stored.len.into() {
            return false;
        }
        if end <= HEAD {
            return stored.head[from..end] == *bytes;
        }
        let (head, rest) = bytes.split_at(HEAD.saturating_sub(from));
        stored.head[HEAD - head.len()..] == *head
            && self.rest_has(stored.rest, from.saturating_sub(HEAD), rest)
    }

    /// Whether the chunks from `at` on have `bytes` at the position `from`.
    fn rest_has(&self, mut at: u32, mut from: usize, mut bytes: &[u8]) -> bool {
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
