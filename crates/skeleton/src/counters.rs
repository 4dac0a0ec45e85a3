//! The result of a run, and the counters of its nodes.

use std::sync::Mutex;

use ringtap_base::Counter;

use crate::{RunError, ShardMap};

/// The result of a run.
#[derive(Debug)]
pub struct Run<R> {
    /// The application's report.
    pub report: R,
    /// Items that left the dispatchers.
    pub dispatched: u64,
    /// Items that each worker handled.
    pub handled: Vec<u64>,
}

/// Counters while nodes run; each has one writer.
pub(crate) struct RunCounters<R> {
    /// By queue.
    pub(crate) dispatched: Vec<Counter>,
    pub(crate) handled: Vec<Counter>,
    /// Marks that each worker has finished.
    pub(crate) marks: Vec<Counter>,
    report: Mutex<Option<R>>,
}

impl<R> RunCounters<R> {
    pub(crate) fn new(shards: &ShardMap) -> Self {
        let counters = |count| (0..count).map(|_| Counter::new()).collect();
        Self {
            dispatched: counters(shards.queues()),
            handled: counters(shards.workers()),
            marks: counters(shards.workers()),
            report: Mutex::new(None),
        }
    }

    /// Stores the report.
    pub(crate) fn report(&self, report: R) {
        *self.report.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(report);
    }

    pub(crate) fn close(self) -> Result<Run<R>, RunError> {
        let report = self.report.into_inner().unwrap_or_else(|poison| poison.into_inner());
        Ok(Run {
            report: report.ok_or_else(|| RunError::Panicked {
                node: "merger".into(),
                message: "ended without a report".into(),
            })?,
            dispatched: self.dispatched.iter().map(Counter::get).sum(),
            handled: self.handled.iter().map(Counter::get).collect(),
        })
    }
}
