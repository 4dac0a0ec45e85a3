//! Numbers of a run while it goes on.

use crate::analyses::tcp::rows::TcpTotals;

/// Numbers of the run so far, at a mark. The report at the end has the final ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows ended because the flow table was full.
    pub flows_ended_early: u64,
    /// SYNs and SYN-ACKs ignored by the scan analysis.
    pub attempts_ignored: u64,
    /// Whether the numbers of conversations are estimates.
    pub conversations_estimated: bool,
    /// Packets of intervals without a row.
    pub packets_in_further_intervals: u64,
    /// Alerts beyond those that are followed.
    pub alerts_without_room: u64,
    /// Sums over the flows that have ended, if TCP is measured.
    pub tcp: Option<TcpTotals>,
    /// Live flows at the mark.
    pub live_flows: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.flows_ended_early += other.flows_ended_early;
        self.attempts_ignored += other.attempts_ignored;
        self.conversations_estimated |= other.conversations_estimated;
        self.packets_in_further_intervals += other.packets_in_further_intervals;
        self.alerts_without_room += other.alerts_without_room;
        self.live_flows += other.live_flows;
        if let Some(more) = &other.tcp {
            self.tcp.get_or_insert_default().add(more);
        }
    }
}
