//! Activity: the busiest hosts of each interval, in memory that does not depend on the traffic.
//!
//! ```text
//!                 ┌ senders, receivers   Misra–Gries, octets by host
//!                 ├ sending, receiving   the hierarchy of their networks, octets
//! every packet ──▶┤ targets, protocols   Misra–Gries, packets by destination, and by protocol
//!                 └ seen? ── a new pair ─▶ spread, drawn    Misra–Gries, distinct peers by host
//!                   a bitmap                        sources, …       HyperLogLog
//! ```
//!
//! A worker has sketches for the current intervals and hands over finished ones at a mark; the
//! merger joins them. A pair of addresses has one owner, so distinct peers add up; octets do in any
//! case, and so do the bounds of Misra–Gries. Two pairs that share a bit of the map count once, so
//! distinct peers are never too high.
//!
//! Invariant: no host's number lies outside its bounds. Sketches evict in the order of arrival, so
//! arrangements agree on valid bounds, not on equal ones; so activity is not part of the digest.

mod group;
mod limits;
mod merger;
mod networks;
pub mod rows;
mod sketches;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use ringtap_enrich::Stage;
use ringtap_stage::Shard;
use ringtap_terminal::page::Page;
use ringtap_wire::{HashKey, PacketRecord};

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use rows::Activities;

use group::{Group, has_addresses};
pub use limits::{Limits, UnknownLimit};
pub(crate) use merger::{ActivityMerger, row_bytes};
pub(crate) use sketches::Sketches;

/// Most open intervals: clocks of several sources differ a little.
const OPEN_MOST: usize = 4;

/// Packets added together.
const GROUP: usize = 64;

/// The activity of one shard.
pub struct ActivityTable {
    interval_ns: Option<u64>,
    seed: u64,
    /// Number of the interval of the latest packet, and its bounds in time.
    current: u64,
    bounds: std::ops::Range<u64>,
    open: BTreeMap<u64, Box<Sketches>>,
    /// Intervals below this were handed over.
    over: u64,
    group: Group,
}

impl ActivityTable {
    pub(crate) fn new(interval_ns: Option<u64>, key: &HashKey) -> Self {
        Self {
            interval_ns,
            // Not the hash of the flow table: knowing one hash must not reveal the other.
            seed: key.word(0x0061_6374_6976_6974),
            current: 0,
            bounds: if interval_ns.is_some() { 0..0 } else { 0..u64::MAX },
            open: BTreeMap::new(),
            over: 0,
            group: Group { first_ns: u64::MAX, ..Group::default() },
        }
    }

    pub(crate) fn on_burst(&mut self, burst: &[PacketRecord]) {
        for packet in burst.iter().filter(|packet| has_addresses(packet)) {
            if !self.bounds.contains(&packet.ts_ns) {
                self.flush();
                self.turn_to(packet.ts_ns);
            }
            self.group.add(packet, self.seed);
            if self.current < self.over {
                self.group.strays += 1;
            }
            if self.group.senders.len() == GROUP {
                self.flush();
            }
        }
    }

    /// Hands over the intervals that end before `time_ns`.
    pub(crate) fn take_before(&mut self, time_ns: u64) -> BTreeMap<u64, Box<Sketches>> {
        self.flush();
        self.over = self.over.max(self.number(time_ns));
        let later = self.open.split_off(&self.over);
        let mut taken = std::mem::replace(&mut self.open, later);
        taken.values_mut().for_each(|sketches| sketches.close());
        taken
    }

    /// Hands over everything.
    pub(crate) fn finish(mut self) -> BTreeMap<u64, Box<Sketches>> {
        self.flush();
        self.open.values_mut().for_each(|sketches| sketches.close());
        self.open
    }

    fn number(&self, ts_ns: u64) -> u64 {
        self.interval_ns.map_or(0, |interval_ns| ts_ns / interval_ns)
    }

    #[cold]
    fn turn_to(&mut self, ts_ns: u64) {
        self.current = self.number(ts_ns);
        if let Some(interval_ns) = self.interval_ns {
            let start = self.current * interval_ns;
            self.bounds = start..start.saturating_add(interval_ns);
        }
    }

    /// Adds the collected packets.
    fn flush(&mut self) {
        if self.group.senders.is_empty() {
            return;
        }
        let mut number = self.current.max(self.over);
        // More open intervals than clocks explain: the nearest one takes the packets.
        if self.open.len() == OPEN_MOST && !self.open.contains_key(&number) {
            let below = self.open.range(..number).next_back();
            let nearest = below.or(self.open.first_key_value()).map_or(number, |(&near, _)| near);
            number = nearest;
            self.group.strays = self.group.senders.len() as u64;
        }
        let seed = self.seed;
        self.open
            .entry(number)
            .or_insert_with(|| Box::new(Sketches::new(seed)))
            .add(&mut self.group);
    }
}

impl Analysis for ActivityTable {
    /// False: the analysis costs more than all others together.
    const IN_ALL: bool = false;
    /// Sketches evict in the order of arrival.
    const EXACT: bool = false;
    /// Sketches of the open intervals of a worker, and as many in flight to the merger.
    const WORKER_BYTES: u64 = 8 << 20;

    type Found = BTreeMap<u64, Box<Sketches>>;
    type Merger = ActivityMerger;

    fn new(context: &Context, _: Shard) -> Self {
        Self::new(context.interval_ns, &context.hash_key)
    }

    #[inline(always)]
    fn on_packets(&mut self, packets: &[PacketRecord]) {
        self.on_burst(packets);
    }

    fn on_tick(&mut self, time_ns: u64) -> Option<Self::Found> {
        Some(self.take_before(time_ns))
    }

    fn end(self) -> Self::Found {
        self.finish()
    }
}

impl Merge<ActivityTable> for ActivityMerger {
    type Section = Activities;

    fn new(context: &Context) -> Self {
        let room = context.max_activities as usize;
        Self::new(context.interval_ns, context.limits, context.top, room)
    }

    fn adopt(&mut self, context: &Context) {
        self.set_limits(context.limits);
    }

    fn merge(&mut self, found: BTreeMap<u64, Box<Sketches>>) {
        self.add(found);
    }

    fn on_time(&mut self, time_ns: u64, signals: Signals<'_>) {
        self.close_before(time_ns, signals);
    }

    fn end(mut self, signals: Signals<'_>) -> Activities {
        self.close_all(signals);
        self.finish()
    }
}

impl Section for Activities {
    fn pass(&mut self, stage: &mut Stage) {
        self.intervals.iter_mut().for_each(|activity| activity.pass(stage));
    }

    fn show(&self, page: &mut Page, about: &About) {
        text::show(page, &self.intervals, self.further, about.times);
    }
}
