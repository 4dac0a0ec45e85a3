//! Counters of flow records.

use ringtap_flow::{EndReason, FactCounts};

use crate::digest::RecordDigest;

/// Counters of flow records.
#[derive(Default)]
pub(crate) struct FlowCounts {
    /// By [`EndReason`], in order.
    pub(crate) ended: [u64; 5],
    /// Parts of flows, if they are cut.
    pub(crate) parts: u64,
    /// Flows of the run before that were continued.
    pub(crate) resumed: u64,
    /// Flows of the run before that could not be continued.
    pub(crate) not_continued: u64,
    /// Flows that were live at the end, and are kept for the next run.
    pub(crate) kept: u64,
    pub(crate) facts: FactCounts,
    /// Messages that were not joined to exchanges for lack of room.
    pub(crate) exchanges_without_room: u64,
    pub(crate) digest: Option<RecordDigest>,
}

/// The position of a reason in [`FlowCounts::ended`].
pub(crate) fn place(reason: EndReason) -> usize {
    reason as usize - EndReason::Idle as usize
}

impl FlowCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.ended.iter_mut().zip(other.ended) {
            *own += more;
        }
        self.parts += other.parts;
        self.resumed += other.resumed;
        self.not_continued += other.not_continued;
        self.kept += other.kept;
        self.facts.add(&other.facts);
        self.exchanges_without_room += other.exchanges_without_room;
        if let (Some(own), Some(more)) = (&mut self.digest, &other.digest) {
            own.merge(more);
        }
    }
}
