//! Counters of each node of a network: single writer, no lock, read after the run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ringtap_base::Counter;

/// Statistics of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStats {
    /// The node's name: "map 1", "farm 2 worker 0".
    pub name: String,
    /// Items taken; of a source, items it made.
    pub items_in: u64,
    /// Items sent on; of a sink, 0.
    pub items_out: u64,
    /// Times the node was stepped.
    pub steps: u64,
    /// Steps in which nothing moved.
    pub idle_steps: u64,
    /// Steps that ended because a ring after the node was full.
    pub full: u64,
    /// Steps that ended because a ring before the node was empty.
    pub empty: u64,
    /// Time in steps that moved something; zero in a simulation.
    pub busy: Duration,
    /// The part of the run's time in which the node was not busy, 0 to 1.
    pub idle_share: f64,
}

/// Written by the node's thread only.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) items_in: Counter,
    pub(super) items_out: Counter,
    pub(super) steps: Counter,
    pub(super) idle_steps: Counter,
    pub(super) full: Counter,
    pub(super) empty: Counter,
    pub(super) busy_ns: Counter,
    /// Items taken in the last step that took any. A hint for an emitter, so Relaxed.
    last: AtomicU64,
}

impl Counts {
    /// A step took `taken` items and sent `sent`, all of which are handled.
    pub(super) fn items(&self, taken: u64, sent: u64) {
        if taken > 0 {
            self.last.store(taken, Relaxed);
            self.items_in.add(taken);
        }
        if sent > 0 {
            self.items_out.add(sent);
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    pub(super) fn stats(&self, name: String, run: Duration) -> NodeStats {
        let busy = Duration::from_nanos(self.busy_ns.get());
        let share = if run.is_zero() { 0.0 } else { busy.as_secs_f64() / run.as_secs_f64() };
        NodeStats {
            name,
            items_in: self.items_in.get(),
            items_out: self.items_out.get(),
            steps: self.steps.get(),
            idle_steps: self.idle_steps.get(),
            full: self.full.get(),
            empty: self.empty.get(),
            busy,
            idle_share: (1.0 - share).clamp(0.0, 1.0),
        }
    }
}
