//! A worker: makes the keys of its shard's packets and counts them, in its own structure or in the
//! common one.
//!
//! ```text
//!  a burst ─▶ keys and weights ─┬ IPv4 ─▶ structure        │◀─ this is timed ─▶│ then, if requested:
//!                               └ IPv6 ─▶ structure        │                   │ exact counts, distinct keys
//! ```
//!
//! A structure is allocated at the first packet of its IP version; after that nothing is allocated
//! (except by structures that grow).

use std::sync::{Arc, OnceLock};

use ringtap_base::Latency;
use ringtap_sketch::{Distinct, Exact, Sketch};
use ringtap_stage::{Attachments, Mark, Outbox, Worker};
use ringtap_wire::{Flags, PacketRecord};

use crate::common::{Both, Common};
use crate::keys::{Keying, Keys, PacketKey};
use crate::settings::{Settings, Weight};
use crate::structure::Structure;

/// Most keys of the exact answer, for each IP version in each worker.
pub(crate) const CHECKED_KEYS: usize = 1 << 24;
/// Binary logarithm of the registers of a HyperLogLog: a standard error of 1.6 %, in 4 KiB.
const DISTINCT_LG: u8 = 12;

/// Counts the packets of one shard.
pub struct MeasureWorker<V: Keys> {
    settings: Settings,
    now: fn() -> u64,
    keying: Keying,
    common: Option<Arc<Both<V>>>,
    found: Found<V>,
    v4: Vec<(V::V4, u64)>,
    v6: Vec<(V::V6, u64)>,
}

/// A worker's result.
pub struct Found<V: Keys> {
    pub(crate) common: Option<Arc<Both<V>>>,
    pub(crate) v4: Side<V::V4>,
    pub(crate) v6: Side<V::V6>,
    pub(crate) packets: PacketCounts,
}

/// Counters that add up.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketCounts {
    pub(crate) measured: u64,
    /// Packets without a usable IP header.
    pub(crate) no_address: u64,
    /// IPv6 packets, in a structure without such keys.
    pub(crate) no_such_keys: u64,
    pub(crate) processing_ns: u64,
    pub(crate) delay: Latency,
}

impl PacketCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.measured += other.measured;
        self.no_address += other.no_address;
        self.no_such_keys += other.no_such_keys;
        self.processing_ns += other.processing_ns;
        self.delay.merge(&other.delay);
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

    fn count(
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

    fn check(&mut self, items: &[(K, u64)], settings: &Settings) {
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

impl<V: Keys> MeasureWorker<V> {
    pub(crate) fn new(settings: &Settings, now: fn() -> u64, common: Option<Arc<Both<V>>>) -> Self {
        Self {
            settings: *settings,
            now,
            keying: Keying::new(settings.by),
            common,
            found: Found::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        }
    }

    /// Makes the keys of a burst.
    fn sort(&mut self, burst: &[PacketRecord]) {
        self.v4.clear();
        self.v6.clear();
        let (keying, octets) = (&self.keying, self.settings.weight == Weight::Octets);
        let countable = Structure::<V::V6>::can_count(self.settings.structure);
        let packets = &mut self.found.packets;
        for packet in burst {
            let weight = if octets { u64::from(packet.ip_len) } else { 1 };
            if packet.flags.contains(Flags::BAD_HEADER) {
                packets.no_address += 1;
            } else if packet.flags.contains(Flags::IPV4) {
                self.v4.push((V::V4::of(packet, keying), weight));
            } else if !packet.flags.contains(Flags::IPV6) {
                packets.no_address += 1;
            } else if countable {
                self.v6.push((V::V6::of(packet, keying), weight));
            } else {
                packets.no_such_keys += 1;
            }
        }
        packets.measured += (self.v4.len() + self.v6.len()) as u64;
    }
}

impl<V: Keys> Found<V> {
    pub(crate) fn new() -> Self {
        Self { common: None, v4: Side::new(), v6: Side::new(), packets: PacketCounts::default() }
    }
}

impl<V: Keys> Worker for MeasureWorker<V> {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Option<Box<Found<V>>>;

    fn on_burst(&mut self, burst: &[PacketRecord], _: &Attachments, _outbox: &mut impl Outbox<()>) {
        let begin = (self.now)();
        self.sort(burst);
        let (common, settings) = (self.common.as_deref(), &self.settings);
        self.found.v4.count(&self.v4, settings, common.map(|both| &both.v4));
        self.found.v6.count(&self.v6, settings, common.map(|both| &both.v6));
        let end = (self.now)();
        let packets = &mut self.found.packets;
        packets.processing_ns += end.saturating_sub(begin);
        burst.iter().for_each(|packet| packets.delay.add(end.saturating_sub(packet.ts_ns)));
        self.found.v4.check(&self.v4, settings);
        self.found.v6.check(&self.v6, settings);
    }

    fn on_mark(&mut self, mark: &Mark, _outbox: &mut impl Outbox<()>) -> Option<Self::Partial> {
        let Mark::End { .. } = mark else { return Some(None) };
        let mut found = std::mem::replace(&mut self.found, Found::new());
        // The last owner makes it separate.
        found.common = self.common.take();
        Some(Some(Box::new(found)))
    }
}
