//! Checks how a network card or the kernel distributes frames: do all packets of an address pair
//! arrive in the same queue? If not, a flow is metered in two halves, silently.
//!
//! One address pair in 64 is checked, chosen by its hash, in a table that all queues share: the
//! last queue of the pair, its hash, and the directions seen in that queue. Pairs with the same slot
//! replace each other, so a split may go unnoticed for a while, and a pair may be counted again; a
//! false report has a chance of one in 2^14 at each replacement, because 18 of the 32 bits of the hash choose pair and slot.

use std::sync::atomic::{AtomicU64, Ordering};

use ringtap_wire::{Flags, PacketRecord};

/// Pairs in the table.
const PLACES: usize = 1 << 12;

/// One pair in `ONE_IN` is checked.
const ONE_IN: u32 = 64;

/// The bit of the first direction in a slot, above the hash and the queue.
const DIRECTIONS: u32 = 40;

/// What a packet shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing new.
    Nothing,
    /// Both directions of its pair arrive in one queue.
    BothWays,
    /// Its pair arrives in several queues.
    Split,
}

pub(crate) struct Sharding {
    /// A bit for each direction, the hash, and the queue; 0 is free.
    seen: Box<[AtomicU64]>,
}

impl Sharding {
    pub(crate) fn new() -> Self {
        Self { seen: (0..PLACES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// What this packet shows of its pair.
    #[inline]
    pub(crate) fn check(&self, packet: &PacketRecord, queue: usize) -> Seen {
        let hash = packet.pair_hash;
        if !hash.is_multiple_of(ONE_IN) || packet.flags.0 & (Flags::IPV4.0 | Flags::IPV6.0) == 0 {
            return Seen::Nothing;
        }
        // Not the bits by which the pair was chosen; the whole hash identifies it.
        let place = &self.seen[(hash / ONE_IN) as usize % PLACES];
        let own = u64::from(hash) << 8 | (queue as u64 + 1);
        let direction = 1 << (DIRECTIONS + u32::from(packet.src > packet.dst));
        // Relaxed: slots are independent.
        let before = place.load(Ordering::Relaxed);
        let pair = before & ((1 << DIRECTIONS) - 1);
        if pair == own && before & direction != 0 {
            return Seen::Nothing;
        }
        if pair == own {
            place.store(before | direction, Ordering::Relaxed);
            return Seen::BothWays;
        }
        place.store(own | direction, Ordering::Relaxed);
        if before != 0 && pair >> 8 == own >> 8 { Seen::Split } else { Seen::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(pair_hash: u32) -> PacketRecord {
        PacketRecord { pair_hash, flags: Flags::IPV4, dst: [1; 16], ..PacketRecord::EMPTY }
    }

    fn reply(pair_hash: u32) -> PacketRecord {
        PacketRecord { src: [1; 16], dst: [0; 16], ..packet(pair_hash) }
    }

    #[test]
    fn a_pair_on_two_queues_is_found_and_others_are_not() {
        let sharding = Sharding::new();
        let splits = |packet: &PacketRecord, queue| sharding.check(packet, queue) == Seen::Split;
        let whole = (0..1_000_000).step_by(7).any(|hash| {
            let queue = (hash % 3) as usize;
            splits(&packet(hash), queue) | splits(&packet(hash), queue)
        });
        assert!(!whole, "each pair came by one queue");
        assert!(!splits(&packet(640), 0));
        assert!(splits(&packet(640), 1));
        assert!(!splits(&packet(641), 0) && !splits(&packet(641), 1), "not watched");
        let none = PacketRecord { flags: Flags(0), ..packet(640) };
        assert!(!splits(&none, 0), "not IP");
    }

    #[test]
    fn a_pair_counts_once_when_both_directions_came_in_one_queue() {
        let sharding = Sharding::new();
        let seen = [packet(640), packet(640), reply(640), reply(640), packet(640)];
        let seen = seen.map(|packet| sharding.check(&packet, 2));
        let [nothing, both] = [Seen::Nothing, Seen::BothWays];
        assert_eq!(seen, [nothing, nothing, both, nothing, nothing]);
        assert_eq!(sharding.check(&packet(1280), 2), Seen::Nothing);
        assert_eq!(sharding.check(&reply(1280), 3), Seen::Split);
        assert_eq!(sharding.check(&reply(1280), 3), Seen::Nothing, "one direction in this queue");
    }
}
