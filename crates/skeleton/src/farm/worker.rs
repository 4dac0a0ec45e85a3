//! A worker's seat in the farm: takes bursts and marks off its lane, sends what they cause to
//! the merger. The paper's SubAnalyzer.

use std::collections::VecDeque;

use ringtap_metrics::Counter;
use ringtap_ring::Producer;
use ringtap_stage::{Application, Mark, Outbox, Shard, Worker};

use super::lane::{LaneRx, Next};
use crate::BURST;
use crate::node::{Node, Step};

/// What travels from a worker to the merger, in the order sent.
pub(super) enum Report<A: Application> {
    Message(A::Message),
    Partial(Mark, A::Partial),
}

pub(super) struct WorkerNode<'a, A: Application> {
    worker: A::Worker,
    shard: Shard,
    lane: LaneRx<A::Item>,
    outbox: RingOutbox<A>,
    /// A mark that the worker has not finished with.
    mark: Option<Mark>,
    ended: bool,
    handled: &'a Counter,
}

struct RingOutbox<A: Application> {
    reports: Producer<Report<A>>,
    /// What found no room; sent before anything else.
    backlog: VecDeque<Report<A>>,
}

impl<A: Application> RingOutbox<A> {
    fn post(&mut self, report: Report<A>) {
        if !self.backlog.is_empty() {
            self.backlog.push_back(report);
        } else if let Err(report) = self.reports.push(report) {
            self.backlog.push_back(report);
        }
    }

    /// Makes room for what is to come, as far as the merger lets it, and shows the merger all that
    /// is on its way. True when nothing is left over.
    fn clear(&mut self) -> bool {
        while let Some(report) = self.backlog.pop_front() {
            if let Err(report) = self.reports.push(report) {
                self.backlog.push_front(report);
                return false;
            }
        }
        self.reports.flush();
        true
    }
}

impl<A: Application> Outbox<A::Message> for RingOutbox<A> {
    fn send(&mut self, message: A::Message) {
        self.post(Report::Message(message));
    }
}

impl<'a, A: Application> WorkerNode<'a, A> {
    pub(super) fn new(
        app: &A,
        shard: Shard,
        lane: LaneRx<A::Item>,
        reports: Producer<Report<A>>,
        handled: &'a Counter,
    ) -> Self {
        let outbox = RingOutbox { reports, backlog: VecDeque::with_capacity(8 * BURST) };
        Self { worker: app.worker(shard), shard, lane, outbox, mark: None, ended: false, handled }
    }
}

impl<A: Application> Node for WorkerNode<'_, A> {
    fn step(&mut self) -> Step {
        if !self.outbox.clear() {
            return Step::Idle;
        }
        if self.ended {
            return Step::Done;
        }
        if self.mark.is_none() {
            match self.lane.next(BURST) {
                Next::Items(burst) => {
                    self.worker.on_burst(burst, &mut self.outbox);
                    let n = burst.len();
                    self.lane.release(n);
                    self.handled.add(n as u64);
                    return Step::Worked;
                }
                Next::Nothing => return Step::Idle,
                Next::Mark(mark) => self.mark = Some(mark),
            }
        }
        if let Some(mark) = self.mark
            && let Some(partial) = self.worker.on_mark(&mark, &mut self.outbox)
        {
            self.outbox.post(Report::Partial(mark, partial));
            self.mark = None;
            self.ended = matches!(mark, Mark::End { .. });
        }
        Step::Worked
    }

    fn name(&self) -> String {
        format!("worker {}", self.shard.index)
    }
}
