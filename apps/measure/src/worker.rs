//! A worker: makes the keys of its shard's packets and counts them, in its own structure or in the
//! common one.
//!
//! ```text
//!  a burst ─▶ keys and weights ─┬ IPv4 ─▶ structure        │◀─ this is timed ─▶│ then, if requested:
//!                               └ IPv6 ─▶ structure        │                   │ exact counts, distinct keys
//! ```
//!
//! A structure is allocated at the first packet of its IP version; after that nothing is allocated
//! (except by structures that grow). With intervals each has its own structures, allocated and grown anew, which are
//! handed over at the mark that ends it, and nothing is timed.

use std::sync::{Arc, OnceLock};

use ringtap_base::Latency;
use ringtap_sketch::{Distinct, Exact, Sketch};
use ringtap_stage::{Attachments, Mark, Outbox, Worker};
use ringtap_wire::{Flags, PacketRecord};

use crate::common::{Both, Common};
use crate::intervals::Intervals;
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
    /// `None`: the whole run is one.
    intervals: Option<Box<Intervals>>,
    found: Found<V>,
    v4: Vec<(V::V4, u64)>,
    v6: Vec<(V::V6, u64)>,
}

/// What a worker hands over at a mark.
pub struct Part<V: Keys> {
    /// Its results by interval, ascending; the run is interval 0.
    pub(crate) shares: Vec<(u64, Share<V>)>,
    /// The number of its interval after the mark.
    pub(crate) current: Option<u64>,
}

/// A worker's share of an interval.
pub(crate) enum Share<V: Keys> {
    Found(Box<Found<V>>),
    /// Few packets, of an interval that time passed at once: so a worker needs no memory for the structures of several.
    Packets(Vec<PacketRecord>),
}

/// A worker's result, of an interval or of the run.
pub(crate) struct Found<V: Keys> {
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
    /// Packets of another interval.
    pub(crate) strays: u64,
    pub(crate) processing_ns: u64,
    pub(crate) delay: Latency,
}

impl PacketCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.measured += other.measured;
        self.no_address += other.no_address;
        self.no_such_keys += other.no_such_keys;
        self.strays += other.strays;
        self.processing_ns += other.processing_ns;
        self.delay.merge(&other.delay);
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
            intervals: settings.interval_ns.map(|ns| Box::new(Intervals::new(ns))),
            found: Found::new(),
            v4: Vec::new(),
            v6: Vec::new(),
        }
    }

    /// Makes the keys of a burst.
    fn sort<'a>(&mut self, burst: impl IntoIterator<Item = &'a PacketRecord>) {
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

    /// Counts the keys.
    fn count(&mut self) {
        let (common, settings) = (self.common.as_deref(), &self.settings);
        self.found.v4.count(&self.v4, settings, common.map(|both| &both.v4));
        self.found.v6.count(&self.v6, settings, common.map(|both| &both.v6));
    }

    /// Counts them in the exact answer and the distinct keys, if requested.
    fn check(&mut self) {
        self.found.v4.check(&self.v4, &self.settings);
        self.found.v6.check(&self.v6, &self.settings);
    }

    /// Counts packets without timing.
    fn add<'a>(&mut self, packets: impl IntoIterator<Item = &'a PacketRecord>) {
        self.sort(packets);
        self.count();
        self.check();
    }

    fn take(&mut self) -> Found<V> {
        std::mem::replace(&mut self.found, Found::new())
    }

    /// The result of these packets alone.
    pub(crate) fn count_all(settings: &Settings, packets: &[PacketRecord]) -> Found<V> {
        let mut counter = Self::new(settings, || 0, None);
        counter.add(packets);
        counter.found
    }

    /// At a mark: hands over the intervals that end there.
    fn pass(&mut self, intervals: &mut Intervals, mark: &Mark) -> Vec<(u64, Share<V>)> {
        let now = intervals.number(mark.time_ns());
        let (current, is_end) = (intervals.current, matches!(mark, Mark::End { .. }));
        if current == Some(now) && !is_end {
            return Vec::new();
        }
        // Before the first mark only packets without a time were counted.
        let found = (current.is_some() || is_end).then(|| self.take());
        let mut shares: Vec<_> = found
            .map(|found| (current.unwrap_or(now), Share::Found(Box::new(found))))
            .into_iter()
            .collect();
        for (number, packets) in intervals.waited(if is_end { u64::MAX } else { now }) {
            if number == now && !is_end {
                self.add(&packets);
            } else {
                shares.push((number, Share::Packets(packets)));
            }
        }
        intervals.begin(now);
        shares
    }
}

impl<V: Keys> Found<V> {
    pub(crate) fn new() -> Self {
        let packets = PacketCounts::default();
        Self { common: None, v4: Side::new(), v6: Side::new(), packets }
    }
}

impl<V: Keys> Worker for MeasureWorker<V> {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Part<V>;

    fn on_burst(&mut self, burst: &[PacketRecord], _: &Attachments, _outbox: &mut impl Outbox<()>) {
        if let Some(mut intervals) = self.intervals.take() {
            let mut strays = 0;
            self.add(burst.iter().filter(|packet| intervals.takes(packet, &mut strays)));
            self.found.packets.strays += strays;
            self.intervals = Some(intervals);
            return;
        }
        let begin = (self.now)();
        self.sort(burst);
        self.count();
        let end = (self.now)();
        let packets = &mut self.found.packets;
        packets.processing_ns += end.saturating_sub(begin);
        burst.iter().for_each(|packet| packets.delay.add(end.saturating_sub(packet.ts_ns)));
        self.check();
    }

    fn on_mark(&mut self, mark: &Mark, _outbox: &mut impl Outbox<()>) -> Option<Self::Partial> {
        if let Some(mut intervals) = self.intervals.take() {
            let shares = self.pass(&mut intervals, mark);
            let current = intervals.current;
            self.intervals = Some(intervals);
            return Some(Part { shares, current });
        }
        let mut shares = Vec::new();
        if let Mark::End { .. } = mark {
            let mut found = self.take();
            // The last owner makes it separate.
            found.common = self.common.take();
            shares.push((0, Share::Found(Box::new(found))));
        }
        Some(Part { shares, current: None })
    }
}
