//! Packets that were captured twice: at several interfaces, or as received and as sent by a mirror port.
//!
//! ```text
//! packet ─▶ hash of its content ─▶ seen within the window? ─ yes ─▶ left out, counted
//!                                                          └ no ──▶ stored until the window is over
//! ```
//!
//! Invariant: bounded memory. If there is no room, the packet seen first is evicted, which is counted.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use ringtap_wire::{HashKey, LinkType, content_hash};

/// Memory of a stored packet, in bytes: its place in the map and in the queue, each of which doubles as it grows.
pub(crate) const PACKET_BYTES: u64 = 80;

/// The packets that a queue stores.
pub(crate) struct Duplicates {
    key: HashKey,
    window_ns: u64,
    /// The times of packets by their hashes.
    seen: HashMap<u64, u64, BuildHasherDefault<Own>>,
    /// The same in the order of reading.
    order: VecDeque<(u64, u64)>,
    most: usize,
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
        let (seen, order) = (HashMap::default(), VecDeque::new());
        Self { key, window_ns, seen, order, most: most.max(1), evicted: 0 }
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
        while let Some(&(first_ns, _)) = self.order.front()
            && ts_ns.saturating_sub(first_ns) > self.window_ns
        {
            self.evict();
        }
        if let Some(first_ns) = self.seen.get(&hash) {
            // Time may have been set back.
            return ts_ns.abs_diff(*first_ns) <= self.window_ns;
        }
        if self.order.len() >= self.most {
            self.evict();
            self.evicted += 1;
        }
        self.seen.insert(hash, ts_ns);
        self.order.push_back((ts_ns, hash));
        false
    }

    fn evict(&mut self) {
        if let Some((_, hash)) = self.order.pop_front() {
            self.seen.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
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
        // Time is set back: the table is kept, and the copies are far from each other.
        assert_eq!((see(5, 1), see(5, 7), see(6, 7)), ((false, 0), (false, 0), (true, 0)));
    }

    #[test]
    fn the_first_of_too_many_packets_is_evicted_and_counted() {
        let mut see = table(1_000, 2);
        assert_eq!((see(1, 1), see(2, 2), see(3, 3)), ((false, 0), (false, 0), (false, 1)));
        assert_eq!((see(4, 2), see(5, 1)), ((true, 1), (false, 2)));
    }

    #[test]
    fn other_frames_are_no_duplicates() {
        let mut table = Duplicates::new(HashKey::from_seed(3), 10, 10);
        assert!(!table.is_duplicate(LinkType::ETHERNET, 0, &[0; 60], 60));
        assert!(!table.is_duplicate(LinkType::ETHERNET, 0, &[0; 60], 60));
    }
}
