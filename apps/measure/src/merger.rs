//! The merger: joins the structures of all workers, of the run or of each interval.
//!
//! ```text
//!  worker 0 ─ parts at marks ─▶ wait until all workers   ─▶ the open ─▶ no worker is in it ─▶ OnInterval
//!  worker 1 ─ parts at marks ─▶ have passed their mark      interval    any more
//! ```
//!
//! Invariant: parts are merged in the order of their marks and shards, not of arrival, so equal parts give equal answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_stage::{Mark, Merger, Shard};

use crate::findings::Findings;
use crate::keys::{Keys, PacketKey};
use crate::report::{Interval, OnInterval};
use crate::settings::Settings;
use crate::worker::{Found, MeasureWorker, PacketCounts, Part, Share, Side};

const ALIKE: &str = "all parts of a run have the same settings";

/// Merges the findings of the workers.
pub struct MeasureMerger<V: Keys> {
    settings: Settings,
    on_interval: Option<OnInterval>,
    /// Parts of marks that not all workers have passed, by mark and shard.
    waiting: BTreeMap<(u64, usize), Part<V>>,
    workers: Vec<Progress>,
    /// The run; or an interval, with its number.
    open: Option<(u64, Findings<V>)>,
    /// Sums over the closed intervals.
    packets: PacketCounts,
}

/// How far a worker is.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The mark after the last one that it passed.
    mark: u64,
    /// Whether all have passed a mark of it.
    has_begun: bool,
    /// Its interval after the marks that all have passed.
    current: Option<u64>,
}

impl<V: Keys> MeasureMerger<V> {
    pub(crate) fn new(settings: &Settings, on_interval: Option<OnInterval>) -> Self {
        Self {
            settings: *settings,
            on_interval,
            waiting: BTreeMap::new(),
            workers: Vec::new(),
            open: None,
            packets: PacketCounts::default(),
        }
    }

    /// Merges shares of intervals, ascending.
    fn add_all(&mut self, mut shares: Vec<(u64, Share<V>)>) {
        // Stable: in the order of the shards.
        shares.sort_by_key(|(interval, _)| *interval);
        for (interval, share) in shares {
            let found = match share {
                Share::Found(found) => *found,
                Share::Packets(packets) => MeasureWorker::count_all(&self.settings, &packets),
            };
            self.add(interval, found);
        }
    }

    /// Merges a result. One of another interval closes the open one.
    fn add(&mut self, interval: u64, mut found: Found<V>) {
        if self.open.as_ref().is_some_and(|(number, _)| *number != interval) {
            self.close();
        }
        let empty = || (interval, Findings::new(&self.settings));
        let (_, findings) = self.open.get_or_insert_with(empty);
        findings.packets.add(&found.packets);
        let (v4, v6) = (held(&found.v4), held(&found.v6));
        findings.memory_bytes += v4 + v6;
        findings.v4.merge(found.v4).expect(ALIKE);
        findings.v6.merge(found.v6).expect(ALIKE);
        // Only the last worker has the last reference.
        if let Some(both) = found.common.take().and_then(Arc::into_inner) {
            let (v4, v6) = (both.v4.into_inner(), both.v6.into_inner());
            findings.memory_bytes += v4.as_ref().map_or(0, |common| common.memory_bytes())
                + v6.as_ref().map_or(0, |common| common.memory_bytes());
            findings.v4.structure = v4.map(|common| common.into_separate());
            findings.v6.structure = v6.map(|common| common.into_separate());
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
            let mut shares = Vec::new();
            for ((_, shard), part) in std::mem::replace(&mut self.waiting, later) {
                let worker = &mut self.workers[shard];
                (worker.has_begun, worker.current) = (true, part.current);
                shares.extend(part.shares);
            }
            self.add_all(shares);
        }
        // Queues of an interface may skip marks, and so intervals.
        if let Some((open, _)) = &self.open
            && self.workers.iter().all(|worker| worker.has_begun && worker.current != Some(*open))
        {
            self.close();
        }
    }

    fn finish(mut self) -> Findings<V> {
        let parts = std::mem::take(&mut self.waiting).into_values();
        self.add_all(parts.flat_map(|part| part.shares).collect());
        let run = || Findings::new(&self.settings);
        if self.settings.interval_ns.is_none() {
            return self.open.map_or_else(run, |(_, findings)| findings);
        }
        self.close();
        Findings { packets: self.packets, ..Findings::new(&self.settings) }
    }
}

fn held<K: PacketKey>(side: &Side<K>) -> usize {
    side.structure.as_ref().map_or(0, |structure| structure.memory_bytes())
}
