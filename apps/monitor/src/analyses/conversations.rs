//! Distinct conversations: unordered pairs of (address, port), for TCP and for UDP.
//!
//! ```text
//! a packet ──▶ was its conversation counted in this interval, by the flow's entry? ──▶ nothing to do
//!                └── no ──▶ by the set? ──▶ no: count it
//! a flow ends ──▶ its conversation goes into the set, unless it did so when it began
//! ```
//!
//! Until the first flow ends, the entries of flows distinguish all conversations, and the set is empty. Afterwards a
//! conversation must be looked up when it begins, so it goes into the set then. If an entry does not correspond
//! to one conversation (flows by direction or by VLAN, tunnel packets without flows, intervals too
//! short for stamps), or if there is no room, all conversations go into the set at once.
//!
//! The set holds 95-bit keyed fingerprints instead of addresses: among 2³² conversations the
//! chance of a collision is about 2⁻³². When the set is full, half of it is dropped by one more bit
//! of the fingerprint, and the rest is a uniform sample (adaptive sampling, Wegman and Flajolet
//! 1990): from then on the count is an estimate, and is marked as one.

use ringtap_flow::{Dense, FlowKey, IpVersion};
use ringtap_wire::{HashKey, PacketRecord};

/// Conversations whose look-ups overlap.
const GROUP: usize = 16;
/// Room for the events of a burst: a flow that begins and one that ends for each packet.
const NOTED: usize = 2 * 1024;

/// A conversation, in 20 bytes.
#[derive(Clone, Copy)]
struct Seen {
    /// The upper bit of the last word is the protocol: TCP 0, UDP 1.
    fingerprint: [u32; 3],
    /// The halves of the latest interval in which it was counted, plus one.
    counted: [u32; 2],
}

impl Seen {
    fn new([first, second]: [u64; 2], protocol: u8, counted: u64) -> Self {
        let last = (second >> 33) as u32 | u32::from(protocol) << 31;
        let fingerprint = [first as u32, (first >> 32) as u32, last];
        Self { fingerprint, counted: [counted as u32, (counted >> 32) as u32] }
    }

    #[inline(always)]
    fn hash(&self) -> u32 {
        self.fingerprint[0]
    }

    #[inline(always)]
    fn protocol(&self) -> usize {
        (self.fingerprint[2] >> 31) as usize
    }

    #[inline(always)]
    fn counted(&self) -> u64 {
        u64::from(self.counted[0]) | u64::from(self.counted[1]) << 32
    }

    /// Whether it is in a sample of this level: each has half of the one before.
    fn is_kept(&self, level: u32) -> bool {
        self.fingerprint[1].trailing_zeros() >= level
    }
}

/// The event of a conversation.
struct Noted {
    seen: Seen,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// A packet of a flow whose conversation was not counted.
    New,
    /// A packet of a flow whose conversation was counted in an earlier interval.
    Again,
    /// Its flow has ended.
    Ended,
}

/// The set of one shard.
pub(crate) struct Conversations {
    keys: [HashKey; 2],
    seen: Dense<Seen>,
    /// Not yet counted.
    noted: Vec<Noted>,
    /// The latest time of a noted packet.
    latest_ns: u64,
    /// `latest_ns` when the first flow ended: all conversations noted since then go into the set. A flow whose first
    /// packet is later was noted since then.
    since_ns: Option<u64>,
    capacity: usize,
    /// Whether those of all live flows are in the set.
    all: bool,
    /// Only fingerprints with this many low bits zero are kept; 0 unless all are in the set.
    level: u32,
    counts: [u64; 2],
}

/// TCP 0, UDP 1.
fn numbered(protocol: u8) -> Option<u8> {
    match protocol {
        6 => Some(0),
        17 => Some(1),
        _ => None,
    }
}

