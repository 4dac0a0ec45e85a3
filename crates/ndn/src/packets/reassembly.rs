//! Packets put together from their pieces.
//!
//! ```text
//!  slots, a fixed number:  | from, first sequence | since | which pieces, where | bytes in the order they came |
//! ```
//!
//! Invariants: nothing is allocated after construction. A packet that is not complete in time, or that must make room,
//! is counted.

use crate::packets::lp::FRAGMENTS_MAX;
use crate::packets::{Headers, LpPacket, PACKET_MAX};

/// Puts pieces together, for one or many neighbours.
#[derive(Debug)]
pub struct Reassembler {
    slots: Vec<Slot>,
    whole: Vec<u8>,
    timeout_ns: u64,
    incomplete: u64,
    malformed: u64,
}

#[derive(Debug)]
struct Slot {
    /// Neighbour, and the sequence number of its packet's first piece.
    key: (u64, u64),
    since_ns: u64,
    headers: Headers,
    count: u8,
    /// A bit for each piece that came; 0: the slot is free.
    came: u64,
    /// Where in the bytes each piece lies.
    places: [(u16, u16); FRAGMENTS_MAX as usize],
    bytes: Vec<u8>,
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembly<'a> {
    /// The packet is whole.
    Whole(Headers, &'a [u8]),
    /// Others are missing.
    Waiting,
    /// It said nothing about a packet.
    Idle,
    /// It contradicts other pieces, or makes the packet too large.
    Malformed,
}

impl Reassembler {
    /// With room for `slots` packets at a time, each of which has `timeout_ns` to become whole.
    pub fn new(slots: usize, timeout_ns: u64) -> Self {
        let slot = || Slot {
            key: (0, 0),
            since_ns: 0,
            headers: Headers::default(),
            count: 0,
            came: 0,
            places: [(0, 0); FRAGMENTS_MAX as usize],
            bytes: Vec::with_capacity(PACKET_MAX),
        };
        Self {
            slots: (0..slots.max(1)).map(|_| slot()).collect(),
            whole: Vec::with_capacity(PACKET_MAX),
            timeout_ns,
            incomplete: 0,
            malformed: 0,
        }
    }

    /// Packets given up, for their other pieces did not come or there was no room.
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Pieces that contradicted others.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes what came from a neighbour. Whole packets pass through.
    pub fn take<'a>(&'a mut self, now_ns: u64, from: u64, packet: &LpPacket<'a>) -> Reassembly<'a> {
        let Some(payload) = packet.payload else { return Reassembly::Idle };
        if packet.fragment.count == 1 {
            return Reassembly::Whole(packet.headers, payload);
        }
        let index = packet.fragment.index;
        let key = (from, packet.fragment.sequence.wrapping_sub(index.into()));
        let at = self.slot(now_ns, key, packet.fragment.count);
        let slot = &mut self.slots[at];
        let bit = 1 << index;
        if slot.came & bit != 0 {
            return Reassembly::Waiting;
        }
        if slot.count != packet.fragment.count || slot.bytes.len() + payload.len() > PACKET_MAX {
            slot.came = 0;
            self.malformed += 1;
            return Reassembly::Malformed;
        }
        if index == 0 {
            slot.headers = packet.headers;
        }
        slot.places[usize::from(index)] = (slot.bytes.len() as u16, payload.len() as u16);
        slot.bytes.extend_from_slice(payload);
        slot.came |= bit;
        if slot.came.count_ones() < slot.count.into() {
            return Reassembly::Waiting;
        }
        slot.came = 0;
        self.whole.clear();
        for &(start, len) in &slot.places[..usize::from(slot.count)] {
            let start = usize::from(start);
            self.whole.extend_from_slice(&slot.bytes[start..start + usize::from(len)]);
        }
        Reassembly::Whole(slot.headers, &self.whole)
    }

    /// The slot of a packet: its own, a free one, or the one that waits longest.
    fn slot(&mut self, now_ns: u64, key: (u64, u64), count: u8) -> usize {
        let mut best = 0;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.came != 0 && now_ns.saturating_sub(slot.since_ns) >= self.timeout_ns {
                slot.came = 0;
                self.incomplete += 1;
            }
            if slot.came != 0 && slot.key == key {
                return at;
            }
        }
        for (at, slot) in self.slots.iter().enumerate() {
            let better = |slot: &Slot| (slot.came != 0, slot.since_ns);
            if better(slot) < better(&self.slots[best]) {
                best = at;
            }
        }
        let slot = &mut self.slots[best];
        self.incomplete += u64::from(slot.came != 0);
        (slot.key, slot.since_ns, slot.count, slot.came) = (key, now_ns, count, 0);
        slot.headers = Headers::default();
        slot.bytes.clear();
        best
    }
}
