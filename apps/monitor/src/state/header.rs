//! The header of a state: the settings that it was made with, the runs that it is of, and what it lacks.

use std::collections::BTreeMap;

use ringtap_engine::Plan;
use ringtap_extract::Names;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use ringtap_state::Schema;

use super::image::{Content, saved, tables_of};
use crate::analyses::{Analyses, Scope};
use crate::options::Options;

/// What must be equal in states that are merged, because it decides what their rows mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The names of the analyses that a state holds.
    pub analyses: Vec<String>,
    /// The extractors for payloads.
    pub extract: Vec<String>,
    /// The interval, nanoseconds; intervals begin at multiples of it since 1970.
    pub interval_ns: Option<u64>,
    /// The timeouts by name, nanoseconds.
    pub timeouts: BTreeMap<String, u64>,
    /// Whether each direction is a flow.
    pub uniflow: bool,
    /// Whether VLANs separate flows.
    pub vlan_in_key: bool,
    /// Which packets of tunnels make flows.
    pub tunnels: String,
    /// The further UDP ports of tunnels.
    #[serde(default)]
    pub tunnel_ports: String,
    /// One in this number of packets was handled.
    pub sample: u32,
    /// The time within which a packet seen again was left out, nanoseconds.
    pub dedup_ns: Option<u64>,
    /// The filter expression.
    pub filter: Option<String>,
    /// The SHA-256 of the list that applications come from.
    pub names: String,
    /// Whether volumes are those of the packets of each part; in older states they are those of the flows that ended in it.
    #[serde(default)]
    pub by_time: bool,
    /// Whether there are response times, which older states lack.
    #[serde(default)]
    pub timed: bool,
    /// Whether live flows have reverse paths, which older states lack.
    #[serde(default)]
    pub reverse_paths: bool,
    /// Most first packets in the statistics of a flow, if there are statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics_packets: Option<u8>,
    /// Most first octets of the payload of a direction in the statistics, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics_octets: Option<u16>,
    /// Whether ports are the server ports of flows; in older states they are those of both ends.
    #[serde(default)]
    pub server_ports: bool,
}

impl Settings {
    /// Returns the settings of a run.
    pub fn of(plan: &Plan<Options>) -> Self {
        let (run, app) = (&plan.options, &plan.app);
        let named = app.metering.timeouts.named().into_iter();
        let owned = |names: Vec<&'static str>| names.into_iter().map(str::to_owned).collect();
        Self {
            analyses: owned(saved(app.analyses).names()),
            extract: owned(app.extract.names()),
            interval_ns: app.interval_ns,
            timeouts: named.map(|(name, ns)| (name.to_owned(), ns)).collect(),
            uniflow: app.metering.uniflow,
            vlan_in_key: app.metering.vlan_in_key,
            tunnels: run.tunnels.name().to_owned(),
            tunnel_ports: run.tunnel_ports.to_string(),
            sample: run.sample,
            dedup_ns: run.dedup_ns,
            filter: run.filter.as_ref().map(|filter| filter.text().to_owned()),
            names: app.names.digest(),
            by_time: true,
            timed: true,
            reverse_paths: true,
            statistics_packets: app.statistics_packets,
            statistics_octets: Some(app.statistics_octets).filter(|octets| *octets > 0),
            server_ports: true,
        }
    }

    /// 16 hexadecimal digits, equal for equal settings of one version of the program.
    pub fn id(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(text)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Changes a run's options to these settings; the filter was applied when packets were read.
    fn apply(&self, run: &mut ringtap_engine::Options, app: &mut Options) -> Option<()> {
        app.analyses = self.analyses.join(",").parse().ok()?;
        app.extract = match self.extract.join(",") {
            none if none.is_empty() => ringtap_extract::Extractors::NONE,
            list => list.parse().ok()?,
        };
        app.interval_ns = self.interval_ns;
        for (name, &ns) in &self.timeouts {
            app.metering.timeouts.set(name, ns).then_some(())?;
        }
        (app.metering.uniflow, app.metering.vlan_in_key) = (self.uniflow, self.vlan_in_key);
        run.tunnels = self.tunnels.parse().ok()?;
        if !self.tunnel_ports.is_empty() {
            run.tunnel_ports = self.tunnel_ports.parse().ok()?;
        }
        (run.sample, run.dedup_ns) = (self.sample, self.dedup_ns);
        Some(())
    }

    /// The options of a report with these settings.
    pub(crate) fn options(
        &self,
        mut run: ringtap_engine::Options,
        mut app: Options,
    ) -> Result<(ringtap_engine::Options, Options), MergeError> {
        self.apply(&mut run, &mut app).ok_or(MergeError::Damaged("its settings"))?;
        Ok((run, app))
    }

    /// The tables of a state.
    pub(super) fn tables(&self) -> Result<Vec<&'static Schema>, MergeError> {
        let on = self.analyses.join(",").parse();
        let &Self { by_time, timed, reverse_paths, .. } = self;
        on.map(|on| tables_of(saved(on), Content { by_time, timed, reverse_paths }))
            .map_err(|_| MergeError::Damaged("its analyses"))
    }

