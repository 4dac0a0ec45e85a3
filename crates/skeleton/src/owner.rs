//! The owner of a shard: a worker with its outbox. It is the same in every skeleton; only the
//! source of its items differs. The paper's SubAnalyzer.
//!
//! ```text
//! items, marks ─▶ owner 0 ─ reports ─┐
//! items, marks ─▶ owner 1 ─ reports ─┼─▶ merger ─▶ report
//! items, marks ─▶ owner 2 ─ reports ─┘
//! ```
//!
//! Invariant: an owner that is [`busy`](Owner::busy) takes nothing, so items do not overtake a mark
//! that the worker has not finished, nor items that wait for another worker. The merger never
//! waits, and the earliest of all waiting items can proceed, so no owner is busy for ever.

use ringtap_base::Counter;
use ringtap_ring::{Producer, ring};
use ringtap_stage::{Application, Attachments, Mark, Resumed, Shard, Worker};

use crate::counters::RunCounters;
use crate::merger::MergerNode;
use crate::node::Step;
use crate::reports::{Report, RingOutbox};
use crate::{RunError, RunOptions};

pub(crate) struct Owner<'a, A: Application> {
    worker: A::Worker,
    shard: Shard,
    outbox: RingOutbox<A>,
    /// A mark that the worker has not finished.
    mark: Option<Mark>,
    ended: bool,
    handled: &'a Counter,
    /// Marks that the worker has finished.
    marks: &'a Counter,
}

/// Makes the owners of all shards, and their merger.
pub(crate) fn owners<'a, A: Application>(
    app: &'a A,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<(Vec<Owner<'a, A>>, MergerNode<'a, A>), RunError> {
    let count = options.shards.workers();
    let (mut owners, mut receivers) = (Vec::new(), Vec::new());
    for (index, counters) in counters.handled.iter().zip(&counters.marks).enumerate() {
        let (sender, receiver) = ring(options.ring, options.report_capacity, 1)?;
        owners.push(Owner::new(app, Shard { index, count }, sender, counters));
        receivers.push(receiver);
    }
    Ok((owners, MergerNode::new(app, receivers, counters)))
}

impl<'a, A: Application> Owner<'a, A> {
    fn new(
        app: &A,
        shard: Shard,
        reports: Producer<Report<A>>,
        (handled, marks): (&'a Counter, &'a Counter),
    ) -> Self {
        let (worker, outbox) = (app.worker(shard), RingOutbox::new(reports));
        Self { worker, shard, outbox, mark: None, ended: false, handled, marks }
    }

    /// Continues unfinished work. `None`: it may be given more; otherwise the result of the step.
    pub(crate) fn busy(&mut self) -> Option<Step> {
        if let Err(step) = self.outbox.clear() {
            return Some(step);
        }
        if self.ended {
            return Some(Step::Done);
        }
        if let Some(step) = self.wait() {
            return Some(step);
        }
        self.mark(self.mark?);
        Some(Step::Worked)
    }

    /// Continues with items that wait. `None`: there are none.
    fn wait(&mut self) -> Option<Step> {
        match self.worker.resume(&mut self.outbox) {
            Resumed::Done => None,
            Resumed::Moved => Some(Step::Worked),
            Resumed::Waiting => Some(Step::Idle),
        }
    }

    /// Handles items. Call it only if it is not busy.
    pub(crate) fn items(&mut self, items: &[A::Item], attachments: &Attachments) {
        if !items.is_empty() {
            self.worker.on_burst(items, attachments, &mut self.outbox);
            self.handled.add(items.len() as u64);
        }
    }

    /// Handles a mark, or a part of it. Call it only if it is not busy.
    pub(crate) fn mark(&mut self, mark: Mark) {
        if self.wait().is_some() {
            self.mark = Some(mark);
            return;
        }
        match self.worker.on_mark(&mark, &mut self.outbox) {
            None => self.mark = Some(mark),
            Some(partial) => {
                self.outbox.post(Report::Partial(mark, partial));
                self.marks.add(1);
                self.mark = None;
                self.ended = matches!(mark, Mark::End { .. });
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("worker {}", self.shard.index)
    }
}
