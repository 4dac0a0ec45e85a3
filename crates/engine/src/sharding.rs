//! Checks how a network card or the kernel distributes frames: do all packets of an address pair
//! arrive in the same queue? If not, a flow is metered in two halves, silently.
//!
//! One address pair in 64 is checked, chosen by its hash, in a table that all queues share: the
//! first queue of the pair, and part of its hash. Pairs with the same slot replace each other, so a
//! split may go unnoticed for a while; a false report has a chance of one in 2^24.

use std::sync::atomic::{AtomicU64, Ordering};

use ringtap_wire::{Flags, PacketRecord};

/// Pairs in the table.
const PLACES: usize = 1 << 12;

/// One pair in `ONE_IN` is checked.
const ONE_IN: u32 = 64;

pub(crate) struct Sharding {
    /// Part of the hash, and the queue; 0 is free.
    seen: Box<[AtomicU64]>,
}

impl Sharding {
    pub(crate) fn new() -> Self {
        Self { seen: (0..PLACES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether this packet shows that its pair arrives in several queues.
    #[inline]
    pub(crate) fn splits(&self, packet: &PacketRecord, queue: usize) -> bool {
        let hash = packet.pair_hash;
        if !hash.is_multiple_of(ONE_IN) || packet.flags.0 & (Flags::IPV4.0 | Flags::IPV6.0) == 0 {
            return false;
        }
        // Not the bits by which the pair was chosen; the whole hash identifies it.
        let place = &self.seen[(hash / ONE_IN) as usize % PLACES];
        let own = u64::from(hash) << 8 | (queue as u64 + 1);
        // Relaxed: slots are independent.
        let before = place.load(Ordering::Relaxed);
        if before == own {
            return false;
        }
        place.store(own, Ordering::Relaxed);
        before >> 8 == own >> 8 && before != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(pair_hash: u32) -> PacketRecord {
        PacketRecord { pair_hash, flags: Flags::IPV4, ..PacketRecord::EMPTY }
    }

    #[test]
    fn a_pair_on_two_queues_is_found_and_others_are_not() {
        let sharding = Sharding::new();
        let whole = (0..1_000_000).step_by(7).any(|hash| {
            let queue = (hash % 3) as usize;
            sharding.splits(&packet(hash), queue) | sharding.splits(&packet(hash), queue)
        });
        assert!(!whole, "each pair came by one queue");
        assert!(!sharding.splits(&packet(640), 0));
        assert!(sharding.splits(&packet(640), 1));
        assert!(
            !sharding.splits(&packet(641), 0) && !sharding.splits(&packet(641), 1),
            "not watched"
        );
        let none = PacketRecord { flags: Flags(0), ..packet(640) };
        assert!(!sharding.splits(&none, 0), "not IP");
    }
}