impl Conversations {
    /// An empty set; `all`: conversations go into it from their beginning.
    pub(crate) fn new(hash_key: HashKey, capacity: usize, all: bool) -> Self {
        let half = |n| HashKey::from_seed(hash_key.word(n));
        let capacity = capacity.clamp(16, Dense::<Seen>::MOST - 2 * NOTED);
        Self {
            keys: [half(1), half(2)],
            seen: Dense::new().with_most(capacity + 2 * NOTED),
            noted: Vec::with_capacity(NOTED),
            latest_ns: 0,
            since_ns: None,
            capacity,
            all,
            level: 0,
            counts: [0; 2],
        }
    }

    /// Notes a packet whose conversation was not counted in this interval; `known`: false if it was
    /// counted in no interval. If it certainly must be counted, returns its protocol (TCP 0, UDP
    /// 1); otherwise [`Conversations::settle`] decides.
    #[inline]
    pub(crate) fn note(
        &mut self,
        packet: &PacketRecord,
        interval: u64,
        known: bool,
    ) -> Option<usize> {
        let protocol = numbered(packet.protocol)?;
        self.latest_ns = self.latest_ns.max(packet.ts_ns);
        if !self.all && self.since_ns.is_none() {
            self.counts[usize::from(protocol)] += u64::from(!known);
            return Some(protocol.into());
        }
        let what = if known { What::Again } else { What::New };
        self.push(&FlowKey::of(packet), protocol, interval, what);
        None
    }

    /// Adds the conversation of a flow that has ended, which was counted last in this interval. `first_ns` is the time of
    /// the flow's first packet, or 0 if that is unknown.
    #[inline]
    pub(crate) fn ended(&mut self, key: &FlowKey, first_ns: u64, interval: u64) {
        if !self.all
            && first_ns <= *self.since_ns.get_or_insert(self.latest_ns)
            && let Some(protocol) = numbered(key.protocol)
        {
            self.push(key, protocol, interval, What::Ended);
        }
    }

    fn push(&mut self, key: &FlowKey, protocol: u8, interval: u64, what: What) {
        let [first, second] = &self.keys;
        let fingerprint = [fingerprint(first, key), fingerprint(second, key)];
        let seen = Seen::new(fingerprint, protocol, interval + 1);
        self.noted.push(Noted { seen, what });
    }

    /// Whether those of live flows must go into the set, too, for lack of room.
    pub(crate) fn is_full(&self) -> bool {
        !self.all && self.seen.len() >= self.capacity
    }

    /// Keeps all conversations from now on, beginning with those of live flows, each with the
    /// interval in which it was counted last. All noted events must be settled.
    #[cold]
    pub(crate) fn keep_all(&mut self, live: impl FnOnce(&mut dyn FnMut(&FlowKey, u64))) {
        if self.all {
            return;
        }
        self.all = true;
        live(&mut |key, interval| {
            if let Some(protocol) = numbered(key.protocol) {
                self.push(key, protocol, interval, What::New);
            }
            if self.noted.len() == NOTED {
                // They are counted already in their intervals.
                self.settle(|_, _, _| ());
            }
        });
        self.settle(|_, _, _| ());
        self.counts = [0; 2];
        for seen in self.seen.rows() {
            self.counts[seen.protocol()] += 1;
        }
    }

    /// Counts the noted events, in order. Calls `first` with the interval and the protocol of each
    /// conversation seen for the first time in an interval, and its weight (1, or more once the set
    /// is a sample). A packet of an interval earlier than one in which its conversation was counted
    /// is not counted again.
    pub(crate) fn settle(&mut self, mut first: impl FnMut(u64, usize, u64)) {
        let noted = std::mem::take(&mut self.noted);
        for group in noted.chunks(GROUP) {
            // Load index words, then rows: independent loads, so their misses overlap.
            let mut words = [0; GROUP];
            for (Noted { seen, .. }, word) in group.iter().zip(&mut words) {
                *word = self.seen.home(seen.hash());
            }
            let mut touched = 0;
            for (Noted { seen, .. }, &word) in group.iter().zip(&words) {
                let row = self.seen.hint(word, seen.hash());
                touched ^= row.map_or(0, |row| row.counted[1]);
            }
            std::hint::black_box(touched);
            for Noted { seen, what } in group {
                if self.count(seen, *what) {
                    first(seen.counted() - 1, seen.protocol(), 1 << self.level);
                }
            }
        }
        self.noted = noted;
        self.noted.clear();
    }

