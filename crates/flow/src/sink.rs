//! The destination of a worker's flow records.

use crate::FlowRecord;

/// Receives the flow records of one worker. Each worker has its own sink, so no call takes a lock.
pub trait RecordSink: Send {
    /// Receives the record of a flow that ended.
    fn take(&mut self, record: &FlowRecord);

    /// The worker is at a mark: the sink may hand on its records, so that readers are up to date.
    fn mark(&mut self) {}

    /// No more packets follow; the remaining flows end now.
    fn ending(&mut self) {}

    /// Hands on all records. No call follows.
    fn finish(&mut self) {}
}
