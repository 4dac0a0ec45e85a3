//! The result of a monitor run: the report with everything around it, as JSON and as a digest.

use std::collections::BTreeMap;
use std::io::Write;

use ringtap_base::text::json_document;
use ringtap_engine::{InterfaceCounts, LedgerReport, Performance, Plan};
use ringtap_export::{Items, Summary};
use serde::Serialize;

use super::canonical::{self, Canonical};
use crate::Options;
use crate::report::{Report, Sections};
use crate::state::{self, Counts, Earlier, MergeError, PACKETS_DROPPED};

/// The result of a finished run.
#[derive(Debug)]
pub struct Outcome {
    /// The plan.
    pub plan: Plan<Options>,
    /// The report, and where the packets went.
    pub run: ringtap_engine::Outcome<Report>,
    /// Where the packets went, by name.
    pub counts: Counts,
    /// Counters of exported records, by collector; outside the digest.
    pub export: Vec<Summary>,
    /// Counters of written records, by record file; outside the digest.
    pub write: Vec<Summary>,
    /// Packets, including inner ones, with encapsulations beyond the limit; outside the digest.
    pub packets_without_path: u64,
    /// `sha256:…` over the canonical report and all flow records, if requested.
    pub digest: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    plan: &'a Plan<Options>,
    #[serde(flatten)]
    canonical: Canonical<'a>,
    #[serde(flatten)]
    inexact: Sections,
    #[serde(skip_serializing_if = "is_zero")]
    activity_in_further_intervals: u64,
    #[serde(skip_serializing_if = "is_zero")]
    alerts_without_room: u64,
    #[serde(skip_serializing_if = "<[InterfaceCounts]>::is_empty")]
    interfaces: &'a [InterfaceCounts],
    ledger: LedgerReport<'a>,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    notices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a String>,
}

/// Counters of the records of one file.
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

/// Whether a loss concerns outputs or alerts, and so not the state.
fn is_of_outputs(what: &str) -> bool {
    what.starts_with("flow records")
        || [STATES_NOT_EXPORTED, ALERTS_NOT_DELIVERED, ALERTS_WITHOUT_ROOM].contains(&what)
}

/// Why packets are not handled in any run: their reasons depend on the packet alone.
const DROPPED_ALWAYS: [&str; 5] =
    ["damaged", "duplicate", "filtered", "not_sampled", "unfilterable"];

const STATES_NOT_EXPORTED: &str = "states not exported";

const ALERTS_NOT_DELIVERED: &str = "alerts not delivered";

const ALERTS_WITHOUT_ROOM: &str = "alerts without room";

impl Outcome {
    /// The result of a run; computes the digest.
    pub(crate) fn new(
        plan: Plan<Options>,
        run: ringtap_engine::Outcome<Report>,
        packets_without_path: u64,
    ) -> Self {
        let (export, write) = (Vec::new(), Vec::new());
        let counts = Counts::of(&run);
        let digest = None;
        let mut outcome = Self { plan, run, counts, export, write, packets_without_path, digest };
        if outcome.plan.app.digest {
            outcome.digest = canonical::digest(&outcome.counts, outcome.report());
        }
        outcome
    }

    /// The report.
    pub fn report(&self) -> &Report {
        &self.run.report
    }

    /// Writes the state of the run, if it was saved, or its last part.
    ///
    /// # Errors
    /// If there is none, or writing fails.
    pub fn write_state<W: Write>(&self, earlier: &mut Earlier, out: W) -> Result<W, MergeError> {
        let saved = self.report().state.as_ref();
        let saved = saved.ok_or(MergeError::Damaged("the run has none"))?;
        let losses = self.losses().into_iter();
        let mut lacks: BTreeMap<_, _> =
            losses.filter(|&(what, _)| !is_of_outputs(what) && what != PACKETS_DROPPED).collect();
        let app = &self.plan.app;
        let by_chance = self.counts.dropped.iter();
        let by_chance = by_chance.filter(|(why, _)| !DROPPED_ALWAYS.contains(&why.as_str()));
        let has_packets = self.counts.received > 0;
        let has_origins = app.enrichment.networks.is_some() || app.enrichment.geo.is_some();
        let more = [
            (PACKETS_DROPPED, by_chance.map(|(_, number)| number).sum()),
            ("packets with irregular times", self.run.clock.strays + self.run.clock.set),
            (state::CONVERSATIONS_LOST, saved.conversations_lost),
            (
                "watched entries, which are not in the state",
                u64::from(app.watch.is_some() && has_packets),
            ),
            ("origins of hosts, which are not in the state", u64::from(has_origins && has_packets)),
        ];
        lacks.extend(more);
        let end = state::RunEnd { interrupted: self.run.interrupted };
        state::write_state(&self.plan, saved, &self.counts, lacks, end, earlier, out)
    }

