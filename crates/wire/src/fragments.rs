//! The ports of later fragments, stored from the first fragment of their datagram.
//!
//! ```text
//!  heads   | 3 | 0 | 1 | …       by a keyed hash of addresses, identification, tunnel; 0: none
//!            │       └▶ entries | datagram → ports, protocol, time | next in chain | older | newer |
//!            └───────────────▶          chained by hash, and listed by age
//! ```
//!
//! An entry is valid for 30 s of packet time after its first fragment. The table is exact while it has room: the stored
//! datagrams depend neither on the hash key nor on other address pairs. A full table evicts its oldest entry; an entry
//! that was still valid is counted ([`FragmentTable::evicted`]).
//!
//! Invariants: at most the number of datagrams given to [`FragmentTable::new`]; no allocation after it. The kernel
//! provides the memory as datagrams arrive.

use std::hash::{Hash, Hasher};

use crate::hash::{HashKey, region};

/// How long a first fragment is stored (RFC 791 suggests 15 s for reassembly, RFC 8200 60 s; hosts use 30 s).
const TIMEOUT_NS: u64 = 30_000_000_000;

/// Memory of a stored datagram, in bytes: its entry and its part of the index.
pub const BYTES_PER_DATAGRAM: u64 = (size_of::<Entry>() + size_of::<Link>()) as u64;

const _: () = assert!(size_of::<Entry>() == 72);

/// Identifies the datagram of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramKey {
    /// Source address, as in the record.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// The identification in the header.
    pub identification: u32,
    /// IPv4: the protocol. IPv6: 256, because the next-header values of its fragments may differ (RFC
    /// 8200, section 4.5).
    pub protocol: u16,
    /// The tunnel of the fragments; 0 for none.
    pub scope: u32,
}

impl Hash for DatagramKey {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(&self.src);
        hasher.write(&self.dst);
        hasher.write_u64(u64::from(self.identification) | u64::from(self.protocol) << 32);
        hasher.write_u64(self.scope.into());
    }
}

impl DatagramKey {
    /// Replaces the protocol in the key of an IPv6 datagram.
    pub(crate) const IPV6: u16 = 0x100;
}

/// Fields of the first fragment that later fragments lack.
#[derive(Clone, Copy)]
pub(crate) struct FirstFragment {
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) protocol: u8,
}

/// The position of an entry plus 1; 0: none.
type Link = u32;

struct Entry {
    key: DatagramKey,
    first: FirstFragment,
    ts_ns: u64,
    /// The next entry with the same hash; of an unused entry, the next unused one.
    next: Link,
    older: Link,
    newer: Link,
}

pub(crate) struct FragmentTable {
    key: HashKey,
    /// One bit for each region of the pair hash whose datagrams this table stores.
    regions: u64,
    /// The first entry of each chain.
    heads: Box<[Link]>,
    /// At most as long as `heads`.
    entries: Vec<Entry>,
    unused: Link,
    oldest: Link,
    newest: Link,
    evicted: u64,
    /// The latest time of the entries that were removed after they had expired.
    expired_ns: Option<u64>,
}

impl FragmentTable {
    /// Creates a table for `datagrams` (at least 1) of the address pairs in `regions`.
    pub(crate) fn new(key: HashKey, datagrams: usize, regions: u64) -> Self {
        let datagrams = datagrams.clamp(1, Link::MAX as usize - 1);
        Self {
            key,
            regions,
            heads: vec![0; datagrams].into_boxed_slice(),
            entries: Vec::with_capacity(datagrams),
            unused: 0,
            oldest: 0,
            newest: 0,
            evicted: 0,
            expired_ns: None,
        }
    }

    /// Datagrams that were evicted while valid, because the table was full.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Stores a first fragment.
    pub(crate) fn insert(&mut self, key: DatagramKey, ts_ns: u64, first: FirstFragment) {
        let Some(chain) = self.chain(&key) else { return };
        // The identification is used again: a new datagram.
        self.take(chain, &key);
        let unused = self.unused;
        let link = if let Some(entry) = self.entry(unused) {
            self.unused = entry.next;
            unused
        } else if self.entries.len() < self.heads.len() {
            let entry = Entry { key, first, ts_ns, next: 0, older: 0, newer: 0 };
            self.entries.push(entry);
            self.entries.len() as Link
        } else {
            self.drop_oldest(ts_ns);
            std::mem::take(&mut self.unused)
        };
        let (next, older) = (self.heads[chain], self.newest);
        if let Some(entry) = self.entry(link) {
            *entry = Entry { key, first, ts_ns, next, older, newer: 0 };
        }
        self.heads[chain] = link;
        self.newest = link;
        match self.entry(older) {
            Some(before) => before.newer = link,
            None => self.oldest = link,
        }
    }

    /// Removes a datagram: its identification is used again.
    pub(crate) fn remove(&mut self, key: DatagramKey) {
        if let Some(chain) = self.chain(&key) {
            self.take(chain, &key);
        }
    }

