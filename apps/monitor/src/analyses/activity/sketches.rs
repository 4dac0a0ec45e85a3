//! The sketches of one interval.

use ringtap_sketch::{Distinct, Hierarchy, MisraGries, Sketch};

use super::group::{Group, Target};
use super::networks::{self, Host};

/// Hosts of each kind in an interval, so that no number is wrong by more than 1/768 of the total.
pub(crate) const COUNTERS: usize = 1_536;

/// Registers of each HyperLogLog: 2^12.
const LG_REGISTERS: u8 = 12;

/// The sketches of one interval; 1.5 MiB at most.
pub struct Sketches {
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) packets: u64,
    pub(super) octets: u64,
    pub(super) strays: u64,
    pub(super) senders: MisraGries<Host>,
    pub(super) receivers: MisraGries<Host>,
    pub(super) sending: Hierarchy<Host>,
    pub(super) receiving: Hierarchy<Host>,
    pub(super) targets: MisraGries<Host>,
    pub(super) protocols: MisraGries<Target>,
    pub(super) spread: MisraGries<Host>,
    pub(super) drawn: MisraGries<Host>,
    pub(super) sources: Option<Distinct<Host>>,
    pub(super) destinations: Option<Distinct<Host>>,
    seen: Seen,
    /// Pairs of this shard once it is closed, and of other shards.
    pairs: u64,
}

impl Sketches {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            first_ns: u64::MAX,
            last_ns: 0,
            packets: 0,
            octets: 0,
            strays: 0,
            senders: misra_gries(seed),
            receivers: misra_gries(seed),
            sending: hierarchy(seed),
            receiving: hierarchy(seed),
            targets: misra_gries(seed),
            protocols: misra_gries(seed),
            spread: misra_gries(seed),
            drawn: misra_gries(seed),
            sources: Distinct::new(LG_REGISTERS).ok(),
            destinations: Distinct::new(LG_REGISTERS).ok(),
            seen: Seen::new(),
            pairs: 0,
        }
    }

    /// Adds the packets of the group and empties it.
    pub(super) fn add(&mut self, group: &mut Group) {
        self.first_ns = self.first_ns.min(group.first_ns);
        self.last_ns = self.last_ns.max(group.last_ns);
        (group.first_ns, group.last_ns) = (u64::MAX, 0);
        self.packets += group.senders.len() as u64;
        self.octets += group.senders.iter().map(|(_, octets)| octets).sum::<u64>();
        self.strays += std::mem::take(&mut group.strays);
        self.senders.update_burst(&group.senders);
        self.receivers.update_burst(&group.receivers);
        self.sending.update_burst(&group.senders);
        self.receiving.update_burst(&group.receivers);
        self.targets.update_burst(&group.hosts);
        self.protocols.update_burst(&group.targets);
        group.hosts.clear();
        group.targets.clear();
        let ends = group.senders.drain(..).zip(group.receivers.drain(..));
        for (((source, _), (destination, _)), pair) in ends.zip(group.pairs.drain(..)) {
            if self.seen.insert(pair) {
                self.spread.update(&source, 1);
                self.drawn.update(&destination, 1);
                self.sources.iter_mut().for_each(|sources| sources.update(&source));
                self.destinations.iter_mut().for_each(|hosts| hosts.update(&destination));
            }
        }
    }

    /// No packets follow: frees the memory that only they need, a third of all, because many intervals may wait for the
    /// slowest worker.
    pub(super) fn close(&mut self) {
        self.pairs = self.pairs();
        self.seen = Seen { bits: Vec::new(), set: 0 };
    }

    /// Joins two shards' sketches of an interval.
    pub(super) fn merge(&mut self, other: &Self) {
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.packets += other.packets;
        self.octets += other.octets;
        self.strays += other.strays;
        let merged = [
            self.senders.merge(&other.senders),
            self.receivers.merge(&other.receivers),
            self.sending.merge(&other.sending),
            self.receiving.merge(&other.receiving),
            self.targets.merge(&other.targets),
            self.protocols.merge(&other.protocols),
            self.spread.merge(&other.spread),
            self.drawn.merge(&other.drawn),
        ];
        assert!(merged.iter().all(Result::is_ok), "all sketches have the same size");
        for (own, more) in
            [(&mut self.sources, &other.sources), (&mut self.destinations, &other.destinations)]
        {
            if let (Some(own), Some(more)) = (own, more) {
                // They have the same size, too.
                let _ = own.merge(more);
            }
        }
        self.pairs += other.pairs();
    }

    /// Ordered pairs of addresses, estimated.
    pub(super) fn pairs(&self) -> u64 {
        self.pairs + self.seen.estimate()
    }
}

fn misra_gries<K: ringtap_sketch::Key>(seed: u64) -> MisraGries<K> {
    MisraGries::new(COUNTERS, seed).expect("a valid size")
}

fn hierarchy(seed: u64) -> Hierarchy<Host> {
    Hierarchy::new(COUNTERS, &networks::PARENTS, seed).expect("a valid size")
}

/// The pairs seen: a bit for each hash (K. Whang, B. Vander-Zanden, H. Taylor, "A linear-time
/// probabilistic counting algorithm", 1990).
struct Seen {
    bits: Vec<u64>,
    set: u64,
}

impl Seen {
    const LG_BITS: u32 = 22;

    fn new() -> Self {
        Self { bits: vec![0; 1 << (Self::LG_BITS - 6)], set: 0 }
    }

    /// Returns whether the pair was new, as was every other one with the same bit.
    fn insert(&mut self, hash: u64) -> bool {
        let at = hash >> (64 - Self::LG_BITS);
        let (word, bit) = (&mut self.bits[(at >> 6) as usize], 1 << (at & 63));
        let new = *word & bit == 0;
        *word |= bit;
        self.set += u64::from(new);
        new
    }

    fn estimate(&self) -> u64 {
        let bits = f64::from(1_u32 << Self::LG_BITS);
        // A full map gives only a lower bound.
        let free = (bits - self.set as f64).max(1.0);
        (bits * (bits / free).ln()).round() as u64
    }
}
