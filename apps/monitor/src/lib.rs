//! The monitor: what was seen, which flows, who scanned, who talked most; in one pass.
//!
//! ```text
//!             ┌ volumes ── every packet
//!             ├ activity ─ every packet, into sketches (if asked for)
//! a burst ──▶ ┤ scans ──── SYN and SYN-ACK only
//!             └ flows ──── every packet, through the flow table
//!                  ├ conversations ─ when a flow is first seen (in an interval)
//!                  └ talkers ─────── when a flow ends
//! ```
//!
//! Counting talkers on ended flows, not on packets, gives the same sums for a fraction of the
//! memory traffic: every IP packet belongs to exactly one flow record.
//!
//! Invariants: packets are sharded by their symmetric address pair, so whatever is keyed by a
//! pair or finer has one owner; whatever is coarser (hosts, ports, a scanner's targets) leaves
//! the worker as sums over disjoint parts or as tables that are united. No threads, rings, clock
//! or I/O here; time is packet time.
#![forbid(unsafe_code)]

mod alert;
mod analyses;
mod config;
mod digest;
mod merger;
pub mod report;
mod worker;

use std::sync::Mutex;

use ringtap_flow::RecordSink;
use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

pub use alert::Alert;
pub use analyses::activity::{COUNTERS as ACTIVE_HOSTS, Limits, UnknownLimit};
pub use analyses::volumes::{MOST_INTERVALS, ROW_UNITS};
pub use config::{Analyses, Config, UnknownAnalysis};
pub use merger::MonitorMerger;
pub use report::Report;
pub use worker::MonitorWorker;

use analyses::scans::Attempted;

/// The application. Holds the configuration and the outputs, until workers and merger take theirs.
pub struct Monitor {
    config: Config,
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
    pub interval: &'a report::Interval,
    /// How many flows live.
    pub live: u64,
    /// Who was busy, if that is looked at.
    pub activity: Option<&'a report::activity::Activity>,
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
    fn add(&mut self, other: &Self) {
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
    pub fn new(config: Config, outputs: Outputs) -> Self {
        let Outputs { records, alert, interval, shortage } = outputs;
        Self {
            config,
            records: Mutex::new(records.into_iter().map(Some).collect()),
            tells_intervals: interval.is_some(),
            merged: Mutex::new((alert, interval, shortage)),
        }
    }
}

/// A state report from a worker.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// A source's failed attempts on a port became one more or one fewer.
    Attempted(Attempted),
    /// A source crossed the threshold on one target.
    Alert(Alert),
}

/// What a worker hands over at a mark.
pub enum Partial {
    /// At a tick: how things stand.
    Tick(worker::Standing),
    /// At the end: everything.
    End(Box<worker::Findings>),
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
        MonitorWorker::new(&self.config, shard, records, self.tells_intervals)
    }

    fn merger(&self) -> MonitorMerger {
        let mut outputs = self.merged.lock().unwrap_or_else(|poison| poison.into_inner());
        let (alert, interval, shortage) = std::mem::take(&mut *outputs);
        MonitorMerger::new(&self.config, alert, interval, shortage)
    }
}
