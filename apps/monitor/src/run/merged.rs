//! The result of a merge: as JSON and as a digest.

use std::collections::BTreeMap;

use ringtap_base::text::json_document;
use ringtap_engine::INTERRUPTED;
use serde::Serialize;

use super::canonical::{self, Canonical};
use super::losses;
use crate::report::{Sections, Time};
use crate::state::{self, Merged, Settings, Span};

/// The notes of a merge without all parts: of states with volumes by time, and of older ones.
const BY_TIME: &str = "flows count where they end; packets and octets are those of these parts, also by host and name";
const WHERE_FLOWS_COUNT: &str =
    "flows count where they end: talkers may have more octets than these parts carried";

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    settings: &'a Settings,
    runs: Vec<Run<'a>>,
    #[serde(flatten)]
    canonical: Canonical<'a>,
    #[serde(flatten)]
    inexact: Sections,
    exact: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inexact_reasons: BTreeMap<&'a str, u64>,
    joined_flows: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// A run; its parts as the numbers of the first and the last of each span.
#[derive(Serialize)]
struct Run<'a> {
    probe: &'a str,
    run: &'a str,
    parts: Vec<[u64; 2]>,
    ended: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

/// Parts that are missing, and the time that they are of.
#[derive(Serialize)]
struct Missing {
    parts: [u64; 2],
    from: Time,
    until: Time,
}

impl<'a> Run<'a> {
    fn of((number, run): (&'a String, &'a state::Run)) -> Self {
        let numbers = |span: &Span| [span.first, span.last];
        let missing = |span: &Span| Missing {
            parts: numbers(span),
            from: Time(span.from_ns),
            until: Time(span.until_ns),
        };
        Self {
            probe: &run.probe,
            run: number,
            parts: run.parts.iter().map(numbers).collect(),
            ended: run.ended,
            interrupted: run.interrupted,
            missing: run.missing().iter().map(missing).collect(),
        }
    }
}

impl Merged {
    /// Why the report may differ from that of one run over all packets, with numbers; empty if it does not.
    pub fn inexact(&self) -> BTreeMap<&str, u64> {
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for (what, &number) in &self.header.lacks {
            reasons.insert(what, number);
        }
        for (what, number) in losses::of_sections(&self.report.sections) {
            let reason = reasons.entry(what).or_default();
            *reason = reason.saturating_add(number);
        }
        let runs = || self.header.runs.values();
        let missing = runs().flat_map(state::Run::missing).map(|span| span.parts());
        let missing = missing.fold(0_u64, u64::saturating_add);
        let unended = runs().filter(|run| !run.ended).count() as u64;
        let further = self.report.packets_in_further_intervals;
        reasons.extend([
            ("address pairs seen by several runs", self.shared_pairs),
            (losses::FURTHER, further),
            ("parts of runs that are missing", missing),
            ("runs whose end is missing", unended),
        ]);
        reasons.retain(|_, number| *number > 0);
        reasons
    }

    /// What the numbers of a merge mean that do not mean it in the report of a whole run.
    pub fn notes(&self) -> Vec<&'static str> {
        let of_parts = if self.header.settings.by_time { BY_TIME } else { WHERE_FLOWS_COUNT };
        let is_part = !self.header.is_whole();
        let notes = [(self.header.is_interrupted(), INTERRUPTED), (is_part, of_parts)];
        notes.into_iter().filter_map(|(holds, note)| holds.then_some(note)).collect()
    }

    /// The digest of the report, if it is exact.
    pub fn digest(&self) -> Option<String> {
        let wanted = self.plan.app.digest && self.inexact().is_empty();
        wanted.then(|| canonical::digest(&self.counts, &self.report)).flatten()
    }

    /// The whole as one JSON document. `version` is the program's.
    ///
    /// # Errors
    /// None are expected.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        let inexact_reasons = self.inexact();
        serde_json::to_string_pretty(&Document {
            version,
            settings: &self.header.settings,
            runs: self.header.runs.iter().map(Run::of).collect(),
            canonical: Canonical::of(&self.counts, &self.report),
            inexact: self.report.sections.inexact(),
            exact: inexact_reasons.is_empty(),
            inexact_reasons,
            joined_flows: self.joined_flows,
            interrupted: self.header.is_interrupted(),
            notes: self.notes(),
            digest: self.digest(),
        })
        .map(json_document)
    }
}