    /// Checks that live flows get their applications from the list that ended ones got theirs from.
    pub(crate) fn check_names(&self, names: &Names) -> Result<(), MergeError> {
        let (own, other) = (&self.names, names.digest());
        let on = self.analyses.join(",").parse::<Analyses>();
        if *own == other || !on.is_ok_and(|on| on.need_labels()) {
            return Ok(());
        }
        Err(MergeError::Names)
    }

    /// The first setting that differs: its name, this value and the other one.
    fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let map = |settings| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(map)) => map,
            _ => serde_json::Map::new(),
        };
        let (own, other) = (map(self), map(other));
        let name =
            own.keys().chain(other.keys()).find(|name| own.get(*name) != other.get(*name))?;
        let [own, other] = [&own, &other].map(|settings| match settings.get(name) {
            Some(value) => value.to_string(),
            None => "not set".to_owned(),
        });
        Some((name.clone(), own, other))
    }
}

/// A run in a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AnyRun")]
pub struct Run {
    /// The name of the machine or link.
    pub probe: String,
    /// Its parts in the state: apart from each other, in order.
    pub parts: Vec<Span>,
    /// Whether the last of them is the end of the run.
    pub ended: bool,
    /// Whether a stop was requested before the end of the files that it read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A run in any version.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyRun {
    /// In version 1 runs had no parts.
    Whole(String),
    Parts {
        probe: String,
        parts: Vec<Span>,
        ended: bool,
        /// Absent in older states, and in those of runs that were not interrupted.
        #[serde(default)]
        interrupted: bool,
    },
}

impl From<AnyRun> for Run {
    fn from(run: AnyRun) -> Self {
        match run {
            AnyRun::Whole(probe) => {
                let span = Span { first: 0, last: 0, from_ns: 0, until_ns: 0 };
                Self { probe, parts: vec![span], ended: true, interrupted: false }
            }
            AnyRun::Parts { probe, parts, ended, interrupted } => {
                Self { probe, parts, ended, interrupted }
            }
        }
    }
}

/// Most bytes of a probe's name, and most spans of a run in one state.
pub const MOST_PROBE: usize = 255;
const MOST_SPANS: usize = 65_536;

/// Successive parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The number of the first one; a run begins with 0.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// When they began, in packet time, nanoseconds since 1970.
    pub from_ns: u64,
    /// When they ended.
    pub until_ns: u64,
}

/// Whether a text can be the name of a probe: short, and without control characters.
pub fn is_probe(name: &str) -> bool {
    name.len() <= MOST_PROBE && !name.contains(char::is_control)
}

