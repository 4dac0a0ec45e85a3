//! What a run leaves: the report with everything around it, as JSON and as a digest.

use std::collections::BTreeMap;

use ringtap_capture::Notice;
use ringtap_export::Summary;
use ringtap_metrics::{Ledger, Stage};
use ringtap_monitor::{Report, report};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Plan;
use crate::packet_source::FeedCounts;
use crate::run::{FILTERED, NOT_SAMPLED};

/// How fast it went; outside the digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Performance {
    /// Wall time.
    pub seconds: f64,
    /// Packets received by wall time.
    pub packets_per_second: u64,
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Largest resident set of the process.
    pub peak_rss_bytes: u64,
}

/// Everything there is to say about a finished run.
#[derive(Debug)]
pub struct Outcome {
    /// What ran.
    pub plan: Plan,
    /// Packets the source delivered, damaged ones included.
    pub received: u64,
    /// Bytes captured.
    pub captured_octets: u64,
    /// Why packets were not IP.
    pub non_ip: BTreeMap<String, u64>,
    /// What the analyses found.
    pub report: Report,
    /// Where the packets went.
    pub ledger: Ledger,
    /// How fast.
    pub performance: Performance,
    /// What became of the records that were exported, by collector; outside the digest.
    pub export: Vec<Summary>,
    /// Packets, inner ones too, that came by more ways than are told apart; outside the digest.
    pub packets_without_path: u64,
    /// Packets that came by another queue than what passed between the same addresses before, so that their flow is in
    /// two records; of one pair of addresses in 64, which are watched. Outside the digest.
    pub packets_split: u64,
    /// What the source had to say.
    pub notices: Vec<Notice>,
    /// Why the source ended though nobody asked it to.
    pub failure: Option<String>,
    /// `sha256:…` over the canonical report and all flow records, if the plan asked for it.
    pub digest: Option<String>,
}

/// The part of the report that any two runs over the same packets agree on.
#[derive(Serialize)]
struct Canonical<'a> {
    packets: Packets<'a>,
    octets: Octets<'a>,
    non_ip: &'a BTreeMap<String, u64>,
    #[serde(flatten)]
    findings: Findings<'a>,
}

#[derive(Serialize)]
struct Packets<'a> {
    received: u64,
    dropped: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    kinds: &'a report::Packets,
}

#[derive(Serialize)]
struct Octets<'a> {
    captured: u64,
    #[serde(flatten)]
    layers: &'a report::Octets,
}

/// The report without what [`Packets`] and [`Octets`] already hold.
#[derive(Serialize)]
struct Findings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<&'a Vec<report::Interval>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_in_further_intervals: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocols: Option<&'a BTreeMap<u8, report::Volume>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversations: Option<&'a report::Conversations>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<&'a report::Flows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scans: Option<&'a report::Scans>,
    #[serde(skip_serializing_if = "Option::is_none")]
    talkers: Option<&'a report::Talkers>,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    plan: &'a Plan,
    #[serde(flatten)]
    canonical: Canonical<'a>,
    /// Not canonical: sketches forget in the order of arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'a [report::activity::Activity]>,
    #[serde(skip_serializing_if = "is_zero")]
    activity_in_further_intervals: u64,
    ledger: Books<'a>,
    performance: Performance,
    #[serde(skip_serializing_if = "<[Summary]>::is_empty")]
    export: &'a [Summary],
    #[serde(skip_serializing_if = "is_zero")]
    packets_without_path: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packets_split: u64,
    notices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A ledger as it is printed.
#[derive(Serialize)]
pub(crate) struct Books<'a> {
    residual: u64,
    stages: Vec<Row<'a>>,
}

