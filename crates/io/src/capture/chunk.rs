//! A chunk: a part of a capture file as it was read, and the positions of its packets.
//!
//! ```text
//!  bytes   | header | packet … | header | packet …     | header | packet …  | (rest: next chunk)
//!  places           └ at, len, time, original length, link └ …      └ …
//! ```
//!
//! All headers of a chunk are parsed in one tight loop before any packet is read. So the positions of all packets are
//! known, and the processor can prefetch the next ones while it works on the current one.
//!
//! Invariant: a chunk is filled again in place. Its memory grows for a record larger than
//! [`SIZE`](crate::capture::buffer::SIZE), and shrinks after it.

use ringtap_wire::LinkType;

use crate::capture::buffer::SIZE;

/// The position of a packet in its chunk, and the fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Time of capture, nanoseconds since 1970-01-01 UTC, saturating; 0 if the file has none (pcapng Simple Packet
    /// Block).
    pub ts_ns: u64,
    pub(crate) at: u32,
    pub(crate) len: u32,
    /// Bytes on the wire, as in the file; a damaged file may contain less than the captured length.
    pub original_len: u32,
    /// The type of the packet's first header.
    pub link: LinkType,
    /// For code that sorts packets; initially 0.
    pub tag: u16,
}

const _: () = assert!(size_of::<Place>() == 24);

/// An empty chunk without memory.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// The packets, in the order of the file. The caller may remove them.
    pub places: Vec<Place>,
    /// The lowest and the highest time of the packets.
    pub(crate) low_ns: u64,
    pub(crate) high_ns: u64,
}

impl Chunk {
    /// An empty chunk with the memory for records of common length.
    pub fn new() -> Self {
        Self { bytes: vec![0; SIZE], places: Vec::with_capacity(SIZE / 64), ..Self::default() }
    }

    /// The captured bytes of a packet of this chunk.
    #[inline(always)]
    pub fn data(&self, place: &Place) -> &[u8] {
        let at = place.at as usize;
        self.bytes.get(at..at + place.len as usize).unwrap_or_default()
    }

    /// Prefetches the common headers of a packet of this chunk.
    #[inline(always)]
    pub fn prefetch(&self, place: &Place) {
        /// Ethernet, IPv4 and TCP up to the flags: usually two cache lines.
        const HEADERS: usize = 48;
        let at = place.at as usize;
        for at in [at, at + HEADERS] {
            if let Some(byte) = self.bytes.get(at) {
                ringtap_base::prefetch(byte);
            }
        }
    }

    /// The lowest time of the packets; 0 if there are none.
    pub fn low_ns(&self) -> u64 {
        self.low_ns
    }

    /// The highest time of the packets; 0 if there are none.
    pub fn high_ns(&self) -> u64 {
        self.high_ns
    }
}
