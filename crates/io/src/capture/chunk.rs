//! A chunk: a stretch of a capture as it was read, and where its packets lie in it.
//!
//! ```text
//!  bytes   | header | packet … | header | packet …     | header | packet …  | (rest: next chunk)
//!  places           └ at, len, time, original length, link └ …      └ …
//! ```
//!
//! Headers are walked all at once, in a tight loop, before any packet is read. So the
//! positions of all packets are known afterwards, and the processor fetches the next ones while it
//! works on the current one.
//!
//! Invariant: a chunk is filled again in place. Its memory grows with a record that is larger than
//! [`SIZE`](crate::capture::buffer::SIZE) and is given back after it.

use ringtap_wire::LinkType;

use crate::capture::buffer::SIZE;

/// Where a packet lies in its chunk, and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Time of capture, nanoseconds since 1970-01-01 UTC, saturating; 0 where the file has none
    /// (pcapng Simple Packet Block).
    pub ts_ns: u64,
    pub(crate) at: u32,
    pub(crate) len: u32,
    /// Bytes on the wire, as the file says; a damaged file may say less than were captured.
    pub original_len: u32,
    /// What the first byte of the packet begins.
    pub link: LinkType,
    /// For the code that sorts packets; initially 0.
    pub tag: u16,
}

const _: () = assert!(size_of::<Place>() == 24);

/// An empty one takes no memory.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// The packets, in the order of the file. They may be taken out.
    pub places: Vec<Place>,
    /// The lowest and the highest time among them.
    pub(crate) low_ns: u64,
    pub(crate) high_ns: u64,
}

impl Chunk {
    /// An empty one with the memory that it will need, unless a record is larger than usual.
    pub fn new() -> Self {
        Self { bytes: vec![0; SIZE], places: Vec::with_capacity(SIZE / 64), ..Self::default() }
    }

    /// The captured bytes of a packet of this chunk.
    #[inline(always)]
    pub fn data(&self, place: &Place) -> &[u8] {
        let at = place.at as usize;
        self.bytes.get(at..at + place.len as usize).unwrap_or_default()
    }

    /// Brings the common headers of a packet of this chunk near.
    #[inline(always)]
    pub fn prefetch(&self, place: &Place) {
        /// Ethernet, IPv4 and TCP up to the flags: on two cache lines, more often than not.
        const HEADERS: usize = 48;
        let at = place.at as usize;
        for at in [at, at + HEADERS] {
            if let Some(byte) = self.bytes.get(at) {
                ringtap_base::prefetch(byte);
            }
        }
    }

    /// The lowest time among the packets read, 0 if there are none.
    pub fn low_ns(&self) -> u64 {
        self.low_ns
    }

    /// The highest time among the packets read, 0 if there are none.
    pub fn high_ns(&self) -> u64 {
        self.high_ns
    }
}