impl<'a> Books<'a> {
    pub(crate) fn of(ledger: &'a Ledger) -> Self {
        Self { residual: ledger.residual(), stages: ledger.stages.iter().map(Row::of).collect() }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    stage: &'static str,
    #[serde(rename = "in")]
    input: u64,
    out: u64,
    dropped: &'a BTreeMap<&'static str, u64>,
}

impl<'a> Row<'a> {
    fn of(stage: &'a Stage) -> Self {
        Self { stage: stage.name, input: stage.input, out: stage.output, dropped: &stage.dropped }
    }
}

impl Outcome {
    pub(crate) fn new(
        plan: Plan,
        received: u64,
        counts: FeedCounts,
        report: Report,
        ledger: Ledger,
        performance: Performance,
        notices: Vec<Notice>,
    ) -> Self {
        let mut non_ip = BTreeMap::new();
        for (reason, packets) in counts.non_ip {
            *non_ip.entry(reason.to_string()).or_default() += packets;
        }
        let digest = plan.digest;
        let mut outcome = Self {
            plan,
            received,
            captured_octets: counts.captured_octets,
            non_ip,
            report,
            ledger,
            performance,
            export: Vec::new(),
            packets_without_path: 0,
            notices,
            failure: None,
            packets_split: 0,
            digest: None,
        };
        if digest {
            outcome.digest = serde_json::to_vec(&outcome.canonical()).ok().map(|bytes| {
                let hash = Sha256::digest(bytes);
                let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("sha256:{hex}")
            });
        }
        outcome
    }

    fn canonical(&self) -> Canonical<'_> {
        let report = &self.report;
        Canonical {
            packets: Packets {
                received: self.received,
                dropped: self.ledger.dropped(),
                kinds: &report.packets,
            },
            octets: Octets { captured: self.captured_octets, layers: &report.octets },
            non_ip: &self.non_ip,
            findings: Findings {
                intervals: report.intervals.as_ref(),
                packets_in_further_intervals: Some(report.packets_in_further_intervals)
                    .filter(|&n| n > 0),
                protocols: report.protocols.as_ref(),
                conversations: report.conversations.as_ref(),
                flows: report.flows.as_ref(),
                scans: report.scans.as_ref(),
                talkers: report.talkers.as_ref(),
            },
        }
    }

    /// What was given up for want of soundness, room or memory, and how much of it; empty if the
    /// answer is whole and exact.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        let report = &self.report;
        let evicted = report.flows.as_ref().and_then(|f| f.end_reasons.get("lack_of_resources"));
        let estimated = report.conversations.is_some_and(|c| !c.exact);
        let mut dropped = self.ledger.dropped();
        dropped.retain(|&reason, _| reason != FILTERED && reason != NOT_SAMPLED);
        let all = [
            ("packets dropped", dropped.values().sum()),
            ("flows ended early for lack of memory", evicted.copied().unwrap_or(0)),
            (
                "connection attempts ignored by the scan analysis",
                report.scans.as_ref().map_or(0, |scans| scans.attempts_ignored),
            ),
            (
                "octets uncertain among the talkers",
                report.talkers.as_ref().map_or(0, |talkers| talkers.error_bound),
            ),
            ("conversation counts estimated", u64::from(estimated)),
            ("packets beyond the intervals listed", report.packets_in_further_intervals),
            (
                "packets whose link addresses, tags and tunnel are not known",
                self.packets_without_path,
            ),
            ("packets that came by another queue than the rest of their flow", self.packets_split),
            ("flow records not exported", self.export.iter().map(Summary::lost).sum()),
        ];
        all.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            canonical: self.canonical(),
            activity: self.report.activity.as_deref(),
            activity_in_further_intervals: self.report.activity_in_further_intervals,
            ledger: Books::of(&self.ledger),
            performance: self.performance,
            export: &self.export,
            packets_without_path: self.packets_without_path,
            packets_split: self.packets_split,
            notices: self
                .notices
                .iter()
                .map(ToString::to_string)
                .chain(self.failure.clone())
                .collect(),
            digest: self.digest.as_ref(),
        })
    }
}
