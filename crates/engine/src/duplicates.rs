//! Packets that were captured twice: at several interfaces, or as received and as sent by a mirror port.
//!
//! ```text
//! packet ─▶ hash of its content ─▶ seen within the window? ─ yes ─▶ left out, counted
//!                                                          └ no ──▶ stored until the window is over
//! ```
//!
//! A copy is a duplicate by the times of both packets alone. A packet leaves the table at the second turn after it, which
//! has the same place in every arrangement, never by the time of another packet.
//!
//! Invariant: bounded memory. If there is no room, the packet seen first is evicted, which is counted.

use std::hash::{BuildHasherDefault, Hasher};

use ringtap_base::Aged;
use ringtap_wire::{HashKey, LinkType, content_hash};

/// Memory of a stored packet, in bytes.
pub(crate) const PACKET_BYTES: u64 = 80;

type Table = Aged<u64, u64, BuildHasherDefault<Own>>;

const _: () = assert!(Table::ENTRY_BYTES as u64 <= PACKET_BYTES);

/// The packets that a queue stores.
pub(crate) struct Duplicates {
    key: HashKey,
    window_ns: u64,
    /// The times of packets by their hashes; of several copies, that of the first one in the window.
    seen: Table,
    /// Packets that were evicted before their window was over.
    pub(crate) evicted: u64,
}

/// The keys are hashes already.
#[derive(Default)]
struct Own(u64);

impl Hasher for Own {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Duplicates {
    /// Stores at most `most` packets, at least one.
    pub(crate) fn new(key: HashKey, window_ns: u64, most: usize) -> Self {
        let seen = Aged::new(most.max(1), BuildHasherDefault::default());
        Self { key, window_ns, seen, evicted: 0 }
    }

    /// Whether a frame is a duplicate of one seen at most a window earlier. Frames without IP are none.
    pub(crate) fn is_duplicate(
        &mut self,
        link: LinkType,
        ts_ns: u64,
        data: &[u8],
        original_len: u32,
    ) -> bool {
        let Some(hash) = content_hash(&self.key, link, data, original_len) else { return false };
        // Time may have been set back.
        let is_copy = |&first_ns: &u64| ts_ns.abs_diff(first_ns) <= self.window_ns;
        if self.seen.get(&hash).is_some_and(is_copy) {
            return true;
        }
        let (_, evicted) = self.seen.insert(hash, ts_ns);
        self.evicted += u64::from(evicted.is_some());
        false
    }

    /// Removes packets that were seen before the last turn. Turns are at least a window of packet time apart.
    pub(crate) fn turn(&mut self) {
        self.seen.turn();
        while self.seen.pop_old().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(id: u16) -> Vec<u8> {
        let [high, low] = id.to_be_bytes();
        let mut packet =
            vec![0x45, 0, 0, 28, high, low, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 53, 0, 99, 0, 8, 0, 0]);
        packet
    }

    fn table(window_ns: u64, most: usize) -> impl FnMut(u64, u16) -> (bool, u64) {
        let mut table = Duplicates::new(HashKey::from_seed(3), window_ns, most);
        move |ts_ns, id| {
            let found = table.is_duplicate(LinkType::RAW, ts_ns, &packet(id), 28);
            (found, table.evicted)
        }
    }

    #[test]
    fn copies_within_the_window_are_duplicates_and_later_ones_are_not() {
        let mut see = table(10, 100);
        assert_eq!(see(100, 1), (false, 0));
        assert_eq!(see(105, 2), (false, 0));
        assert_eq!((see(105, 1), see(110, 1)), ((true, 0), (true, 0)));
        // The window is that of the first copy.
        assert_eq!((see(111, 1), see(115, 2), see(121, 1)), ((false, 0), (true, 0), (true, 0)));
        // Time is set back: the copies are far from each other, and a new window begins.
        assert_eq!((see(5, 1), see(5, 7), see(6, 7)), ((false, 0), (false, 0), (true, 0)));
        assert_eq!((see(7, 1), see(17, 1)), ((true, 0), (false, 0)));
    }

    #[test]
    fn a_packet_far_ahead_evicts_nothing() {
        let mut see = table(10, 100);
        assert_eq!(
            (see(100, 1), see(1 << 60, 2), see(105, 1)),
            ((false, 0), (false, 0), (true, 0))
        );
    }

    #[test]
    fn the_first_of_too_many_packets_is_evicted_and_counted() {
        let mut see = table(1_000, 2);
        assert_eq!((see(1, 1), see(2, 2), see(3, 3)), ((false, 0), (false, 0), (false, 1)));
        assert_eq!((see(4, 2), see(5, 1)), ((true, 1), (false, 2)));
    }

    #[test]
    fn packets_leave_at_the_second_turn() {
        let mut table = Duplicates::new(HashKey::from_seed(3), 10, 100);
        let see =
            |table: &mut Duplicates, id| table.is_duplicate(LinkType::RAW, 7, &packet(id), 28);
        assert!(!see(&mut table, 1));
        table.turn();
        assert!(see(&mut table, 1) && !see(&mut table, 2));
        table.turn();
        assert!(!see(&mut table, 1) && see(&mut table, 2));
        assert_eq!((table.seen.len(), table.evicted), (2, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// With any times, a packet is a duplicate or not with and without packets of others between, unless it is
        /// counted.
        #[test]
        fn packets_of_others_decide_nothing(
            packets in prop::collection::vec((0_u16..6, 0_u64..40), 1..120),
            room in 1_usize..9,
        ) {
            for room in [100, room] {
                let (mut all, mut alone) = (table(10, room), [0; 6].map(|_| table(10, 100)));
                for &(id, ts_ns) in &packets {
                    let (found, evicted) = all(ts_ns, id);
                    let (expected, 0) = alone[usize::from(id)](ts_ns, id) else { panic!("evicted") };
                    prop_assert!(found == expected || evicted > 0 && room < 100, "{id} at {ts_ns}");
                    prop_assert!(evicted == 0 || room < 6);
                }
            }
        }
    }

    #[test]
    fn other_frames_are_no_duplicates() {
        let mut table = Duplicates::new(HashKey::from_seed(3), 10, 10);
        assert!(!table.is_duplicate(LinkType::ETHERNET, 0, &[0; 60], 60));
        assert!(!table.is_duplicate(LinkType::ETHERNET, 0, &[0; 60], 60));
    }
}
