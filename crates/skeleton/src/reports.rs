//! Reports: messages and partials from a worker to the merger, through a ring of its own, in order.
//!
//! ```text
//! worker ─▶ backlog ─▶ ring ─▶ merger        the backlog is empty unless the ring was full
//! ```
//!
//! Invariant: nothing is lost or reordered; a worker with a backlog gets no further items, so the
//! backlog is bounded by what one call of the worker sends.

use std::collections::VecDeque;

use ringtap_ring::Producer;
use ringtap_stage::{Application, Mark, Outbox};

use crate::BURST;
use crate::node::Step;

/// A message or partial from a worker to the merger.
pub(crate) enum Report<A: Application> {
    Message(A::Message),
    Partial(Mark, A::Partial),
}

/// The worker's end.
pub(crate) struct RingOutbox<A: Application> {
    reports: Producer<Report<A>>,
    /// Reports without room; sent before anything else.
    backlog: VecDeque<Report<A>>,
}

impl<A: Application> RingOutbox<A> {
    pub(crate) fn new(reports: Producer<Report<A>>) -> Self {
        Self { reports, backlog: VecDeque::with_capacity(8 * BURST) }
    }

    pub(crate) fn post(&mut self, report: Report<A>) {
        if !self.backlog.is_empty() {
            self.backlog.push_back(report);
        } else if let Err(report) = self.reports.push(report) {
            self.backlog.push_back(report);
        }
    }

    /// Sends the backlog as far as there is room, and publishes everything sent. An error if
    /// something is left: the result of the step.
    pub(crate) fn clear(&mut self) -> Result<(), Step> {
        let before = self.backlog.len();
        while let Some(report) = self.backlog.pop_front() {
            if let Err(report) = self.reports.push(report) {
                self.backlog.push_front(report);
                let moved = self.backlog.len() < before;
                return Err(if moved { Step::Worked } else { Step::Idle });
            }
        }
        self.reports.flush();
        Ok(())
    }
}

impl<A: Application> Outbox<A::Message> for RingOutbox<A> {
    fn send(&mut self, message: A::Message) {
        self.post(Report::Message(message));
    }
}
