//! The merger: joins the structures of all workers, of the run or of each interval.
//!
//! ```text
//!  worker 0 ─ parts at marks ─▶ wait until all workers   ─▶ wait until no worker is in ─▶ merged ─▶ OnInterval
//!  worker 1 ─ parts at marks ─▶ have passed their mark      their interval or before
//! ```
//!
//! Queues of an interface may skip marks, and so hand over an interval at a later mark than others do.
//!
//! Invariant: parts are merged in the order of their marks and shards, not of arrival, so equal parts give equal answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_stage::{Mark, Merger, Shard};

use crate::common::{Both, Common};
use crate::counter::Counter;
use crate::counts::PacketCounts;
use crate::findings::Findings;
use crate::keys::Keys;
use crate::report::{Interval, OnInterval};
use crate::settings::Settings;
use crate::worker::{Part, Share};

const ALIKE: &str = "all parts of a run have the same settings";

/// Merges the findings of the workers.
pub struct MeasureMerger<V: Keys> {
    settings: Settings,
    on_interval: Option<OnInterval>,
    /// Counts packets that were handed over.
    counter: Counter<V>,
    /// Parts of marks that not all workers have passed, by mark and shard.
    waiting: BTreeMap<(u64, usize), Part<V>>,
    workers: Vec<Progress>,
    /// Shares of marks that all workers have passed, in that order, and of intervals that some have not.
    shares: Vec<(u64, Share<V>)>,
    /// The run; or an interval while it is merged, with its number.
    open: Option<(u64, Findings<V>)>,
    /// Sums over the closed intervals.
    packets: PacketCounts,
}

/// How far a worker is.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The mark after the last one that it passed.
    mark: u64,
    /// Its interval after the marks that all have passed.
    current: Option<u64>,
}

impl<V: Keys> MeasureMerger<V> {
    pub(crate) fn new(settings: &Settings, on_interval: Option<OnInterval>) -> Self {
        Self {
            settings: *settings,
            on_interval,
            counter: Counter::new(settings),
            waiting: BTreeMap::new(),
            workers: Vec::new(),
            shares: Vec::new(),
            open: None,
            packets: PacketCounts::default(),
        }
    }

    /// Merges the shares of intervals before this one, ascending; `None`: all.
    fn merge_before(&mut self, interval: Option<u64>) {
        // Stable: in the order of marks and shards.
        self.shares.sort_by_key(|(interval, _)| *interval);
        let is_due = |(own, _): &(u64, _)| interval.is_none_or(|interval| *own < interval);
        let later = self.shares.split_off(self.shares.partition_point(is_due));
        for (interval, share) in std::mem::replace(&mut self.shares, later) {
            self.add(interval, share);
        }
    }

    /// Adds a share. One of another interval closes the open one.
    fn add(&mut self, interval: u64, share: Share<V>) {
        if self.open.as_ref().is_some_and(|(number, _)| *number != interval) {
            self.close();
        }
        let empty = || (interval, Findings::new(&self.settings));
        let (_, findings) = self.open.get_or_insert_with(empty);
        match share {
            Share::Found(found) => findings.join(*found).expect(ALIKE),
            Share::Packets(packets) => {
                let before = findings.held_bytes();
                self.counter.add(&packets, findings);
                findings.memory_bytes += findings.held_bytes() - before;
            }
        }
    }

    /// Reports the open interval, unless it has no packets.
    fn close(&mut self) {
        let Some((number, findings)) = self.open.take() else { return };
        self.packets.add(&findings.packets);
        if let (Some(on_interval), Some(ns)) = (&mut self.on_interval, self.settings.interval_ns)
            && findings.packets.all() > 0
        {
            on_interval(&Interval::new(number, ns, findings.report()));
        }
    }
}

impl<V: Keys> Merger for MeasureMerger<V> {
    type Message = ();
    type Partial = Part<V>;
    type Report = Findings<V>;

    fn on_message(&mut self, (): ()) {}

