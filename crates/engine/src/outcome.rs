//! What a run leaves: the report with everything around it, as JSON and as a digest.

use std::collections::BTreeMap;

use ringtap_base::{Ledger, Stage};
use ringtap_export::Summary;
use ringtap_extract::Unread;
use ringtap_io::capture::Notice;
use ringtap_monitor::{Report, report};
use ringtap_wire::{LinkType, NonIp};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Plan;
use crate::interfaces::InterfaceCounts;
use crate::packet_source::{ClockChanges, FeedCounts};
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
    /// Payloads that were to be read and could not be, by extractor and reason.
    pub unread_payloads: BTreeMap<String, u64>,
    /// What the analyses found.
    pub report: Report,
    /// Where the packets went.
    pub ledger: Ledger,
    /// How fast.
    pub performance: Performance,
    /// What became of the records that were exported, by collector; outside the digest.
    pub export: Vec<Summary>,
    /// The same of files of records.
    pub write: Vec<Summary>,
    /// Packets, inner ones too, that came by more ways than are told apart; outside the digest.
    pub packets_without_path: u64,
    /// Packets that came by another queue than what passed between the same addresses before, so that their flow is in
    /// two records; of one pair of addresses in 64, which are watched. Outside the digest.
    pub packets_split: u64,
    /// What came by each interface, in the order given; of files none. Outside the digest.
    pub interfaces: Vec<InterfaceCounts>,
    /// First fragments dropped within their 30 s for lack of room, so that later ones may lack their ports. How many
    /// depends on the number of queues; outside the digest.
    pub fragments_forgotten: u64,
    /// Packets whose link type is not decoded, by its number.
    pub undecoded_links: BTreeMap<LinkType, u64>,
    /// How the time of packets went on other than clocks do; outside the digest.
    pub clock: ClockChanges,
    /// What the source had to say.
    pub notices: Vec<Notice>,
    /// Why the source ended though nobody asked it to, or which interfaces were gone before the end.
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unread_payloads: &'a BTreeMap<String, u64>,
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
    facts: Option<&'a report::Facts>,
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
    #[serde(skip_serializing_if = "<[InterfaceCounts]>::is_empty")]
    interfaces: &'a [InterfaceCounts],
    ledger: Books<'a>,
    performance: Performance,
    #[serde(skip_serializing_if = "<[Summary]>::is_empty")]
    export: &'a [Summary],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    write: Vec<Written<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    packets_without_path: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packets_split: u64,
    #[serde(skip_serializing_if = "is_zero")]
    fragments_forgotten: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packets_ahead_of_time: u64,
    #[serde(skip_serializing_if = "is_zero")]
    clock_steps: u64,
    notices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a String>,
}

/// What became of the records of one file.
#[derive(Serialize)]
struct Written<'a> {
    output: &'a str,
    records: u64,
    octets: u64,
    /// Records, by reason.
    not_written: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a String>,
}

impl<'a> Written<'a> {
    fn of(summary: &'a Summary) -> Self {
        Self {
            output: &summary.output,
            records: summary.sent.flows.records,
            octets: summary.sent.message_octets,
            not_written: summary.not_sent.iter().map(|(why, lost)| (*why, lost.records)).collect(),
            failure: summary.failure.as_ref(),
        }
    }
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
        let mut undecoded_links = BTreeMap::new();
        for (reason, packets) in counts.non_ip {
            if let NonIp::UnsupportedLink(number) = reason {
                undecoded_links.insert(LinkType(number), packets);
            }
            *non_ip.entry(reason.to_string()).or_default() += packets;
        }
        let named = |((extractor, why), packets): ((&str, Unread), u64)| {
            (format!("{extractor} {}", why.name()), packets)
        };
        let unread_payloads = counts.unread.into_iter().map(named).collect();
        let digest = plan.digest;
        let mut outcome = Self {
            plan,
            received,
            captured_octets: counts.captured_octets,
            non_ip,
            unread_payloads,
            report,
            ledger,
            performance,
            export: Vec::new(),
            write: Vec::new(),
            packets_without_path: 0,
            interfaces: Vec::new(),
            notices,
            failure: None,
            packets_split: 0,
            fragments_forgotten: counts.fragments_forgotten,
            undecoded_links,
            clock: ClockChanges::default(),
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
            unread_payloads: &self.unread_payloads,
            findings: Findings {
                intervals: report.intervals.as_ref(),
                packets_in_further_intervals: Some(report.packets_in_further_intervals)
                    .filter(|&n| n > 0),
                protocols: report.protocols.as_ref(),
                conversations: report.conversations.as_ref(),
                flows: report.flows.as_ref(),
                facts: report.facts.as_ref(),
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
            ("intervals whose activity is not listed", report.activity_in_further_intervals),
            (
                "facts from payloads left out for lack of memory",
                report.facts.as_ref().map_or(0, |facts| facts.no_room),
            ),
            ("fragments forgotten for lack of memory", self.fragments_forgotten),
            (
                "packets whose link addresses, tags and tunnel are not known",
                self.packets_without_path,
            ),
            ("packets that came by another queue than the rest of their flow", self.packets_split),
            ("flow records not exported", self.export.iter().map(Summary::lost).sum()),
            ("flow records not written", self.write.iter().map(Summary::lost).sum()),
        ];
        all.into_iter().filter(|&(_, count)| count > 0).collect()
    }