    /// The stored fields of this datagram's first fragment, if it was captured at most 30 s before (or, where capture
    /// times step back, after).
    pub(crate) fn find(&mut self, key: DatagramKey, ts_ns: u64) -> Option<FirstFragment> {
        let chain = self.chain(&key)?;
        let mut link = self.heads[chain];
        while let Some(entry) = self.entry(link) {
            if entry.key == key {
                return (entry.ts_ns.abs_diff(ts_ns) <= TIMEOUT_NS).then_some(entry.first);
            }
            link = entry.next;
        }
        // Time stepped back, so an entry that was removed as expired may be valid again: this may be one of them.
        if self.expired_ns.is_some_and(|until_ns| ts_ns <= until_ns.saturating_add(TIMEOUT_NS)) {
            self.evicted += 1;
        }
        None
    }

    /// The position in `heads` of a datagram, if this table stores its region.
    fn chain(&self, key: &DatagramKey) -> Option<usize> {
        let pair = self.key.pair(&key.src, &key.dst);
        if (self.regions >> region(pair)) & 1 == 0 {
            return None;
        }
        let scoped = self.key.word(u64::from(pair) << 32 | u64::from(key.scope));
        let own = u64::from(key.identification) | u64::from(key.protocol) << 32;
        let hash = self.key.word(scoped ^ own);
        Some((((hash >> 32) * self.heads.len() as u64) >> 32) as usize)
    }

    fn entry(&mut self, link: Link) -> Option<&mut Entry> {
        self.entries.get_mut((link as usize).wrapping_sub(1))
    }

    /// Removes a datagram, if it is stored.
    fn take(&mut self, chain: usize, key: &DatagramKey) {
        let (mut before, mut link) = (0, self.heads[chain]);
        while let Some(entry) = self.entry(link) {
            let next = entry.next;
            if entry.key != *key {
                (before, link) = (link, next);
                continue;
            }
            let (older, newer) = (entry.older, entry.newer);
            match self.entry(before) {
                Some(before) => before.next = next,
                None => self.heads[chain] = next,
            }
            match self.entry(older) {
                Some(older) => older.newer = newer,
                None => self.oldest = newer,
            }
            match self.entry(newer) {
                Some(newer) => newer.older = older,
                None => self.newest = older,
            }
            let unused = std::mem::replace(&mut self.unused, link);
            if let Some(entry) = self.entry(link) {
                entry.next = unused;
            }
            return;
        }
    }

