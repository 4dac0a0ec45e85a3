//! What a run leaves behind, and where its nodes write it down.

use std::sync::Mutex;

use ringtap_base::Counter;

use crate::{RunError, ShardMap};

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run<R> {
    /// The answer.
    pub report: R,
    /// Items that left the dispatchers.
    pub dispatched: u64,
    /// Items that each worker handled.
    pub handled: Vec<u64>,
}

/// Open as long as nodes run; each entry has one writer.
pub(crate) struct Books<R> {
    /// By queue.
    pub(crate) dispatched: Vec<Counter>,
    pub(crate) handled: Vec<Counter>,
    report: Mutex<Option<R>>,
}

impl<R> Books<R> {
    pub(crate) fn new(shards: &ShardMap) -> Self {
        let counters = |count| (0..count).map(|_| Counter::new()).collect();
        Self {
            dispatched: counters(shards.queues()),
            handled: counters(shards.workers()),
            report: Mutex::new(None),
        }
    }

    /// The answer has been found.
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
