//! The biflow table: open addressing, linear probing, 48 bytes per entry, on huge pages.
//!
//! ```text
//!  0      16            24        40      44     48
//!  | key  | packets 2×4 | octets  | first | last |     key[1] == 0: the slot is free
//!  |      |             | 2×8     |       |      |
//! ```
//!
//! The table is at most half full; beyond that it doubles. Flows are never removed, because the
//! yardstick has no timeouts.

use crate::map::{Plain, Zeroed};
use crate::packet::{Key, Packet};

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    packets: [u32; 2],
    octets: [u64; 2],
    first_seconds: u32,
    last_seconds: u32,
}

const _: () = assert!(size_of::<Entry>() == 48);

// SAFETY: all fields are integers or arrays of integers.
unsafe impl Plain for Entry {}

pub struct Table {
    entries: Zeroed<Entry>,
    used: usize,
}

impl Table {
    /// An empty table; `slots` is a power of two.
    pub fn with_slots(slots: usize) -> Self {
        Self { entries: Zeroed::new(slots), used: 0 }
    }

    /// Flows in the table.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Counts a packet in its flow; inserts the flow if it is new.
    #[inline(always)]
    pub fn add(&mut self, packet: &Packet, seconds: u32) {
        let entries = self.entries.slice_mut();
        let slot = find(entries, &packet.key);
        let entry = &mut entries[slot];
        let new = entry.key[1] == 0;
        if new {
            entry.key = packet.key;
            entry.first_seconds = seconds;
        }
        entry.packets[packet.direction] += 1;
        entry.octets[packet.direction] += u64::from(packet.octets);
        entry.last_seconds = seconds;
        if new {
            self.used += 1;
            if self.used * 2 > entries.len() {
                self.grow();
            }
        }
    }

    /// Flows, packets and octets, added up over the slots.
    pub fn totals(&self) -> (usize, u64, u64) {
        let used = self.entries.slice().iter().filter(|entry| entry.key[1] != 0);
        used.fold((0, 0, 0), |(flows, packets, octets), entry| {
            let both = u64::from(entry.packets[0]) + u64::from(entry.packets[1]);
            (flows + 1, packets + both, octets + entry.octets[0] + entry.octets[1])
        })
    }

    /// The flows as little-endian bytes, in the order of their slots: key, octets, packets, first,
    /// last.
    pub fn records(&self) -> impl Iterator<Item = [u8; size_of::<Entry>()]> {
        let used = self.entries.slice().iter().filter(|entry| entry.key[1] != 0);
        used.map(|entry| {
            let mut record = [0; size_of::<Entry>()];
            let words = entry.key.into_iter().chain([entry.octets[0], entry.octets[1]]);
            for (to, word) in record.chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            let halves =
                [entry.packets[0], entry.packets[1], entry.first_seconds, entry.last_seconds];
            for (to, half) in record[32..].chunks_exact_mut(4).zip(halves) {
                to.copy_from_slice(&half.to_le_bytes());
            }
            record
        })
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let old = self.entries.slice();
        let mut wider = Zeroed::new(old.len() * 2);
        let to = wider.slice_mut();
        for entry in old.iter().filter(|entry| entry.key[1] != 0) {
            to[find(to, &entry.key)] = *entry;
        }
        self.entries = wider;
    }
}

/// The slot that holds `key`, or the free slot for it.
#[inline(always)]
fn find(entries: &[Entry], key: &Key) -> usize {
    let mask = entries.len() - 1;
    let mut slot = hash(key) as usize & mask;
    loop {
        let held = &entries[slot].key;
        if held == key || held[1] == 0 {
            return slot;
        }
        slot = (slot + 1) & mask;
    }
}

#[inline(always)]
pub fn hash(key: &Key) -> u64 {
    let wide =
        u128::from(key[0] ^ 0x9e37_79b9_7f4a_7c15) * u128::from(key[1] ^ 0xbf58_476d_1ce4_e5b9);
    wide as u64 ^ (wide >> 64) as u64
}
