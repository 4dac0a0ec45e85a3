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
mod outlet;
pub mod report;
mod worker;

use std::sync::{Arc, Mutex};

use ringtap_stage::{Application, Shard};
use ringtap_wire::PacketRecord;

pub use alert::Alert;
pub use analyses::activity::{Limits, UnknownLimit};
pub use config::{Analyses, Config, UnknownAnalysis};
pub use merger::MonitorMerger;
pub use report::Report;
pub use worker::MonitorWorker;

use analyses::scans::Attempted;

/// The application. Holds the configuration and, for its workers and until the merger takes its own, who hears of
/// what they find.
pub struct Monitor {
    config: Config,
    record: Option<Arc<Mutex<OnRecord>>>,
    /// For the merger.
    merged: Mutex<(Option<OnAlert>, Option<OnInterval>)>,
    tells_intervals: bool,
}

/// Takes flow records.
pub type OnRecord = Box<dyn FnMut(&ringtap_flow::FlowRecord) + Send>;

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

/// Who hears of records, scans and intervals while the run goes on. Records are told by the workers, one at a time, the
/// rest by the merger.
#[derive(Default)]
pub struct Outputs {
    /// Every flow record as it leaves; without one, records are only counted.
    pub record: Option<OnRecord>,
    /// A scan, as soon as it crosses the threshold.
    pub alert: Option<OnAlert>,
    /// An interval, as soon as all workers are past it.
    pub interval: Option<OnInterval>,
}

impl Monitor {
    /// A monitor with these outputs.
    pub fn new(config: Config, outputs: Outputs) -> Self {
        let Outputs { record, alert, interval } = outputs;
        Self {
            config,
            record: record.map(|hear| Arc::new(Mutex::new(hear))),
            tells_intervals: interval.is_some(),
            merged: Mutex::new((alert, interval)),
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
        MonitorWorker::new(&self.config, shard, self.record.clone(), self.tells_intervals)
    }

    fn merger(&self) -> MonitorMerger {
        let mut outputs = self.merged.lock().unwrap_or_else(|poison| poison.into_inner());
        let (alert, interval) = std::mem::take(&mut *outputs);
        MonitorMerger::new(&self.config, alert, interval)
    }
}
