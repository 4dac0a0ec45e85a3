//! Where a worker's flow records go.

use crate::FlowRecord;

/// Takes the flow records of one worker. Each worker has its own, so nothing is shared and no call takes a lock.
pub trait RecordSink: Send {
    /// Takes a record of a flow that ended.
    fn take(&mut self, record: &FlowRecord);

    /// The worker is at a mark: records taken so far may be handed on, so that readers are up to date.
    fn mark(&mut self) {}

    /// No more packets come; the flows that are left end now.
    fn ending(&mut self) {}

    /// Hands on everything that was taken. Nothing follows.
    fn finish(&mut self) {}
}
