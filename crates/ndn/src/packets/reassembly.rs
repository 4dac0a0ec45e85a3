//! Reassembly of packets from fragments.
//!
//! ```text
//!  fixed number of slots:  | sender, first sequence | start | fragments | bytes as received |
//! ```
//!
//! Invariants: nothing is allocated after construction. A packet that is evicted, or that is not
//! complete within the time limit, is counted. A neighbour that sends many incomplete packets
//! evicts its own.

use crate::packets::lp::FRAGMENTS_MAX;
use crate::packets::{Headers, LpPacket, PACKET_MAX};

/// Reassembles the fragments of one or many neighbours.
#[derive(Debug)]
pub struct Reassembler {
    slots: Vec<Slot>,
    assembled: Vec<u8>,
    timeout_ns: u64,
    incomplete: u64,
    malformed: u64,
}

#[derive(Debug)]
struct Slot {
    /// The neighbour, and the sequence number of the packet's first fragment.
    key: (u64, u64),
    started_ns: u64,
    headers: Headers,
    count: u8,
    /// A bit for each received fragment; 0: the slot is free.
    received: u64,
    /// Position and length of each fragment in `bytes`.
    spans: [(u16, u16); FRAGMENTS_MAX as usize],
    bytes: Vec<u8>,
}

/// The result of handling a link packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembly<'a> {
    /// The packet is complete: its headers and bytes.
    Complete(Headers, &'a [u8]),
    /// Fragments are missing.
    Waiting,
    /// The link packet carries no network packet.
    Idle,
    /// The fragment contradicts others, or makes the packet larger than [`PACKET_MAX`].
    Malformed,
}

impl Reassembler {
    /// A reassembler for at most `slots` incomplete packets at a time. A packet that is not
    /// complete after `timeout_ns` is dropped.
    pub fn new(slots: usize, timeout_ns: u64) -> Self {
        let slot = || Slot {
            key: (0, 0),
            started_ns: 0,
            headers: Headers::default(),
            count: 0,
            received: 0,
            spans: [(0, 0); FRAGMENTS_MAX as usize],
            bytes: Vec::with_capacity(PACKET_MAX),
        };
        Self {
            slots: (0..slots.max(1)).map(|_| slot()).collect(),
            assembled: Vec::with_capacity(PACKET_MAX),
            timeout_ns,
            incomplete: 0,
            malformed: 0,
        }
    }

    /// Packets dropped because fragments were missing: after the time limit, or evicted.
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Fragments that contradicted others or made a packet too large.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Handles a link packet of the neighbour `from`. An unfragmented packet is returned at once.
    pub fn take<'a>(&'a mut self, now_ns: u64, from: u64, packet: &LpPacket<'a>) -> Reassembly<'a> {
        let Some(payload) = packet.payload else { return Reassembly::Idle };
        if packet.fragment.count == 1 {
            return Reassembly::Complete(packet.headers, payload);
        }
        let index = packet.fragment.index;
        let key = (from, packet.fragment.sequence.wrapping_sub(index.into()));
        let at = self.slot(now_ns, key, packet.fragment.count);
        let slot = &mut self.slots[at];
        let bit = 1 << index;
        if slot.received & bit != 0 {
            return Reassembly::Waiting;
        }
        if slot.count != packet.fragment.count || slot.bytes.len() + payload.len() > PACKET_MAX {
            slot.received = 0;
            self.malformed += 1;
            return Reassembly::Malformed;
        }
        if index == 0 {
            slot.headers = packet.headers;
        }
        slot.spans[usize::from(index)] = (slot.bytes.len() as u16, payload.len() as u16);
        slot.bytes.extend_from_slice(payload);
        slot.received |= bit;
        if slot.received.count_ones() < slot.count.into() {
            return Reassembly::Waiting;
        }
        slot.received = 0;
        self.assembled.clear();
        for &(start, len) in &slot.spans[..usize::from(slot.count)] {
            let start = usize::from(start);
            self.assembled.extend_from_slice(&slot.bytes[start..start + usize::from(len)]);
        }
        Reassembly::Complete(slot.headers, &self.assembled)
    }

    /// The slot of a packet: its own; else a free one; else the oldest of its neighbour, if that has
    /// a quarter of all; else the oldest. The packet in it is evicted.
    fn slot(&mut self, now_ns: u64, key: (u64, u64), count: u8) -> usize {
        let mut used = 0;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.received != 0 && now_ns.saturating_sub(slot.started_ns) >= self.timeout_ns {
                slot.received = 0;
                self.incomplete += 1;
            }
            if slot.received != 0 && slot.key == key {
                return at;
            }
            used += usize::from(slot.received != 0 && slot.key.0 == key.0);
        }
        let must_share = used >= self.slots.len().div_ceil(4);
        let order = |&at: &usize| {
            let slot = &self.slots[at];
            (slot.received != 0, must_share && slot.key.0 != key.0, slot.started_ns)
        };
        let best = (0..self.slots.len()).min_by_key(order).unwrap_or(0);
        let slot = &mut self.slots[best];
        self.incomplete += u64::from(slot.received != 0);
        (slot.key, slot.started_ns, slot.count, slot.received) = (key, now_ns, count, 0);
        slot.headers = Headers::default();
        slot.bytes.clear();
        best
    }
}
