//! Pairs of addresses that were looked up in the list, by the hash of the pair.
//!
//! A pair is looked up again if another one took its place, or for an earlier packet. Neither changes the result.

use ringtap_wire::{Flags, PacketRecord};

use super::hits::second;

/// Places for pairs; a power of two.
const PAIRS: usize = 1 << 12;

/// No watched entry.
const NONE: u32 = u32::MAX;

/// A pair that was looked up.
#[derive(Clone, Copy)]
struct Pair {
    /// The lower address first.
    addresses: [[u8; 16]; 2],
    is_v4: bool,
    /// Of the earliest packet that was looked up since the pair is here.
    time_ns: u64,
    /// The entries of both addresses.
    entries: [u32; 2],
    /// The second of `packets`.
    second: u64,
    packets: u64,
}

impl Pair {
    const EMPTY: Self = Self {
        addresses: [[0; 16]; 2],
        is_v4: false,
        time_ns: u64::MAX,
        entries: [NONE; 2],
        second: 0,
        packets: 0,
    };

    /// Passes on its packets: entry, second, number.
    fn flush(&mut self, hit: &mut impl FnMut(u32, u64, u64)) {
        let packets = std::mem::take(&mut self.packets);
        let [one, other] = self.entries;
        if packets > 0 && one != NONE {
            hit(one, self.second, packets);
        }
        if packets > 0 && other != NONE && other != one {
            hit(other, self.second, packets);
        }
    }
}

pub(super) struct Recent(Box<[Pair]>);

impl Recent {
    /// Memory, bytes.
    pub(super) const BYTES: u64 = (PAIRS * size_of::<Pair>()) as u64;

    pub(super) fn new() -> Self {
        Self(vec![Pair::EMPTY; PAIRS].into_boxed_slice())
    }

    /// Whether an earlier packet between both addresses was looked up; then the packet is counted.
    #[inline(always)]
    pub(super) fn has(
        &mut self,
        packet: &PacketRecord,
        hit: &mut impl FnMut(u32, u64, u64),
    ) -> bool {
        let place = &mut self.0[packet.pair_hash as usize % PAIRS];
        let [src, dst] = packet.addresses();
        let addresses = if src <= dst { [src, dst] } else { [dst, src] };
        let is_v4 = packet.flags.contains(Flags::IPV4);
        if addresses != place.addresses || is_v4 != place.is_v4 {
            place.flush(hit);
            *place = Pair { addresses, is_v4, time_ns: packet.ts_ns, ..Pair::EMPTY };
            return false;
        }
        let is_later = packet.ts_ns > place.time_ns;
        place.time_ns = place.time_ns.min(packet.ts_ns);
        if is_later {
            place.count(packet.ts_ns, hit);
        }
        is_later
    }

    /// The packet was looked up: these are the entries of its addresses.
    pub(super) fn found(
        &mut self,
        packet: &PacketRecord,
        entries: [Option<u32>; 2],
        hit: &mut impl FnMut(u32, u64, u64),
    ) {
        let place = &mut self.0[packet.pair_hash as usize % PAIRS];
        place.entries = entries.map(|entry| entry.unwrap_or(NONE));
        place.count(packet.ts_ns, hit);
    }

    /// Passes on all packets that were counted.
    pub(super) fn flush(&mut self, mut hit: impl FnMut(u32, u64, u64)) {
        self.0.iter_mut().for_each(|place| place.flush(&mut hit));
    }
}

impl Pair {
    #[inline(always)]
    fn count(&mut self, time_ns: u64, hit: &mut impl FnMut(u32, u64, u64)) {
        if self.entries == [NONE; 2] {
            return;
        }
        let second = second(time_ns);
        if second != self.second {
            self.flush(hit);
            self.second = second;
        }
        self.packets += 1;
    }
}
