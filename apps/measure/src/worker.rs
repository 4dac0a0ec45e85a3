//! A worker: counts the keys of its shard's packets, in its own structure or in the common one.
//!
//! ```text
//!  a burst ─▶ keys and weights ─┬ IPv4 ─▶ structure        │◀─ this is timed ─▶│ then, if requested:
//!                               └ IPv6 ─▶ structure        │                   │ exact counts, distinct keys
//! ```
//!
//! A structure is allocated at the first packet of its IP version; after that nothing is allocated
//! (except by structures that grow). With intervals each has its own structures, allocated and grown anew, which are
//! handed over at the mark that ends it, and nothing is timed.

use std::sync::Arc;

use ringtap_stage::{Attachments, Mark, Outbox, Worker};
use ringtap_wire::PacketRecord;

use crate::common::Both;
use crate::counter::Counter;
use crate::findings::Findings;
use crate::intervals::Intervals;
use crate::keys::Keys;
use crate::settings::Settings;

/// Counts the packets of one shard.
pub struct MeasureWorker<V: Keys> {
    now: fn() -> u64,
    counter: Counter<V>,
    common: Option<Arc<Both<V>>>,
    /// `None`: the whole run is one.
    intervals: Option<Box<Intervals>>,
    /// Of the interval or the run.
    found: Findings<V>,
}

/// What a worker hands over at a mark.
pub struct Part<V: Keys> {
    /// Its results by interval, ascending; the run is interval 0.
    pub(crate) shares: Vec<(u64, Share<V>)>,
    /// The number of its interval after the mark.
    pub(crate) current: Option<u64>,
    /// At the end of the run.
    pub(crate) common: Option<Arc<Both<V>>>,
}

/// A worker's share of an interval.
pub(crate) enum Share<V: Keys> {
    Found(Box<Findings<V>>),
    /// Few packets, of an interval that time passed at once: so a worker needs no memory for the structures of several.
    Packets(Vec<PacketRecord>),
}

impl<V: Keys> MeasureWorker<V> {
    pub(crate) fn new(settings: &Settings, now: fn() -> u64, common: Option<Arc<Both<V>>>) -> Self {
        Self {
            now,
            counter: Counter::new(settings),
            common,
            intervals: settings.interval_ns.map(|ns| Box::new(Intervals::new(ns))),
            found: Findings::new(settings),
        }
    }

    fn take(&mut self) -> Share<V> {
        let empty = Findings::new(&self.found.settings);
        let mut found = std::mem::replace(&mut self.found, empty);
        found.memory_bytes = found.held_bytes();
        Share::Found(Box::new(found))
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
        let mut shares: Vec<_> =
            found.map(|found| (current.unwrap_or(now), found)).into_iter().collect();
        for (number, packets) in intervals.waited(if is_end { u64::MAX } else { now }) {
            if number == now && !is_end {
                self.counter.add(&packets, &mut self.found);
            } else {
                shares.push((number, Share::Packets(packets)));
            }
        }
        intervals.begin(now);
        shares
    }
}

impl<V: Keys> Worker for MeasureWorker<V> {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Part<V>;

    fn on_burst(&mut self, burst: &[PacketRecord], _: &Attachments, _outbox: &mut impl Outbox<()>) {
        let Self { now, counter, common, intervals, found } = self;
        if let Some(intervals) = intervals {
            let mut strays = 0;
            counter.add(burst.iter().filter(|packet| intervals.takes(packet, &mut strays)), found);
            found.packets.strays += strays;
            return;
        }
        let begin = now();
        counter.sort(burst, &mut found.packets);
        counter.count(found, common.as_deref());
        let end = now();
        found.packets.processing_ns += end.saturating_sub(begin);
        let delay = found.packets.delay.get_or_insert_default();
        burst.iter().for_each(|packet| delay.add(end.saturating_sub(packet.ts_ns)));
        counter.check(found);
    }

    fn on_mark(&mut self, mark: &Mark, _outbox: &mut impl Outbox<()>) -> Option<Self::Partial> {
        if let Some(mut intervals) = self.intervals.take() {
            let shares = self.pass(&mut intervals, mark);
            let current = intervals.current;
            self.intervals = Some(intervals);
            return Some(Part { shares, current, common: None });
        }
        let mut part = Part { shares: Vec::new(), current: None, common: None };
        if let Mark::End { .. } = mark {
            part.shares.push((0, self.take()));
            part.common = self.common.take();
        }
        Some(part)
    }
}