    /// Warnings of what the answer lacks, with the remedy; they are among the notices of the JSON report. What was
    /// dropped is in the ledger, what was not exported in the summaries of the export.
    pub fn warnings(&self) -> Vec<String> {
        let Report { flows, scans, talkers, conversations, .. } = &self.report;
        let mut warnings = Vec::new();
        let mut warn = |count: u64, text: &dyn Fn(u64) -> String| {
            if count > 0 {
                warnings.push(text(count));
            }
        };
        let flows = flows.as_ref().and_then(|flows| flows.end_reasons.get("lack_of_resources"));
        warn(flows.copied().unwrap_or(0), &|count| {
            format!(
                "{count} flows were ended early, because the flow table has room for {}: raise --memory or --max-flows, or \
                 shorten --idle-timeout",
                self.plan.max_flows
            )
        });
        warn(scans.as_ref().map_or(0, |scans| scans.attempts_ignored), &|count| {
            format!(
                "{count} connection attempts were ignored by the scan analysis for lack of memory: raise --memory or \
                 --max-flows"
            )
        });
        warn(talkers.as_ref().map_or(0, |talkers| talkers.error_bound), &|count| {
            format!(
                "the talkers' octets may be short by up to {count} for lack of memory: raise --memory or --max-flows"
            )
        });
        warn(u64::from(conversations.is_some_and(|all| !all.exact)), &|_| {
            "the numbers of conversations are estimates for lack of memory: raise --memory or --max-flows".into()
        });
        warn(self.report.packets_in_further_intervals, &|count| {
            format!(
                "{count} packets are in later intervals than those that the report has room for: raise --memory or lengthen \
                 --interval"
            )
        });
        warn(self.report.activity_in_further_intervals, &|count| {
            format!(
                "the activity of {count} intervals is not in the report for lack of room: raise --memory, lengthen \
                 --interval or lower --top"
            )
        });
        warn(self.report.facts.as_ref().map_or(0, |facts| facts.no_room), &|count| {
            format!(
                "{count} facts from payloads were left out of flow records for lack of memory: raise --memory"
            )
        });
        warn(self.fragments_forgotten, &|count| {
            format!(
                "{count} first fragments were forgotten, because the table for {} fragmented datagrams was full; later fragments may \
                 lack their ports: raise --memory",
                self.plan.max_datagrams
            )
        });
        for (link, &packets) in &self.undecoded_links {
            warn(packets, &|count| {
                format!(
                    "{count} packets have the link type {link}, which is not decoded: they count as other than IP"
                )
            });
        }
        warnings
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            canonical: self.canonical(),
            activity: self.report.activity.as_deref(),
            activity_in_further_intervals: self.report.activity_in_further_intervals,
            interfaces: &self.interfaces,
            ledger: Books::of(&self.ledger),
            performance: self.performance,
            export: &self.export,
            write: self.write.iter().map(Written::of).collect(),
            packets_without_path: self.packets_without_path,
            packets_split: self.packets_split,
            fragments_forgotten: self.fragments_forgotten,
            packets_ahead_of_time: self.clock.strays,
            clock_steps: self.clock.set,
            notices: self
                .notices
                .iter()
                .map(ToString::to_string)
                .chain(self.clock.notices())
                .chain(self.failure.clone())
                .chain(self.warnings())
                .collect(),
            digest: self.digest.as_ref(),
        })
    }
}
