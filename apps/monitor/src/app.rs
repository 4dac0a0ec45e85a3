//! The monitor as an application: what its workers, its merger and its listeners are.

use std::sync::Mutex;

use ringtap_flow::RecordSink;
use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

use crate::analyses::Message;
use crate::report::Interval;
use crate::report::activity::Activity;
use crate::worker::{Findings, Standing};
use crate::{Alert, MonitorMerger, MonitorWorker, Report, Setup};

/// The application. Holds the setup and the outputs, until workers and merger take theirs.
pub struct Monitor {
    setup: Setup,
    /// For the workers, by number.
    records: Mutex<Vec<Option<Box<dyn RecordSink>>>>,
    /// For the merger.
    merged: Mutex<(Option<OnAlert>, Option<OnInterval>, Option<OnShortage>)>,
    tells_intervals: bool,
}

/// Takes alerts.
pub type OnAlert = Box<dyn FnMut(&Alert) + Send>;

/// Takes an interval that is over. What comes late for it is in the report alone.
pub type OnInterval = Box<dyn FnMut(&Ended<'_>) + Send>;

/// An interval that is over.
pub struct Ended<'a> {
    /// Its volumes.
    pub interval: &'a Interval,
    /// How many flows live.
    pub live: u64,
    /// Who was busy, if that is looked at.
    pub activity: Option<&'a Activity>,
}

/// What a run had no room for so far, at a mark. The report at the end has the final numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Flows that were ended because the flow table was full.
    pub flows_ended_early: u64,
    /// SYNs and SYN-ACKs that the scan analysis left out.
    pub attempts_ignored: u64,
    /// Whether the numbers of conversations are estimates.
    pub conversations_estimated: bool,
    /// Packets of intervals that have no row.
    pub packets_in_further_intervals: u64,
}

impl Shortage {
    pub(crate) fn add(&mut self, other: &Self) {
        self.flows_ended_early += other.flows_ended_early;
        self.attempts_ignored += other.attempts_ignored;
        self.conversations_estimated |= other.conversations_estimated;
        self.packets_in_further_intervals += other.packets_in_further_intervals;
    }
}

/// Takes what there was no room for, whenever it becomes more.
pub type OnShortage = Box<dyn FnMut(&Shortage) + Send>;

/// Where records, scans and intervals go while the run goes on: records from the workers, the rest from the merger.
#[derive(Default)]
pub struct Outputs {
    /// A sink for each worker's flow records; without sinks, records are only counted.
    pub records: Vec<Box<dyn RecordSink>>,
    /// A scan, as soon as it crosses the threshold.
    pub alert: Option<OnAlert>,
    /// An interval, as soon as all workers are past it.
    pub interval: Option<OnInterval>,
    /// What there was no room for, at marks where it is more than before; ahead of the intervals that end there.
    pub shortage: Option<OnShortage>,
}

impl Monitor {
    /// A monitor with these outputs.
    pub fn new(setup: Setup, outputs: Outputs) -> Self {
        let Outputs { records, alert, interval, shortage } = outputs;
        Self {
            setup,
            records: Mutex::new(records.into_iter().map(Some).collect()),
            tells_intervals: interval.is_some(),
            merged: Mutex::new((alert, interval, shortage)),
        }
    }
}

/// What a worker hands over at a mark.
pub enum Partial {
    /// At a tick: how things stand.
    Tick(Standing),
    /// At the end: everything.
    End(Box<Findings>),
}

impl Application for Monitor {
    type Item = PacketRecord;
    type Message = Message;
    type Partial = Partial;
    type Report = Report;
    type Worker = MonitorWorker;
    type Merger = MonitorMerger;

    #[inline(always)]
    fn shard_key(&self, packet: &PacketRecord) -> u32 {
        packet.pair_hash
    }

    fn worker(&self, shard: Shard) -> MonitorWorker {
        let mut records = self.records.lock().unwrap_or_else(|poison| poison.into_inner());
        let records = records.get_mut(shard.index).and_then(Option::take);
        MonitorWorker::new(&self.setup, shard, records, self.tells_intervals)
    }

    fn merger(&self) -> MonitorMerger {
        let mut outputs = self.merged.lock().unwrap_or_else(|poison| poison.into_inner());
        let (alert, interval, shortage) = std::mem::take(&mut *outputs);
        MonitorMerger::new(&self.setup, alert, interval, shortage)
    }
}
