//! The result of a measurement, as JSON.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ringtap_base::text::json_document;
use ringtap_engine::{LedgerReport, Outcome, Performance, Plan};
use serde::Serialize;

use super::options::Options;
use crate::{Findings, FrequentItemsError, Interval, Keys, Report};

/// The merged structures of all workers, and their report.
#[derive(Debug)]
pub struct Merged {
    /// The report.
    pub report: Report,
    forms: Box<dyn Forms>,
}

/// The forms in which structures can be written, made on request: each takes as much memory as the structures.
trait Forms: Debug + Send {
    fn image(&self) -> Vec<u8>;
    fn frequent_items(&self) -> Result<Vec<u8>, FrequentItemsError>;
    fn distinct(&self) -> Option<Vec<u8>>;
}

impl<V: Keys> Forms for Findings<V> {
    fn image(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn frequent_items(&self) -> Result<Vec<u8>, FrequentItemsError> {
        Findings::frequent_items(self)
    }

    fn distinct(&self) -> Option<Vec<u8>> {
        self.distinct_to_apache()
    }
}

impl Merged {
    pub(super) fn of<V: Keys>(findings: Findings<V>) -> Self {
        Self { report: findings.report(), forms: Box::new(findings) }
    }

    /// The measurement as bytes, for merging with those of other machines.
    pub fn image(&self) -> Vec<u8> {
        self.forms.image()
    }

    /// The frequent items in the form of Apache DataSketches.
    ///
    /// # Errors
    /// If the structure is not mg.
    pub fn frequent_items(&self) -> Result<Vec<u8>, FrequentItemsError> {
        self.forms.frequent_items()
    }

    /// The HyperLogLog of distinct keys in the form of Apache DataSketches, if they were counted
    /// and there were any.
    pub fn distinct(&self) -> Option<Vec<u8>> {
        self.forms.distinct()
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    interval: &'a Interval,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_so_far: Option<u64>,
}

impl Interval {
    /// The interval as one line of JSON; of an interface with the packets dropped since the begin
    /// of the run.
    pub fn to_json(&self, dropped_so_far: Option<u64>) -> serde_json::Result<String> {
        serde_json::to_string(&Line { interval: self, dropped_so_far })
    }
}

/// The result of a finished measurement. With intervals its report has no keys, only the sum of
/// their packets.
#[derive(Debug)]
pub struct MeasureOutcome {
    /// The plan.
    pub plan: Plan<Options>,
    /// The run: packets received and dropped, the ledger, performance.
    pub run: Outcome<()>,
    /// The results.
    pub merged: Merged,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    plan: &'a Plan<Options>,
    packets: Packets,
    packet_drop_rate: f64,
    #[serde(flatten)]
    report: &'a Report,
    ledger: LedgerReport<'a>,
    performance: Performance,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    notices: Vec<String>,
}

#[derive(Serialize)]
struct Packets {
    received: u64,
    dropped: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct MergedDocument<'a> {
    version: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

impl Merged {
    /// The report as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&MergedDocument { version, report: &self.report })
            .map(json_document)
    }
}

impl MeasureOutcome {
    /// The share of received packets that were dropped.
    pub fn packet_drop_rate(&self) -> f64 {
        let dropped: u64 = self.run.ledger.dropped().values().sum();
        let received = self.run.received;
        if received > 0 { dropped as f64 / received as f64 } else { 0.0 }
    }

    /// The plan, the run and the results as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        let run = &self.run;
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            packets: Packets { received: run.received, dropped: run.ledger.dropped() },
            packet_drop_rate: self.packet_drop_rate(),
            report: &self.merged.report,
            ledger: LedgerReport::of(&run.ledger),
            performance: run.performance,
            interrupted: run.interrupted,
            notices: run.notices(),
        })
        .map(json_document)
    }
}
