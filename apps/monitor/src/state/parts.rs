//! Parts of a run: a state for each interval, which is handed over during the run.
//!
//! ```text
//! worker: a mark in another interval ─▶ WorkerRows ─┐
//! worker: the same ──────────────────▶ WorkerRows ─┴▶ Collector: rows of all ─▶ StatePart ─▶ sorted and written elsewhere
//! ```
//!
//! Parts are numbered from 0, and the state at the end is the last one. All of them together are the state of the run.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

use ringtap_engine::Plan;
use ringtap_stage::Shard;

use super::counts::{Counts, Earlier};
use super::header::{Header, MergeError, Span};
use super::image::{Content, image, saved, tables_of};
use super::inputs::write_images;
use super::saver::WorkerRows;
use crate::options::Options;

/// Receives the parts of a run's state. It is called by the thread of the merger.
pub type OnPart = Box<dyn FnMut(StatePart) + Send>;

/// A part of a run's state.
pub struct StatePart {
    /// Its number, from 0.
    pub number: u64,
    /// When it began, in packet time, nanoseconds since 1970.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    workers: Vec<WorkerRows>,
}

/// The name of packets lost by chance, among the losses.
pub(crate) const PACKETS_DROPPED: &str = "packets dropped";

impl StatePart {
    /// Writes the state. `dropped` are the packets dropped so far.
    ///
    /// # Errors
    /// If the run has none, or writing fails.
    pub fn write<W: Write>(
        mut self,
        plan: &Plan<Options>,
        dropped: u64,
        earlier: &mut Earlier,
        out: W,
    ) -> Result<W, MergeError> {
        // The parts after this one do not depend on whether it can be written.
        let handled: u64 = self.workers.iter().map(|worker| worker.handled).sum();
        let received = earlier.sum("received") + handled;
        let sums = earlier.sums(&Counts { received, ..Counts::default() });
        let lacks = earlier.lacks(BTreeMap::from([(PACKETS_DROPPED, dropped)]));
        let tables = tables_of(saved(plan.app.analyses), Content::NOW);
        let sort = |worker: &mut WorkerRows| {
            let mut rows = std::mem::take(&mut worker.rows).into_iter();
            image(&[], &tables, |_, empty| {
                if let Some(rows) = rows.next() {
                    *empty = rows;
                }
            })
        };
        let images: Vec<Vec<u8>> = self.workers.iter_mut().map(sort).collect::<Result<_, _>>()?;
        let Self { number, from_ns, until_ns, .. } = self;
        let span = Span { first: number, last: number, from_ns, until_ns };
        let header = Header::of(plan, span, None, until_ns, lacks)?;
        write_images(header, &images, &sums, out)
    }
}

/// Collects the rows of all workers.
pub(crate) struct Collector {
    on_part: Option<OnPart>,
    /// Of each worker, in order: the number and the time of a mark, and the rows since the one before.
    waiting: Vec<VecDeque<(u64, u64, WorkerRows)>>,
    /// The number of the next part.
    pub(crate) next: u64,
    /// The end of the last part.
    pub(crate) until_ns: Option<u64>,
}

impl Collector {
    pub(crate) fn new(on_part: Option<OnPart>) -> Self {
        Self { on_part, waiting: Vec::new(), next: 0, until_ns: None }
    }

    /// Adds the rows of a worker at a mark. Hands over a part once there are rows of every worker.
    ///
    /// Queues with their own time may skip marks, so a part has what each worker saved up to the latest mark at which
    /// one of them did so first.
    pub(crate) fn add(&mut self, shard: Shard, mark: u64, time_ns: u64, rows: WorkerRows) {
        self.waiting.resize_with(shard.count, VecDeque::new);
        self.waiting[shard.index].push_back((mark, time_ns, rows));
        while let Some(firsts) = self
            .waiting
            .iter()
            .map(|own| own.front().map(|first| first.0))
            .collect::<Option<Vec<_>>>()
        {
            self.hand_over(firsts.into_iter().max().unwrap_or(mark));
        }
    }

    /// Hands over what is left at the end, as one part.
    pub(crate) fn end(&mut self) {
        if self.waiting.iter().any(|own| !own.is_empty()) {
            self.hand_over(u64::MAX);
        }
    }

    /// Hands over what was saved up to a mark as one part.
    fn hand_over(&mut self, mark: u64) {
        let (mut until_ns, mut workers) = (0, Vec::new());
        for own in &mut self.waiting {
            while let Some((_, time_ns, mut rows)) = own.pop_front_if(|first| first.0 <= mark) {
                if own.front().is_some_and(|next| next.0 <= mark) {
                    rows.drop_live();
                }
                until_ns = until_ns.max(time_ns);
                workers.push(rows);
            }
        }
        let first_ns = workers.iter().map(|worker| worker.first_ns).min().unwrap_or(until_ns);
        let from_ns = self.until_ns.unwrap_or(first_ns.min(until_ns));
        let part = StatePart { number: self.next, from_ns, until_ns, workers };
        self.next += 1;
        self.until_ns = Some(until_ns);
        if let Some(on_part) = &mut self.on_part {
            on_part(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use ringtap_state::Rows;

    use super::super::live::LIVE;
    use super::*;

    /// Rows with a live flow, of this number of packets.
    fn rows(handled: u64) -> WorkerRows {
        let mut live = Rows::new(&LIVE);
        live.push(&[&vec![0; LIVE.key]], &[], &[]);
        WorkerRows { rows: vec![live], handled, first_ns: 5 }
    }

    #[test]
    fn a_part_has_all_workers_and_the_live_flows_of_each_once() {
        let (to, parts) = sync_channel(8);
        let mut all = Collector::new(Some(Box::new(move |part| to.send(part).unwrap())));
        let worker = |index| Shard { index, count: 2 };
        let described = |part: StatePart| {
            let live = part.workers.iter().map(|worker| worker.rows[0].len()).collect::<Vec<_>>();
            let handled: u64 = part.workers.iter().map(|worker| worker.handled).sum();
            (part.number, [part.from_ns, part.until_ns], handled, live)
        };
        all.add(worker(0), 10, 100, rows(1));
        all.add(worker(0), 20, 200, rows(2));
        all.add(worker(0), 30, 300, rows(4));
        assert!(parts.try_recv().is_err());
        // The second one skipped a mark.
        all.add(worker(1), 20, 200, rows(8));
        assert_eq!(described(parts.recv().unwrap()), (0, [5, 200], 11, vec![0, 1, 1]));
        all.add(worker(1), 30, 300, rows(16));
        assert_eq!(described(parts.recv().unwrap()), (1, [200, 300], 20, vec![1, 1]));
        all.add(worker(1), 40, 400, rows(32));
        all.end();
        assert_eq!(described(parts.recv().unwrap()), (2, [300, 400], 32, vec![1]));
        all.end();
        drop(all);
        assert!(parts.recv().is_err());
    }
}