    /// True if the conversation was not yet counted in the interval.
    fn count(&mut self, noted: &Seen, what: What) -> bool {
        if let Some(at) = self.seen.find(noted.hash(), |own| own.fingerprint == noted.fingerprint) {
            let seen = self.seen.row_mut(at);
            let first = seen.counted() < noted.counted();
            if first {
                seen.counted = noted.counted;
            }
            return first && what != What::Ended;
        }
        if !self.all {
            self.counts[noted.protocol()] += u64::from(what == What::New);
            self.seen.insert(noted.hash(), *noted);
            return what != What::Ended;
        }
        if self.seen.len() >= self.capacity {
            self.thin_out();
        }
        let kept = noted.is_kept(self.level);
        if kept {
            self.counts[noted.protocol()] += 1;
            self.seen.insert(noted.hash(), *noted);
        }
        kept
    }

    /// Drops half of the set, repeatedly, until half of the room is free.
    #[cold]
    fn thin_out(&mut self) {
        while self.seen.len() > self.capacity / 2 {
            self.level += 1;
            let (level, counts) = (self.level, &mut self.counts);
            let keep = |seen: &Seen| {
                let kept = seen.is_kept(level);
                counts[seen.protocol()] -= u64::from(!kept);
                kept
            };
            self.seen.retain(keep, Seen::hash);
        }
    }

    /// Conversations by protocol, and whether the numbers are exact.
    pub(crate) fn counts(&self) -> ([u64; 2], bool) {
        (self.counts.map(|n| n << self.level), self.level == 0)
    }
}

