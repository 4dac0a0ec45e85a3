//! What a measurement leaves, as JSON.

use std::collections::BTreeMap;

use ringtap_engine::{Books, Outcome, Performance, Plan};
use serde::Serialize;

use super::options::Options;
use crate::{Findings, FrequentItemsError, Keys, Report};

/// What structures hold in the end: the answer, and the forms it can be written in.
#[derive(Clone, Debug)]
pub struct Merged {
    pub report: Report,
    /// To be merged with those of other machines.
    pub image: Vec<u8>,
    /// Of Apache DataSketches, if the structure is mg.
    pub frequent_items: Result<Vec<u8>, FrequentItemsError>,
    /// HyperLogLog of Apache DataSketches, if keys were counted and there were any.
    pub distinct: Option<Vec<u8>>,
}

impl Merged {
    pub(super) fn of<V: Keys>(findings: &Findings<V>) -> Self {
        Self {
            report: findings.report(),
            image: findings.to_bytes(),
            frequent_items: findings.frequent_items(),
            distinct: findings.distinct_to_apache(),
        }
    }
}

/// Everything there is to say about a finished measurement.
#[derive(Debug)]
pub struct MeasureOutcome {
    /// What ran.
    pub plan: Plan<Options>,
    /// Where the packets went.
    pub run: Outcome<()>,
    /// What was found.
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
    ledger: Books<'a>,
    performance: Performance,
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
    }
}

impl MeasureOutcome {
    /// The share of packets that came and were dropped.
    pub fn packet_drop_rate(&self) -> f64 {
        let dropped: u64 = self.run.ledger.dropped().values().sum();
        let received = self.run.received;
        if received > 0 { dropped as f64 / received as f64 } else { 0.0 }
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        let run = &self.run;
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            packets: Packets { received: run.received, dropped: run.ledger.dropped() },
            packet_drop_rate: self.packet_drop_rate(),
            report: &self.merged.report,
            ledger: Books::of(&run.ledger),
            performance: run.performance,
            notices: run.notices(),
        })
    }
}