    fn on_partial(&mut self, shard: Shard, mark: &Mark, part: Part<V>) {
        let number = match *mark {
            Mark::Tick { number, .. } => number,
            Mark::End { .. } => u64::MAX,
        };
        self.waiting.insert((number, shard.index), part);
        self.workers.resize(shard.count, Progress::default());
        self.workers[shard.index].mark = number.saturating_add(1);
        let passed = self.workers.iter().map(|worker| worker.mark).min().unwrap_or(0);
        // The parts of the end are merged at the end.
        while let Some((&(mark, _), _)) =
            self.waiting.first_key_value().filter(|(key, _)| key.0 < passed)
        {
            let later = self.waiting.split_off(&(mark + 1, 0));
            let mut is_back = false;
            for ((_, shard), part) in std::mem::replace(&mut self.waiting, later) {
                let worker = &mut self.workers[shard];
                is_back |= part.current < worker.current;
                worker.current = part.current;
                self.shares.extend(part.shares);
            }
            // After a clock was set back, intervals before it end, and begin again when their time comes.
            let least = self.workers.iter().map(|worker| worker.current).min().flatten();
            if is_back || least.is_some() {
                self.merge_before(least.filter(|_| !is_back));
                self.close();
            }
        }
    }

    fn finish(mut self) -> Findings<V> {
        let mut common = None;
        for part in std::mem::take(&mut self.waiting).into_values() {
            self.shares.extend(part.shares);
            // Only the last worker has the last reference.
            common = common.or(part.common.and_then(Arc::into_inner));
        }
        self.merge_before(None);
        let empty = Findings::new(&self.settings);
        if self.settings.interval_ns.is_some() {
            self.close();
            return Findings { packets: self.packets, ..empty };
        }
        let mut run = self.open.map_or(empty, |(_, findings)| findings);
        if let Some(Both { v4, v6 }) = common {
            let (v4, v6) = (v4.into_inner(), v6.into_inner());
            run.memory_bytes = v4.as_ref().map_or(0, Common::memory_bytes)
                + v6.as_ref().map_or(0, Common::memory_bytes);
            run.v4.structure = v4.map(Common::into_separate);
            run.v6.structure = v6.map(Common::into_separate);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ringtap_wire::{Flags, PacketRecord};

    use super::*;
    use crate::AddressKeys;
    use crate::{CountBy, Kind, State, Weight};

    /// Shares of these intervals, each of a packet, and the interval after the mark.
    fn part(intervals: &[u64], current: u64) -> Part<AddressKeys> {
        let packet = PacketRecord { flags: Flags::IPV4, ts_ns: 1, ..PacketRecord::EMPTY };
        let shares = intervals.iter().map(|&own| (own, Share::Packets(vec![packet])));
        Part { shares: shares.collect(), current: Some(current), common: None }
    }

    #[test]
    fn a_queue_that_skips_marks_divides_no_interval() {
        let settings = Settings {
            structure: Kind::Exact,
            state: State::Separate,
            by: CountBy::Source,
            weight: Weight::Packets,
            threshold: None,
            top: Some(1),
            interval_ns: Some(1),
            memory_bytes: 1 << 16,
            check: false,
            distinct: false,
            seed: 0,
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&seen);
        let on_interval: OnInterval = Box::new(move |interval| {
            own.lock().unwrap().push((interval.start.0, interval.report.measured));
        });
        let mut merger = MeasureMerger::new(&settings, Some(on_interval));
        let mut at = |index, number, part| {
            let mark = Mark::Tick { number, time_ns: number };
            merger.on_partial(Shard { index, count: 2 }, &mark, part);
        };
        at(0, 10, part(&[], 10));
        at(1, 10, part(&[], 10));
        (11..=13).for_each(|number| at(0, number, part(&[number - 1], number)));
        at(1, 13, part(&[10, 12], 13));
        assert_eq!(*seen.lock().unwrap(), [(10, 2), (11, 1), (12, 2)]);
        // The clock is set back: what was open ends, and comes again.
        [0, 1].into_iter().for_each(|shard| at(shard, 14, part(&[13], 5)));
        [0, 1].into_iter().for_each(|shard| at(shard, 15, part(&[5], 6)));
        assert_eq!(seen.lock().unwrap()[3..], [(13, 2), (5, 2)]);
    }
}