#[inline]
fn fingerprint(hash_key: &HashKey, key: &FlowKey) -> u64 {
    let side = |address: &[u8; 16], port: u16| {
        let port = (u64::from(port) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash_key.word(hash_key.address(address) ^ port)
    };
    let both = side(&key.src, key.src_port).wrapping_add(side(&key.dst, key.dst_port));
    // An IPv4 address has the bytes of some IPv6 address, so the version is included.
    let version = u64::from(key.version == IpVersion::V6);
    hash_key.word(both ^ u64::from(key.protocol) << 56 ^ version << 33)
}

#[cfg(test)]
mod tests {
    use ringtap_wire::Flags;

    use super::*;

    const KEY: HashKey = HashKey::from_seed(3);

    fn packet(number: u32) -> PacketRecord {
        let mut packet = PacketRecord::EMPTY;
        packet.src[..4].copy_from_slice(&number.to_be_bytes());
        packet.protocol = if number.is_multiple_of(4) { 17 } else { 6 };
        packet.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
        packet
    }

    /// Whether the conversation of a flow's first packet counts in an interval.
    fn begins(set: &mut Conversations, packet: &PacketRecord, interval: u64) -> bool {
        let mut first = set.note(packet, interval, false).is_some();
        set.settle(|_, _, _| first = true);
        first
    }

    fn ends(set: &mut Conversations, packet: &PacketRecord, interval: u64) {
        set.ended(&FlowKey::of(packet), packet.ts_ns, interval);
        set.settle(|_, _, _| panic!("the end of a flow was counted"));
    }

    #[test]
    fn both_directions_are_one_conversation_and_ports_belong_to_their_address() {
        let mut set = Conversations::new(KEY, 100, true);
        let mut there = packet(1);
        (there.src_port, there.dst_port) = (80, 1000);
        let mut back = there;
        (back.src, back.dst) = (there.dst, there.src);
        (back.src_port, back.dst_port) = (1000, 80);
        let mut crossed = there;
        (crossed.src_port, crossed.dst_port) = (1000, 80);
        let first = [&there, &back, &crossed].map(|packet| begins(&mut set, packet, 0));
        assert_eq!(first, [true, false, true]);
        assert_eq!(set.counts(), ([2, 0], true));
    }

    #[test]
    fn conversations_of_ended_flows_are_kept() {
        let mut set = Conversations::new(KEY, 100, false);
        let (one, two) = (packet(1), packet(2));
        assert!(begins(&mut set, &one, 5) && begins(&mut set, &two, 5));
        assert_eq!(set.note(&two, 6, true), Some(0));
        ends(&mut set, &one, 5);
        // Again in the same interval, late, and in a new one.
        assert!([5, 4, 6].map(|interval| begins(&mut set, &one, interval)) == [false, false, true]);
        // The other flow began before the first end, so it is not in the set yet.
        let mut first = 0;
        assert_eq!(set.note(&two, 7, true), None);
        set.settle(|_, _, _| first += 1);
        assert_eq!((first, set.counts()), (1, ([2, 0], true)));
    }

    /// After the first end, a conversation is in the set from its beginning, and its end changes nothing. A flow that began
    /// before, or with an earlier time, goes into the set when it ends.
    #[test]
    fn conversations_that_begin_after_the_first_end_are_in_the_set() {
        let mut set = Conversations::new(KEY, 100, false);
        let at = |number, ts_ns| PacketRecord { ts_ns, ..packet(number) };
        assert!([at(1, 5), at(2, 9)].iter().all(|packet| begins(&mut set, packet, 1)));
        ends(&mut set, &at(1, 5), 1);
        assert!([at(3, 10), at(4, 7)].iter().all(|packet| begins(&mut set, packet, 1)));
        assert_eq!(set.seen.len(), 3);
        set.ended(&FlowKey::of(&packet(3)), 10, 1);
        assert!(set.noted.is_empty());
        ends(&mut set, &at(2, 9), 1);
        ends(&mut set, &at(4, 7), 1);
        assert_eq!(set.seen.len(), 4);
        assert!(![1, 2, 3, 4].iter().any(|number| begins(&mut set, &packet(*number), 1)));
        assert_eq!(set.counts(), ([3, 1], true));
    }

    #[test]
    fn an_end_without_a_conversation_counts_as_the_first() {
        let mut set = Conversations::new(KEY, 100, false);
        let icmp = PacketRecord { protocol: 1, ..packet(9) };
        ends(&mut set, &icmp, 1);
        let later = PacketRecord { ts_ns: 1, ..packet(1) };
        assert!(begins(&mut set, &later, 1));
        ends(&mut set, &later, 1);
        assert!(!begins(&mut set, &later, 1));
    }

    #[test]
    fn keeping_all_changes_no_count() {
        let mut set = Conversations::new(KEY, 1_000, false);
        (0..300).for_each(|number| assert!(begins(&mut set, &packet(number), 1)));
        (0..100).for_each(|number| ends(&mut set, &packet(number), 1));
        let before = set.counts();
        set.keep_all(|live| {
            (100..300).for_each(|number| live(&FlowKey::of(&packet(number)), 1));
        });
        assert_eq!(set.counts(), before);
        (0..300).for_each(|number| assert!(!begins(&mut set, &packet(number), 1)));
        assert!(begins(&mut set, &packet(7), 2));
        assert_eq!(set.counts(), before);
    }

    #[test]
    fn an_overfull_set_estimates_and_is_marked() {
        for all in [true, false] {
            let mut set = Conversations::new(KEY, 4_000, all);
            for number in 0..100_000 {
                for number in [number, number / 2] {
                    begins(&mut set, &packet(number), 0);
                    ends(&mut set, &packet(number), 0);
                    if set.is_full() {
                        set.keep_all(|_| ());
                    }
                }
            }
            let ([tcp, udp], exact) = set.counts();
            assert!(!exact && set.seen.len() <= 4_000);
            assert!((65_000..85_000).contains(&tcp) && (20_000..30_000).contains(&udp));
        }
    }
}
