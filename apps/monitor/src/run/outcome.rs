//! The result of a monitor run: the report with everything around it, as JSON and as a digest.

use std::collections::BTreeMap;
use std::io::Write;

use ringtap_base::text::json_document;
use ringtap_engine::{InterfaceCounts, LedgerReport, Performance, Plan};
use ringtap_export::Summary;
use serde::Serialize;

use super::canonical::{self, Canonical};
use crate::Options;
use crate::report::{Report, Sections, Suppressed};
use crate::resume::Gap;
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
    /// What passed before the run, if it continues flows of another one; outside the digest.
    pub gap: Option<Gap>,
    /// How often the configuration was taken up; outside the digest.
    pub reloads: u64,
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
    #[serde(flatten)]
    losses: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed_alerts: Option<&'a [Suppressed]>,
    #[serde(skip_serializing_if = "<[InterfaceCounts]>::is_empty")]
    interfaces: &'a [InterfaceCounts],
    ledger: LedgerReport<'a>,
    performance: Performance,
    #[serde(skip_serializing_if = "<[Summary]>::is_empty")]
    export: &'a [Summary],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    write: Vec<Written<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    pairs_checked: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packets_ahead_of_time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<Gap>,
    #[serde(skip_serializing_if = "is_zero")]
    reloads: u64,
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

/// Why packets are not handled in any run: their reasons depend on the packet alone.
const DROPPED_ALWAYS: [&str; 5] =
    ["damaged", "duplicate", "filtered", "not_sampled", "unfilterable"];

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
        let mut outcome = Self {
            plan,
            run,
            counts,
            export,
            write,
            packets_without_path,
            gap: None,
            reloads: 0,
            digest,
        };
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
        let mut lacks = self.lacks();
        let app = &self.plan.app;
        let by_chance = self.counts.dropped.iter();
        let by_chance = by_chance.filter(|(why, _)| !DROPPED_ALWAYS.contains(&why.as_str()));
        let has_packets = self.counts.received > 0;
        let has_origins = app.enrichment.networks.is_some() || app.enrichment.geo.is_some();
        let more = [
            (PACKETS_DROPPED, by_chance.map(|(_, number)| number).sum()),
            ("packets with irregular times", self.run.clock.strays + self.run.clock.set),
            (state::CONVERSATIONS_LOST, saved.conversations_lost),
            (state::EARLY_LOST, saved.early_lost),
            (
                "watched entries, which are not in the state",
                u64::from(app.watch.is_some() && has_packets),
            ),
            (
                "changes of own hosts, which are not in the state",
                u64::from(app.change_limits.any() && has_packets),
            ),
            ("origins of hosts, which are not in the state", u64::from(has_origins && has_packets)),
        ];
        lacks.extend(more);
        let end = state::RunEnd { interrupted: self.run.interrupted };
        state::write_state(&self.plan, saved, &self.counts, lacks, end, earlier, out)
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        let (run, report) = (&self.run, self.report());
        serde_json::to_string_pretty(&Document {
            version,
            plan: &self.plan,
            canonical: Canonical::of(&self.counts, report),
            inexact: report.sections.inexact(),
            losses: self.fields(),
            suppressed_alerts: report.suppressed_alerts.as_deref(),
            interfaces: &run.interfaces,
            ledger: LedgerReport::of(&run.ledger),
            performance: run.performance,
            export: &self.export,
            write: self.write.iter().map(Written::of).collect(),
            pairs_checked: run.pairs_checked,
            packets_ahead_of_time: run.clock.strays,
            gap: self.gap,
            reloads: self.reloads,
            clock_steps: run.clock.set,
            interrupted: run.interrupted,
            notices: run.notices().into_iter().chain(self.warnings()).collect(),
            digest: self.digest.as_ref(),
        })
        .map(json_document)
    }
}