impl Span {
    /// The number of parts.
    pub fn parts(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

impl Run {
    /// The number of the last part.
    pub(super) fn last(&self) -> Option<u64> {
        self.parts.last().map(|span| span.last)
    }

    /// The parts that are missing before the last one, as their first and last number, and the times around them.
    pub fn missing(&self) -> Vec<Span> {
        let mut missing = Vec::new();
        let (mut next, mut from_ns) = (0, 0);
        for span in &self.parts {
            if let Some(last) = span.first.checked_sub(1).filter(|&last| last >= next) {
                missing.push(Span { first: next, last, from_ns, until_ns: span.from_ns });
            }
            (next, from_ns) = (span.last.saturating_add(1), span.until_ns);
        }
        missing
    }

    /// Whether the state has all parts of the run.
    pub fn is_whole(&self) -> bool {
        self.ended && matches!(self.parts[..], [Span { first: 0, .. }])
    }

    /// Whether the name can be printed, and the parts are in order and do not touch.
    fn is_sound(&self) -> bool {
        let touch = |pair: &[Span]| pair[0].last.saturating_add(1) >= pair[1].first;
        self.parts.iter().all(|span| span.first <= span.last)
            && (1..=MOST_SPANS).contains(&self.parts.len())
            && is_probe(&self.probe)
            && !self.parts.windows(2).any(touch)
    }

    /// Adds the parts of another state; false if a part is in both.
    fn merge(&mut self, other: &Self) -> bool {
        // A run has one end.
        let both_ended = self.ended && other.ended;
        let (last, other_last) = (self.last(), other.last());
        let beyond = self.ended && other_last > last || other.ended && last > other_last;
        self.parts.extend_from_slice(&other.parts);
        self.parts.sort_unstable_by_key(|span| span.first);
        let mut merged: Vec<Span> = Vec::with_capacity(self.parts.len());
        for span in &self.parts {
            match merged.last_mut() {
                Some(before) if before.last >= span.first => return false,
                Some(before) if before.last + 1 == span.first => {
                    (before.last, before.until_ns) = (span.last, span.until_ns);
                }
                _ => merged.push(*span),
            }
        }
        self.parts = merged;
        self.ended |= other.ended;
        self.interrupted |= other.interrupted;
        !both_ended && !beyond
    }
}

/// How a run ended.
#[derive(Clone, Copy)]
pub(crate) struct RunEnd {
    /// Whether a stop was requested before the end of its files.
    pub(crate) interrupted: bool,
}

/// The header of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The settings of all runs.
    pub settings: Settings,
    /// The runs, by their numbers in 16 hexadecimal digits.
    pub runs: BTreeMap<String, Run>,
    /// The latest packet time, nanoseconds since 1970.
    pub until_ns: u64,
    /// Losses for lack of memory, with their numbers; empty if the state is exact.
    pub lacks: BTreeMap<String, u64>,
}

/// Why states cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The states were made with other settings.
    #[error(
        "the states were made with different settings: {name} is {one} in the first and {other} in this one"
    )]
    Settings {
        /// The name of the setting.
        name: String,
        /// Its value in the first state.
        one: String,
        /// Its value in this one.
        other: String,
    },
    /// The states were made with another list of names or ports than that of the report.
    #[error(
        "the states were made with another list of names: use the same --names and --port-labels"
    )]
    Names,
    /// One part of a run is in two of the states.
    #[error("the same run of probe {0:?} is in two of the states, and it counts once")]
    Twice(String),
    /// The contents of a state are impossible.
    #[error("the state is damaged: {0}")]
    Damaged(&'static str),
    /// Reading or writing a state failed.
    #[error(transparent)]
    State(#[from] ringtap_state::Error),
    /// One of several states is the cause.
    #[error("{}: {error}", named(*.input, .probe))]
    Input {
        /// The position of the state, from 0.
        input: usize,
        /// The names of its probes; empty if they are not known.
        probe: String,
        /// The error.
        error: Box<MergeError>,
    },
    /// The settings are too large for the memory.
    #[error(transparent)]
    Plan(#[from] ringtap_engine::PlanError),
    /// A table does not fit in this number of bytes.
    #[error("the table has more than {0} bytes, a quarter of the machine's memory")]
    NoRoom(u64),
}

/// The name of a state without a path.
fn named(input: usize, probe: &str) -> String {
    let number = input + 1;
    if probe.is_empty() { format!("state {number}") } else { format!("state {number} of {probe}") }
}

impl MergeError {
    /// Adds the position of the state to the error.
    pub(super) fn of(self, input: usize) -> Self {
        match self {
            Self::Input { .. } => self,
            other => Self::Input { input, probe: String::new(), error: Box::new(other) },
        }
    }
}

impl From<ringtap_state::ImageError> for MergeError {
    fn from(error: ringtap_state::ImageError) -> Self {
        Self::State(error.error).of(error.image)
    }
}

impl Header {
    /// The header of a part of a run; with `end`, of the last one.
    pub(super) fn of(
        plan: &Plan<Options>,
        span: Span,
        end: Option<RunEnd>,
        until_ns: u64,
        lacks: BTreeMap<String, u64>,
    ) -> Result<Self, MergeError> {
        let identity = plan.app.state.as_ref().ok_or(MergeError::Damaged("the run has none"))?;
        let run = Run {
            probe: identity.probe.clone(),
            parts: vec![span],
            ended: end.is_some(),
            interrupted: end.is_some_and(|end| end.interrupted),
        };
        let runs = BTreeMap::from([(format!("{:016x}", identity.run), run)]);
        Ok(Self { settings: Settings::of(plan), runs, until_ns, lacks })
    }

    /// Whether it has all parts of its runs.
    pub(crate) fn is_whole(&self) -> bool {
        self.runs.values().all(Run::is_whole)
    }

    /// What a report of it is of.
    pub(super) fn scope(&self) -> Scope {
        match (self.settings.by_time, self.is_whole()) {
            (false, _) => Scope::Run,
            (true, true) => Scope::WholeRuns,
            (true, false) => Scope::SomeParts,
        }
    }

    /// The names of its probes, for people.
    pub(super) fn probes(&self) -> String {
        let mut names: Vec<_> = self.runs.values().map(|run| run.probe.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        match names.len() {
            0..4 => names.join(", "),
            more => format!("{} and {} more", names[..2].join(", "), more - 2),
        }
    }

    /// Reads a header.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(bytes: &[u8]) -> Result<Self, MergeError> {
        let header: Self =
            serde_json::from_slice(bytes).map_err(|_| MergeError::Damaged("its header"))?;
        let numbered = |id: &String| {
            u64::from_str_radix(id, 16).is_ok_and(|number| format!("{number:016x}") == *id)
        };
        if header.runs.keys().all(numbered) && header.runs.values().all(Run::is_sound) {
            Ok(header)
        } else {
            Err(MergeError::Damaged("its runs"))
        }
    }

    /// Whether a run was interrupted before the end of its files.
    pub fn is_interrupted(&self) -> bool {
        self.runs.values().any(|run| run.interrupted)
    }

    /// The runs of which a merged header has a later part, sorted.
    pub(super) fn superseded(&self, merged: &Self) -> Vec<u64> {
        let later = |(number, run): &(&String, &Run)| {
            merged.runs.get(*number).is_some_and(|merged| merged.last() > run.last())
        };
        let number = |(number, _): (&String, &Run)| u64::from_str_radix(number, 16).ok();
        self.runs.iter().filter(later).filter_map(number).collect()
    }

    /// The header of a merged state.
    ///
    /// # Errors
    /// If the other state cannot be merged with this one.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if let Some((name, one, other)) = self.settings.difference(&other.settings) {
            return Err(MergeError::Settings { name, one, other });
        }
        for (number, run) in &other.runs {
            let Some(own) = self.runs.get_mut(number) else {
                self.runs.insert(number.clone(), run.clone());
                continue;
            };
            if !own.merge(run) {
                return Err(MergeError::Twice(run.probe.clone()));
            }
        }
        self.until_ns = self.until_ns.max(other.until_ns);
        for (what, number) in &other.lacks {
            let own = self.lacks.entry(what.clone()).or_default();
            *own = own.saturating_add(*number);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_first_version_are_whole() {
        let read = |text: &str| serde_json::from_str::<Run>(text).unwrap();
        let old = read(r#""a""#);
        assert_eq!(
            old,
            read(
                r#"{"probe":"a","parts":[{"first":0,"last":0,"from_ns":0,"until_ns":0}],"ended":true}"#
            )
        );
        assert_eq!((old.missing(), old.is_sound()), (vec![], true));
    }

    fn run(parts: &[[u64; 2]], ended: bool) -> Run {
        let span = |&[first, last]: &[u64; 2]| Span { first, last, from_ns: first, until_ns: last };
        let parts = parts.iter().map(span).collect();
        Run { probe: "a".into(), parts, ended, interrupted: false }
    }

    #[test]
    fn a_merge_keeps_that_a_run_was_interrupted_and_older_states_say_nothing_of_it() {
        let interrupted = Run { interrupted: true, ..run(&[[1, 1]], true) };
        let mut all = run(&[[0, 0]], false);
        assert!(all.merge(&interrupted));
        assert!(all.interrupted);
        let text = |run: &Run| serde_json::to_string(run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text(&all)).unwrap(), all);
        let old = run(&[[0, 0]], true);
        assert!(!text(&old).contains("interrupted"));
        assert_eq!(serde_json::from_str::<Run>(&text(&old)).unwrap(), old);
    }

    #[test]
    fn parts_are_joined_in_any_order_and_count_once() {
        let numbers =
            |run: &Run| run.parts.iter().map(|own| [own.first, own.last]).collect::<Vec<_>>();
        let mut all = run(&[[4, 6]], true);
        assert!(all.merge(&run(&[[0, 0], [2, 2]], false)));
        assert_eq!((numbers(&all), all.missing().len()), (vec![[0, 0], [2, 2], [4, 6]], 2));
        assert!(all.merge(&run(&[[1, 1]], false)) && all.merge(&run(&[[3, 3]], false)));
        assert_eq!((numbers(&all), all.ended), (vec![[0, 6]], true));
        for twice in [[0, 0], [6, 6], [5, 9], [7, 7]] {
            assert!(
                !all.clone().merge(&run(&[twice], false)),
                "{twice:?}: there, or after the end"
            );
        }
        let end = run(&[[0, u64::MAX]], false);
        assert!(end.is_sound() && !end.clone().merge(&run(&[[u64::MAX, u64::MAX]], false)));
    }

    #[test]
    fn impossible_runs_are_not_sound() {
        for parts in [&[][..], &[[1, 0]], &[[0, 1], [2, 2]], &[[3, 3], [1, 1]]] {
            assert!(!run(parts, true).is_sound(), "{parts:?}");
        }
        assert!(!is_probe("a\nb") && !is_probe(&"a".repeat(256)) && is_probe("site/1, ä"));
    }
}
