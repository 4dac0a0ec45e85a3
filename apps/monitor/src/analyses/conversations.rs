//! Distinct conversations: unordered pairs of (address, port), TCP and UDP apart.
//!
//! The set holds 128-bit keyed fingerprints instead of addresses: among 2³² conversations the
//! chance that any two share one is about 2⁻⁶⁵. When the set is full, half of it is given up by
//! one more bit of the fingerprint, and what remains is a uniform sample (adaptive sampling,
//! Wegman and Flajolet 1990): the count is an estimate from then on, and says so.

use ringtap_flow::Dense;
use ringtap_wire::{Flags, HashKey, PacketRecord};

/// Conversations whose look-ups are made to overlap.
const GROUP: usize = 16;
/// Room for what a burst can note.
const NOTED: usize = 1024;

#[derive(Clone, Copy)]
struct Seen {
    fingerprint: [u64; 2],
    /// TCP 0, UDP 1.
    protocol: u8,
    /// The latest interval it was counted in, plus one.
    counted: u64,
}

/// The set of one shard.
pub(crate) struct Conversations {
    keys: [HashKey; 2],
    seen: Dense<Seen>,
    /// Not yet counted.
    noted: Vec<Seen>,
    capacity: usize,
    /// Only fingerprints with this many low bits zero are kept.
    level: u32,
    counts: [u64; 2],
}

impl Conversations {
    pub(crate) fn new(hash_key: HashKey, capacity: usize) -> Self {
        let half = |n| HashKey::from_seed(hash_key.word(n));
        Self {
            keys: [half(1), half(2)],
            seen: Dense::new(),
            noted: Vec::with_capacity(NOTED),
            capacity: capacity.clamp(16, Dense::<Seen>::MOST),
            level: 0,
            counts: [0; 2],
        }
    }

    /// TCP 0, UDP 1.
    pub(crate) fn protocol(packet: &PacketRecord) -> Option<usize> {
        match packet.protocol {
            6 => Some(0),
            17 => Some(1),
            _ => None,
        }
    }

    /// Notes a packet of a conversation in an interval. It counts when [`Conversations::settle`]
    /// is called.
    #[inline]
    pub(crate) fn note(&mut self, packet: &PacketRecord, protocol: usize, interval: u64) {
        let [first, second] = &self.keys;
        let fingerprint = [Self::fingerprint(first, packet), Self::fingerprint(second, packet)];
        self.noted.push(Seen { fingerprint, protocol: protocol as u8, counted: interval + 1 });
    }

    /// Counts what was noted, in order. `first` hears the interval and the protocol of each
    /// conversation that is the first time seen in an interval, and for how many it stands (1, or
    /// more once the set is a sample). A packet of an interval earlier
    /// than one its conversation was already counted in is not counted again.
    pub(crate) fn settle(&mut self, mut first: impl FnMut(u64, usize, u64)) {
        let noted = std::mem::take(&mut self.noted);
        for group in noted.chunks(GROUP) {
            // Touch index words, then rows: independent loads, so their misses overlap.
            let mut words = [0; GROUP];
            for (seen, word) in group.iter().zip(&mut words) {
                *word = self.seen.home(seen.fingerprint[0] as u32);
            }
            let mut touched = 0;
            for (seen, &word) in group.iter().zip(&words) {
                let row = self.seen.hint(word, seen.fingerprint[0] as u32);
                touched ^= row.map_or(0, |row| row.counted);
            }
            std::hint::black_box(touched);
            for seen in group {
                if self.count(seen) {
                    first(seen.counted - 1, usize::from(seen.protocol), 1 << self.level);
                }
            }
        }
        self.noted = noted;
        self.noted.clear();
    }

    /// True if the conversation was not yet counted in the interval.
    fn count(&mut self, noted: &Seen) -> bool {
        let hash = noted.fingerprint[0] as u32;
        if let Some(at) = self.seen.find(hash, |seen| seen.fingerprint == noted.fingerprint) {
            let seen = self.seen.row_mut(at);
            let first = seen.counted < noted.counted;
            seen.counted = seen.counted.max(noted.counted);
            return first;
        }
        if self.seen.len() == self.capacity {
            self.thin_out();
        }
        let kept = noted.fingerprint[1].trailing_zeros() >= self.level;
        if kept {
            self.counts[usize::from(noted.protocol)] += 1;
            self.seen.insert(hash, *noted);
        }
        kept
    }

    #[cold]
    fn thin_out(&mut self) {
        while self.seen.len() > self.capacity / 2 {
            self.level += 1;
            let (level, counts) = (self.level, &mut self.counts);
            let keep = |seen: &Seen| {
                let kept = seen.fingerprint[1].trailing_zeros() >= level;
                counts[usize::from(seen.protocol)] -= u64::from(!kept);
                kept
            };
            self.seen.retain(keep, |seen| seen.fingerprint[0] as u32);
        }
    }

    #[inline]
    fn fingerprint(key: &HashKey, packet: &PacketRecord) -> u64 {
        let side = |address: &[u8; 16], port: u16| {
            key.word(
                key.address(address) ^ (u64::from(port) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            )
        };
        let both =
            side(&packet.src, packet.src_port).wrapping_add(side(&packet.dst, packet.dst_port));
        // An IPv4 address has the bytes of some IPv6 address, so the version counts, too.
        let version = packet.flags.0 & Flags::IPV6.0;
        key.word(both ^ u64::from(packet.protocol) << 56 ^ u64::from(version) << 32)
    }

    /// Conversations by protocol, and whether that is exact.
    pub(crate) fn counts(&self) -> ([u64; 2], bool) {
        (self.counts.map(|n| n << self.level), self.level == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u32) -> PacketRecord {
        let mut packet = PacketRecord::EMPTY;
        packet.src[..4].copy_from_slice(&number.to_be_bytes());
        packet.protocol = if number.is_multiple_of(4) { 17 } else { 6 };
        packet
    }

    fn note(set: &mut Conversations, packet: &PacketRecord) -> bool {
        set.note(packet, Conversations::protocol(packet).unwrap(), 0);
        let mut first = false;
        set.settle(|_, _, _| first = true);
        first
    }

    #[test]
    fn both_directions_are_one_conversation_and_ports_belong_to_their_address() {
        let mut set = Conversations::new(HashKey::from_seed(3), 100);
        let mut there = packet(1);
        (there.src_port, there.dst_port) = (80, 1000);
        let mut back = there;
        (back.src, back.dst) = (there.dst, there.src);
        (back.src_port, back.dst_port) = (1000, 80);
        let mut crossed = there;
        (crossed.src_port, crossed.dst_port) = (1000, 80);
        assert_eq!([&there, &back, &crossed].map(|p| note(&mut set, p)), [true, false, true]);
        assert_eq!(set.counts(), ([2, 0], true));
    }

    #[test]
    fn an_overfull_set_estimates_and_says_so() {
        let mut set = Conversations::new(HashKey::from_seed(3), 4_000);
        for number in 0..100_000 {
            note(&mut set, &packet(number));
            note(&mut set, &packet(number / 2));
        }
        let ([tcp, udp], exact) = set.counts();
        assert!(!exact && set.seen.len() <= 4_000);
        assert!((65_000..85_000).contains(&tcp) && (20_000..30_000).contains(&udp), "{tcp} {udp}");
    }
}