    /// Evicts the oldest entry to make room for a datagram of this time.
    fn drop_oldest(&mut self, ts_ns: u64) {
        let oldest = self.oldest;
        let Some(&mut Entry { key, ts_ns: then_ns, .. }) = self.entry(oldest) else { return };
        if ts_ns.saturating_sub(then_ns) > TIMEOUT_NS {
            self.expired_ns = self.expired_ns.max(Some(then_ns));
        } else {
            self.evicted += 1;
        }
        self.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn key(host: u32, identification: u32) -> DatagramKey {
        let mut src = [0; 16];
        src[..4].copy_from_slice(&host.to_be_bytes());
        DatagramKey { src, dst: [1; 16], identification, protocol: 17, scope: 0 }
    }

    fn first(src_port: u16) -> FirstFragment {
        FirstFragment { src_port, dst_port: 53, protocol: 17 }
    }

    fn table(datagrams: usize) -> FragmentTable {
        FragmentTable::new(HashKey::from_seed(1), datagrams, !0)
    }

    fn ports(table: &mut FragmentTable, key: DatagramKey, ts_ns: u64) -> Option<u16> {
        table.find(key, ts_ns).map(|first| first.src_port)
    }

    #[test]
    fn an_entry_is_found_only_for_its_datagram_and_time() {
        let mut table = table(100);
        table.insert(key(1, 7), TIMEOUT_NS, first(1000));
        assert_eq!(ports(&mut table, key(1, 7), 0), Some(1000));
        assert_eq!(ports(&mut table, key(1, 7), 2 * TIMEOUT_NS), Some(1000));
        assert_eq!(ports(&mut table, key(1, 7), 2 * TIMEOUT_NS + 1), None);
        assert_eq!(ports(&mut table, key(1, 8), 0), None);
        assert_eq!(ports(&mut table, key(2, 7), 0), None);
        assert_eq!(ports(&mut table, DatagramKey { protocol: 6, ..key(1, 7) }, 0), None);
        assert_eq!(ports(&mut table, DatagramKey { scope: 1, ..key(1, 7) }, 0), None);
        table.insert(key(1, 7), TIMEOUT_NS, first(2000));
        assert_eq!(ports(&mut table, key(1, 7), 0), Some(2000));
        table.remove(key(1, 7));
        assert_eq!(ports(&mut table, key(1, 7), TIMEOUT_NS), None);
        assert_eq!(table.evicted(), 0);
    }

    /// A sender who chooses protocols, identifications and tunnels does not make chains long.
    #[test]
    fn chosen_datagrams_spread_over_the_chains() {
        for seed in 0..50 {
            let table = FragmentTable::new(HashKey::from_seed(seed), 4_096, !0);
            let own = |what: &dyn Fn(u16) -> DatagramKey| {
                let mut chains = [0; 4_096];
                (0..256).for_each(|at| chains[table.chain(&what(at)).unwrap()] += 1);
                chains.into_iter().max().unwrap()
            };
            assert!(own(&|protocol| DatagramKey { protocol, ..key(1, 7) }) <= 6);
            assert!(own(&|scope| DatagramKey { scope: scope.into(), ..key(1, 7) }) <= 6);
            assert!(own(&|id| key(1, u32::from(id) << 16)) <= 6);
            let both = |at: u16| DatagramKey { protocol: at, ..key(1, u32::from(at)) };
            assert!(own(&both) <= 6);
        }
    }

    /// For few address pairs and for any seed.
    #[test]
    fn a_table_with_room_evicts_nothing() {
        for seed in 0..16 {
            for hosts in [1, 3, 4_096] {
                let mut table = FragmentTable::new(HashKey::from_seed(seed), 4_096, !0);
                (0..4_096).for_each(|i| table.insert(key(i % hosts, i), 0, first(i as u16)));
                for i in 0..4_096 {
                    assert_eq!(ports(&mut table, key(i % hosts, i), 0), Some(i as u16), "{seed}");
                }
                assert_eq!(table.evicted(), 0);
            }
        }
    }

    #[test]
    fn a_full_table_drops_the_oldest_and_counts_it() {
        let mut table = table(1_000);
        (0..10_000).for_each(|i| table.insert(key(i % 7, i), u64::from(i), first(i as u16)));
        for i in 0..10_000 {
            let kept = (i >= 9_000).then_some(i as u16);
            assert_eq!(ports(&mut table, key(i % 7, i), u64::from(i)), kept, "{i}");
        }
        assert_eq!(table.evicted(), 9_000);
        // An expired entry makes room without a loss.
        let later_ns = 10_000 + TIMEOUT_NS;
        (0..1_000).for_each(|i| table.insert(key(9, i), later_ns, first(1)));
        assert_eq!(table.evicted(), 9_000);
        // Unless time steps back to where it would be valid.
        assert_eq!(ports(&mut table, key(0, 9_100), later_ns), None);
        assert_eq!(table.evicted(), 9_000);
        assert_eq!(ports(&mut table, key(0, 9_100), 9_100), None);
        assert_eq!(table.evicted(), 9_001);
    }

    /// Two tables with half of the regions each store together what one table stores.
    #[test]
    fn a_table_stores_only_its_own_regions() {
        let hash_key = HashKey::from_seed(1);
        let half = |datagrams, regions| FragmentTable::new(hash_key, datagrams, regions);
        let (mut lower, mut upper) = (half(30_000, 0xffff_ffff), half(30_000, !0xffff_ffff));
        for i in 0..30_000 {
            lower.insert(key(i % 700, i), u64::from(i), first(i as u16));
            upper.insert(key(i % 700, i), u64::from(i), first(i as u16));
        }
        for i in 0..30_000 {
            let key = key(i % 700, i);
            let known = (ports(&mut lower, key, 0), ports(&mut upper, key, 0));
            let is_lower = region(hash_key.pair(&key.src, &key.dst)) < 32;
            let port = Some(i as u16);
            assert_eq!(known, if is_lower { (port, None) } else { (None, port) });
        }
        assert!(lower.entries.len() > 10_000 && upper.entries.len() > 10_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a list of datagrams in order of arrival.
        #[test]
        fn it_equals_a_list(
            room in 1usize..12,
            steps in prop::collection::vec((0u8..3, 0u32..3, 0u32..9, 0u64..3), 0..400),
        ) {
            let mut table = table(room);
            let mut list: VecDeque<(u32, u32, u64, u16)> = VecDeque::new();
            let (mut now_ns, mut evicted) = (0, 0);
            for (number, (what, host, identification, seconds)) in (0u16..).zip(steps) {
                now_ns += seconds * 5_000_000_000;
                let own = |at: &(u32, u32, u64, u16)| (at.0, at.1) == (host, identification);
                let key = key(host, identification);
                match what {
                    0 => {
                        table.insert(key, now_ns, first(number));
                        list.retain(|entry| !own(entry));
                        if list.len() == room {
                            let (.., then_ns, _) = list.pop_front().unwrap();
                            evicted += u64::from(now_ns - then_ns <= TIMEOUT_NS);
                        }
                        list.push_back((host, identification, now_ns, number));
                    }
                    1 => {
                        table.remove(key);
                        list.retain(|entry| !own(entry));
                    }
                    _ => {
                        let valid = |entry: &&(u32, u32, u64, u16)| now_ns - entry.2 <= TIMEOUT_NS;
                        let port = list.iter().find(|entry| own(entry)).filter(valid);
                        prop_assert_eq!(ports(&mut table, key, now_ns), port.map(|entry| entry.3));
                    }
                }
                prop_assert_eq!(table.evicted(), evicted);
            }
        }
    }
}
