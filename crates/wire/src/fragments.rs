//! The ports of later fragments, remembered from the first fragment of their datagram.
//!
//! A table of fixed size, four ways to a set; the set is picked by a keyed hash, since an attacker
//! chooses the key. Sixteen sets make a region ([`REGIONS`]), whose pairs share them with no other:
//!
//! ```text
//!  set 0     | entry | entry | entry | entry |      entry: source, destination, identification,
//!  …                                                protocol, tunnel → ports, protocol, time
//!  set 1023  | entry | entry | entry | entry |
//! ```
//!
//! An entry answers for 30 s of packet time after its first fragment. A new datagram takes, in this
//! order: the entry with its own key, an empty one, the one with the oldest time (the first of
//! them). So what is remembered depends on the packets alone, and only on those of the region.
//!
//! Invariants: 4096 datagrams at most, no allocation after [`FragmentTable::new`].

use crate::hash::{HashKey, REGIONS, region};

/// How long later fragments may come after the first one (RFC 791 suggests 15 s, RFC 8200 says
/// 60 s for reassembly; hosts use 30 s).
const TIMEOUT_NS: u64 = 30_000_000_000;
const SETS: usize = 1024;
const WAYS: usize = 4;

/// What makes fragments belong to one datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramKey {
    pub(crate) src: [u8; 16],
    pub(crate) dst: [u8; 16],
    pub(crate) identification: u32,
    /// IPv4: the protocol. IPv6: [`DatagramKey::IPV6`], as its later fragments need not say the
    /// truth (RFC 8200, section 4.5).
    pub(crate) protocol: u16,
    /// The tunnel they came by; 0 for none.
    pub(crate) scope: u32,
}

impl DatagramKey {
    /// Stands for the protocol in the key of an IPv6 datagram.
    pub(crate) const IPV6: u16 = 0x100;
}

/// What the first fragment knows.
#[derive(Clone, Copy)]
pub(crate) struct FirstFragment {
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) protocol: u8,
}

#[derive(Clone, Copy)]
struct Entry {
    key: DatagramKey,
    first: FirstFragment,
    ts_ns: u64,
}

pub(crate) struct FragmentTable {
    key: HashKey,
    sets: Box<[[Option<Entry>; WAYS]]>,
}

impl FragmentTable {
    pub(crate) fn new(key: HashKey) -> Self {
        Self { key, sets: vec![[None; WAYS]; SETS].into_boxed_slice() }
    }

    /// Remembers a first fragment.
    pub(crate) fn insert(&mut self, key: DatagramKey, ts_ns: u64, first: FirstFragment) {
        let set = self.set(&key);
        let way = (0..WAYS)
            .find(|&way| set[way].is_some_and(|entry| entry.key == key))
            .or_else(|| (0..WAYS).find(|&way| set[way].is_none()))
            .or_else(|| (0..WAYS).min_by_key(|&way| set[way].map(|entry| entry.ts_ns)))
            .unwrap_or(0);
        set[way] = Some(Entry { key, first, ts_ns });
    }

    /// Forgets a datagram: its identification is used again.
    pub(crate) fn remove(&mut self, key: DatagramKey) {
        for entry in self.set(&key) {
            if entry.is_some_and(|entry| entry.key == key) {
                *entry = None;
            }
        }
    }

    /// What the first fragment of this datagram said, if it was seen less than 30 s before (or,
    /// where capture times run backwards, after).
    pub(crate) fn find(&mut self, key: DatagramKey, ts_ns: u64) -> Option<FirstFragment> {
        let entry = self.set(&key).iter().flatten().find(|entry| entry.key == key)?;
        (entry.ts_ns.abs_diff(ts_ns) <= TIMEOUT_NS).then_some(entry.first)
    }

    fn set(&mut self, key: &DatagramKey) -> &mut [Option<Entry>; WAYS] {
        const OF_REGION: usize = SETS / REGIONS;
        let pair = self.key.pair(&key.src, &key.dst);
        let scoped = u64::from(pair) ^ u64::from(key.scope);
        let hash = self.key.word(scoped << 32 ^ u64::from(key.identification));
        &mut self.sets[region(pair) * OF_REGION + (hash >> 32) as usize % OF_REGION]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(host: u32, identification: u32) -> DatagramKey {
        let mut src = [0; 16];
        src[..4].copy_from_slice(&host.to_be_bytes());
        DatagramKey { src, dst: [1; 16], identification, protocol: 17, scope: 0 }
    }

    fn first(src_port: u16) -> FirstFragment {
        FirstFragment { src_port, dst_port: 53, protocol: 17 }
    }

    fn ports(table: &mut FragmentTable, key: DatagramKey, ts_ns: u64) -> Option<u16> {
        table.find(key, ts_ns).map(|first| first.src_port)
    }

    #[test]
    fn an_entry_answers_for_its_own_datagram_and_time() {
        let mut table = FragmentTable::new(HashKey::from_seed(1));
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
    }

    /// Two tables, each of which sees half of the regions only, know what one table knows.
    #[test]
    fn regions_do_not_disturb_each_other() {
        let hash_key = HashKey::from_seed(1);
        let mut whole = FragmentTable::new(hash_key);
        let mut halves = [FragmentTable::new(hash_key), FragmentTable::new(hash_key)];
        let half = |key: &DatagramKey| region(hash_key.pair(&key.src, &key.dst)) * 2 / REGIONS;
        for i in 0..30_000u32 {
            let key = key(i % 700, i);
            whole.insert(key, u64::from(i), first(i as u16));
            halves[half(&key)].insert(key, u64::from(i), first(i as u16));
        }
        let mut known = 0;
        for i in 0..30_000u32 {
            let key = key(i % 700, i);
            let port = ports(&mut whole, key, u64::from(i));
            assert_eq!(ports(&mut halves[half(&key)], key, u64::from(i)), port, "{i}");
            known += u32::from(port.is_some());
        }
        assert!(known > 3_000, "{known}");
    }

    #[test]
    fn a_flood_forgets_the_oldest_and_nothing_else() {
        let mut table = FragmentTable::new(HashKey::from_seed(1));
        for i in 0..100_000u32 {
            table.insert(key(i, i), u64::from(i), first(i as u16));
        }
        let mut kept = 0;
        for i in 0..100_000u32 {
            if let Some(port) = ports(&mut table, key(i, i), u64::from(i)) {
                assert_eq!(port, i as u16);
                kept += 1;
                // Nearly all of what is kept came in the last turns of the table.
                assert!(i > 50_000, "{i}");
            }
        }
        assert_eq!(kept, SETS * WAYS);
    }
}
