//! The monitor as an application: its workers, its merger and its outputs.

use std::sync::Mutex;

use ringtap_flow::Sinks;
use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

use crate::report::activity::Activity;
use crate::report::{Interval, TcpTotals};
use crate::state::OnPart;
use crate::worker::{Findings, TickSummary};
use crate::{Alert, MonitorMerger, MonitorWorker, Report, Setup};

/// The application. Holds the setup and the outputs until workers and merger take theirs.
pub struct Monitor {
    setup: Setup,
    /// For the workers, by number.
    sinks: Mutex<Vec<Sinks>>,
    /// For the merger.
    receivers: Mutex<Receivers>,
    reports_intervals: bool,
}

/// Receives alerts.
pub type OnAlert = Box<dyn FnMut(&Alert) + Send>;

/// Receives a finished interval. Late packets of it are in the report only.
pub type OnInterval = Box<dyn FnMut(&EndedInterval<'_>) + Send>;

/// A finished interval.
pub struct EndedInterval<'a> {
    /// Its volumes.
    pub interval: &'a Interval,
    /// Number of live flows.
    pub live: u64,
    /// The activity, if it is measured.
    pub activity: Option<&'a Activity>,
}

/// Losses for lack of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
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
}

impl Shortage {
    pub(crate) fn add(&mut self, other: &Self) {
        self.flows_ended_early += other.flows_ended_early;
        self.attempts_ignored += other.attempts_ignored;
        self.conversations_estimated |= other.conversations_estimated;
        self.packets_in_further_intervals += other.packets_in_further_intervals;
        self.alerts_without_room += other.alerts_without_room;
    }
}

/// Numbers of the run so far, at a mark. The report at the end has the final ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Losses for lack of room.
    pub shortage: Shortage,
    /// Sums over the flows that have ended, if TCP is measured.
    pub tcp: Option<TcpTotals>,
    /// Live flows at the mark.
    pub live_flows: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.shortage.add(&other.shortage);
        self.live_flows += other.live_flows;
        if let Some(more) = &other.tcp {
            self.tcp.get_or_insert_default().add(more);
        }
    }
}

/// Receives totals, whenever they change.
pub type OnTotals = Box<dyn FnMut(&Totals) + Send>;

/// Destinations of records, alerts and intervals during the run: records from the workers, the rest
/// from the merger.
#[derive(Default)]
pub struct Outputs {
    /// Sinks for each worker's flow records and events; without sinks, they are only counted.
    pub sinks: Vec<Sinks>,
    /// What the merger hands over.
    pub receivers: Receivers,
}

/// Destinations of what the merger hands over during the run.
#[derive(Default)]
pub struct Receivers {
    /// Called for each change of an alert.
    pub alert: Option<OnAlert>,
    /// Called for an interval once all workers have passed it.
    pub interval: Option<OnInterval>,
    /// Called at marks with new totals, before the intervals that end there.
    pub totals: Option<OnTotals>,
    /// Called with each part of the state but the last, if it is saved in parts.
    pub part: Option<OnPart>,
}

impl Monitor {
    /// A monitor with these outputs.
    pub fn new(setup: Setup, outputs: Outputs) -> Self {
        let Outputs { sinks, receivers } = outputs;
        Self {
            setup,
            sinks: Mutex::new(sinks),
            reports_intervals: receivers.interval.is_some(),
            receivers: Mutex::new(receivers),
        }
    }
}

/// A worker's partial result at a mark.
pub enum Partial {
    /// At a tick: a summary.
    Tick(Box<TickSummary>),
    /// At the end: everything.
    End(Box<Findings>),
}

impl Application for Monitor {
    type Item = PacketRecord;
    type Message = ();
    type Partial = Partial;
    type Report = Report;
    type Worker = MonitorWorker;
    type Merger = MonitorMerger;

    #[inline(always)]
    fn shard_key(&self, packet: &PacketRecord) -> u32 {
        packet.pair_hash
    }

    fn worker(&self, shard: Shard) -> MonitorWorker {
        let mut sinks = self.sinks.lock().unwrap_or_else(|poison| poison.into_inner());
        let sinks = sinks.get_mut(shard.index).map(std::mem::take).unwrap_or_default();
        MonitorWorker::new(&self.setup, shard, sinks, self.reports_intervals)
    }

    fn merger(&self) -> MonitorMerger {
        let mut receivers = self.receivers.lock().unwrap_or_else(|poison| poison.into_inner());
        MonitorMerger::new(&self.setup, std::mem::take(&mut *receivers))
    }
}
