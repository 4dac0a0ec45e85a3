//! What is counted: packets, and the structures of one IP version.

use std::sync::OnceLock;

use ringtap_base::Latency;
use ringtap_sketch::{Distinct, Exact, Sketch};

use crate::common::Common;
use crate::keys::PacketKey;
use crate::settings::Settings;
use crate::structure::Structure;

/// Most keys of the exact answer, for each IP version in each worker.
const CHECKED_KEYS: usize = 1 << 24;
/// Binary logarithm of the registers of a HyperLogLog: a standard error of 1.6 %, in 4 KiB.
const DISTINCT_LG: u8 = 12;

/// Counters that add up.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketCounts {
    pub(crate) measured: u64,
    /// Packets without a usable IP header.
    pub(crate) no_address: u64,
    /// IPv6 packets, in a structure without such keys.
    pub(crate) no_such_keys: u64,
    /// Packets of another interval.
    pub(crate) strays: u64,
    pub(crate) processing_ns: u64,
    /// `None` if nothing was timed: it takes 30 KiB.
    pub(crate) delay: Option<Latency>,
}

impl PacketCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.measured += other.measured;
        self.no_address += other.no_address;
        self.no_such_keys += other.no_such_keys;
        self.strays += other.strays;
        self.processing_ns += other.processing_ns;
        if let Some(delay) = &other.delay {
            self.delay.get_or_insert_default().merge(delay);
        }
    }

    /// All packets.
    pub(crate) fn all(&self) -> u64 {
        self.measured + self.no_address + self.no_such_keys
    }
}

/// State of one IP version.
#[derive(Debug)]
pub(crate) struct Side<K: PacketKey> {
    /// `None`: no packet yet, or counted in the common one.
    pub(crate) structure: Option<Structure<K>>,
    pub(crate) exact: Option<Exact<K>>,
    pub(crate) distinct: Option<Distinct<K>>,
}

impl<K: PacketKey> Side<K> {
    pub(crate) const fn new() -> Self {
        Self { structure: None, exact: None, distinct: None }
    }

    /// Memory of the structure.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.structure.as_ref().map_or(0, Structure::memory_bytes)
    }

    pub(crate) fn count(
        &mut self,
        items: &[(K, u64)],
        settings: &Settings,
        common: Option<&OnceLock<Common<K>>>,
    ) {
        if items.is_empty() {
            return;
        }
        match common {
            Some(common) => common.get_or_init(|| Common::new(settings)).update(items),
            None => self.structure.get_or_insert_with(|| Structure::new(settings)).update(items),
        }
    }

    /// Counts them in the exact answer and the distinct keys, if requested.
    pub(crate) fn check(&mut self, items: &[(K, u64)], settings: &Settings) {
        if items.is_empty() {
            return;
        }
        if settings.check {
            let exact = || Exact::new(CHECKED_KEYS, settings.seed).expect("a valid size");
            self.exact.get_or_insert_with(exact).update_burst(items);
        }
        if settings.distinct {
            let distinct = || Distinct::new(DISTINCT_LG).expect("a valid size");
            let distinct = self.distinct.get_or_insert_with(distinct);
            items.iter().for_each(|(key, _)| distinct.update(key));
        }
    }
}