    /// Losses for lack of sound input, room or memory, with their numbers; empty if the report is
    /// complete and exact.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        let report = self.report();
        let evicted = report.flows.as_ref().and_then(|f| f.end_reasons.get("lack_of_resources"));
        let estimated = report.conversations.is_some_and(|c| !c.exact);
        let mut all = vec![
            (PACKETS_DROPPED, self.run.dropped()),
            ("flows ended early for lack of memory", evicted.copied().unwrap_or(0)),
            ("conversation counts estimated", u64::from(estimated)),
            ("packets beyond the intervals listed", report.packets_in_further_intervals),
            (
                "facts from payloads left out for lack of memory",
                report.facts.as_ref().map_or(0, |facts| facts.no_room),
            ),
            ("payloads not read for lack of memory", self.run.payloads_without_room()),
            ("messages evicted for lack of memory", self.run.messages_evicted()),
            ("fragments forgotten for lack of memory", self.run.counts.fragments_forgotten),
            (
                "packets whose duplicates may count, for lack of memory",
                self.run.counts.duplicates_evicted,
            ),
            ("packets with unknown link addresses, tags and tunnel", self.packets_without_path),
            ("packets in another queue than the rest of their flow", self.run.packets_split),
            ("flow records not exported", self.not_exported(Items::Flows)),
            (STATES_NOT_EXPORTED, self.not_exported(Items::States)),
            ("flow records and events not written", self.not_written(false)),
            (ALERTS_NOT_DELIVERED, self.not_written(true)),
            (ALERTS_WITHOUT_ROOM, report.alerts_without_room),
        ];
        all.extend(report.sections.losses());
        all.retain(|&(_, count)| count > 0);
        all
    }

    /// Records of this kind that collectors did not get.
    fn not_exported(&self, items: Items) -> u64 {
        let of_kind = self.export.iter().filter(|one| one.items == items);
        of_kind.map(Summary::lost).sum()
    }

    /// Alerts, or else records and events, that the other outputs did not get.
    fn not_written(&self, alerts: bool) -> u64 {
        let of_kind = self.write.iter().filter(|one| (one.items == Items::Alerts) == alerts);
        of_kind.map(Summary::lost).sum()
    }

    /// Warnings about what the report lacks, with the remedy; they are among the notices of the
    /// JSON report. Drops are in the ledger, records not exported in the summaries of the export.
    pub fn warnings(&self) -> Vec<String> {
        let Report { flows, facts, conversations, sections, .. } = self.report();
        let mut warnings = Vec::new();
        let mut warn = |count: u64, text: &dyn Fn(u64) -> String| {
            if count > 0 {
                warnings.push(text(count));
            }
        };
        let flows = flows.as_ref().and_then(|flows| flows.end_reasons.get("lack_of_resources"));
        warn(flows.copied().unwrap_or(0), &|count| {
            format!(
                "{count} flows ended early, because the flow table has room for {}: raise --memory or --max-flows, or \
                 shorten --idle-timeout",
                self.plan.app.max_flows()
            )
        });
        warn(u64::from(conversations.is_some_and(|all| !all.exact)), &|_| {
            "the numbers of conversations are estimates for lack of memory: raise --memory or --max-flows".into()
        });
        warn(self.report().packets_in_further_intervals, &|count| {
            format!(
                "{count} packets are in intervals beyond those in the report: raise --memory or lengthen \
                 --interval"
            )
        });
        warn(self.report().alerts_without_room, &|count| {
            format!(
                "{count} alerts were not reported, because as many as are followed at a time were open: raise --scan-threshold or \
                 the limits of --alert"
            )
        });
        warn(facts.as_ref().map_or(0, |facts| facts.no_room), &|count| {
            format!(
                "flow records lack {count} facts from payloads for lack of memory: raise --memory"
            )
        });
        warn(self.run.payloads_without_room(), &|count| {
            format!("{count} messages in payloads were not read for lack of memory: raise --memory")
        });
        warn(self.run.messages_evicted(), &|count| {
            format!(
                "{count} messages that were read were evicted for lack of memory; those that are sent again count again: \
                 raise --memory"
            )
        });
        warn(self.run.counts.fragments_forgotten, &|count| {
            format!(
                "{count} first fragments were evicted, because the table for {} fragmented datagrams was full; later fragments may \
                 lack their ports: raise --memory",
                self.plan.buffers.max_datagrams
            )
        });
        warn(self.run.counts.duplicates_evicted, &|count| {
            format!(
                "duplicates of {count} packets may be counted, because the table for {} packets was full before their window \
                 was over: raise --memory or shorten --dedup",
                self.plan.buffers.max_duplicates
            )
        });
        for (link, packets) in self.run.undecoded_links() {
            warn(packets, &|count| {
                format!(
                    "{count} packets have the link type {link}, which is not decoded: they count as not IP"
                )
            });
        }
        warnings.extend(sections.warnings());
        warnings
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        let (run, report) = (&self.run, self.report());
        let activity = report.sections.activity.as_ref();
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            canonical: Canonical::of(&self.counts, report),
            inexact: report.sections.inexact(),
            activity_in_further_intervals: activity.map_or(0, |activity| activity.further),
            alerts_without_room: report.alerts_without_room,
            interfaces: &run.interfaces,
            ledger: LedgerReport::of(&run.ledger),
            performance: run.performance,
            export: &self.export,
            write: self.write.iter().map(Written::of).collect(),
            packets_without_path: self.packets_without_path,
            packets_split: run.packets_split,
            fragments_forgotten: run.counts.fragments_forgotten,
            packets_ahead_of_time: run.clock.strays,
            clock_steps: run.clock.set,
            interrupted: run.interrupted,
            notices: run.notices().into_iter().chain(self.warnings()).collect(),
            digest: self.digest.as_ref(),
        })
        .map(json_document)
    }
}
