//! Numbers of a run while it goes on.

use ringtap_flow::{EndReason, Exchange};

use crate::analyses::tcp::rows::TcpTotals;
use crate::counts::place;

/// Numbers of the run so far, at a mark. The report at the end has the final ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that have ended, in the order of [`EndReason::ALL`].
    pub flows_ended: [u64; EndReason::ALL.len()],
    /// Records of parts of flows, if flows are cut.
    pub flow_parts: u64,
    /// Attempts and answers ignored by the analyses of scans.
    pub attempts_ignored: u64,
    /// Whether the numbers of conversations are estimates.
    pub conversations_estimated: bool,
    /// Packets of intervals without a row.
    pub packets_in_further_intervals: u64,
    /// Alerts beyond those that are followed.
    pub alerts_without_room: u64,
    /// Alerts that rules of `--allow` suppressed.
    pub alerts_suppressed: u64,
    /// Sums over the flows that have ended, if TCP is measured.
    pub tcp: Option<TcpTotals>,
    /// Responses, in the order of [`Exchange::ALL`], if TCP is measured.
    pub responses: Option<[Responses; Exchange::ALL.len()]>,
    /// Live flows at the mark.
    pub live_flows: u64,
}

/// Responses with a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    /// Their number.
    pub count: u64,
    /// The sum of their times, microseconds.
    pub sum_us: u64,
}

impl Responses {
    /// Adds a response of this time.
    pub(crate) fn add_one(&mut self, time_us: u64) {
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(time_us);
    }
}

impl Totals {
    /// Flows ended because the flow table was full.
    pub fn flows_ended_early(&self) -> u64 {
        self.flows_ended[place(EndReason::LackOfResources)]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.flows_ended.iter_mut().zip(other.flows_ended) {
            *own += more;
        }
        self.flow_parts += other.flow_parts;
        self.attempts_ignored += other.attempts_ignored;
        self.conversations_estimated |= other.conversations_estimated;
        self.packets_in_further_intervals += other.packets_in_further_intervals;
        self.alerts_without_room += other.alerts_without_room;
        self.alerts_suppressed += other.alerts_suppressed;
        self.live_flows += other.live_flows;
        if let Some(more) = &other.tcp {
            self.tcp.get_or_insert_default().add(more);
        }
        if let Some(more) = &other.responses {
            for (own, more) in self.responses.get_or_insert_default().iter_mut().zip(more) {
                own.count += more.count;
                own.sum_us = own.sum_us.saturating_add(more.sum_us);
            }
        }
    }
}
