//! Advice: which design to take on this machine for this traffic, by trying all of them.
//!
//! Every design runs over the same sample, again and again in turn with the others, so that whatever else the machine
//! does meanwhile falls on all alike; the median counts.

use ringtap_measure::{Kind, State};
use ringtap_skeleton::RunError;
use serde::Serialize;

use super::{Design, MeasureError, MeasurePlan, MeasureRequest, Sample, run_sample};
use crate::{Machine, Watch};

/// Rounds over all designs.
const ROUNDS: usize = 5;
/// Packets of a run: a tenth of a second or less for most.
const PACKETS: u64 = 500_000;

/// A design that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    #[serde(serialize_with = "crate::request::display")]
    pub design: Design,
    #[serde(serialize_with = "crate::request::display")]
    pub state: State,
    #[serde(serialize_with = "crate::request::display")]
    pub structure: Kind,
    /// Packets a second, median of the rounds.
    pub packets_per_second: u64,
    /// To count a packet, median of the rounds.
    pub processing_ns_mean: f64,
    pub memory_bytes: u64,
    /// Against the exact answer, in a run that is not timed.
    pub f1: f64,
}

/// What is recommended, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Fastest first.
    pub tried: Vec<Tried>,
    /// Which of them: an index.
    pub recommended: usize,
    pub reasons: Vec<String>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    #[error(transparent)]
    Request(#[from] MeasureError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("no packets to try the designs on")]
    NoPackets,
    #[error("stopped before all designs were tried")]
    Stopped,
}

/// Tries the designs on a sample. What the request leaves open is tried; what it says is kept.
pub fn advise(
    request: &MeasureRequest,
    machine: &Machine,
    sample: &Sample,
    watch: &Watch,
) -> Result<Advice, AdviceError> {
    if sample.is_empty() {
        return Err(AdviceError::NoPackets);
    }
    let packets = PACKETS.max(sample.len()).min(4 * PACKETS);
    let mut trials = plans(request, machine)?;
    for _ in 0..ROUNDS {
        for trial in &mut trials {
            let outcome = run_sample(&trial.plan, sample, packets, watch)?;
            if watch.stopped() {
                return Err(AdviceError::Stopped);
            }
            let report = &outcome.merged.report;
            trial.rates.push(outcome.performance.packets_per_second as f64);
            trial.times.push(report.processing_ns_mean.unwrap_or(0.0));
            trial.memory_bytes = report.memory_bytes;
        }
    }
    let mut tried = Vec::new();
    for mut trial in trials {
        trial.plan.settings.check = true;
        let checked = run_sample(&trial.plan, sample, sample.len(), watch)?;
        let f1 = checked.merged.report.accuracy.map_or(0.0, |accuracy| accuracy.f1);
        let MeasurePlan { design, settings, .. } = &trial.plan;
        tried.push(Tried {
            design: *design,
            state: settings.state,
            structure: settings.structure,
            packets_per_second: median(&mut trial.rates) as u64,
            processing_ns_mean: median(&mut trial.times),
            memory_bytes: trial.memory_bytes,
            f1,
        });
    }
    tried.sort_by_key(|one| std::cmp::Reverse(one.packets_per_second));
    Ok(recommend(tried))
}

struct Trial {
    plan: MeasurePlan,
    rates: Vec<f64>,
    times: Vec<f64>,
    memory_bytes: u64,
}

fn plans(request: &MeasureRequest, machine: &Machine) -> Result<Vec<Trial>, AdviceError> {
    let designs =
        request.design.map_or(vec![Design::Sync, Design::Async, Design::Rss], |one| vec![one]);
    let states = request.state.map_or(State::ALL.to_vec(), |one| vec![one]);
    let structures = request
        .structure
        .map_or(vec![Kind::Sht, Kind::Cms, Kind::Mg, Kind::Ss, Kind::Mv], |one| vec![one]);
    let mut trials = Vec::new();
    for &structure in &structures {
        for &state in states.iter().filter(|&&state| possible(structure, state, request)) {
            for &design in &designs {
                let mut request = MeasureRequest {
                    design: Some(design),
                    state: Some(state),
                    structure: Some(structure),
                    check: false,
                    rate: None,
                    ..request.clone()
                };
                if design != Design::Rss {
                    request.run.queues = None;
                }
                let plan = MeasurePlan::new(request, machine)?;
                trials.push(Trial { plan, rates: Vec::new(), times: Vec::new(), memory_bytes: 0 });
            }
        }
    }
    Ok(trials)
}

/// Whether there is such a thing; if just that was asked for, the plan shall say why there is not.
fn possible(structure: Kind, state: State, request: &MeasureRequest) -> bool {
    let asked = request.state.is_some() && request.structure.is_some();
    state == State::Separate || Kind::SHARED.contains(&structure) || asked
}

/// The fastest of those that can list heavy keys and find nearly all; then what the paper says, by our own figures.
fn recommend(tried: Vec<Tried>) -> Advice {
    let best_f1 =
        tried.iter().filter(|one| one.structure.keeps_keys()).map(|one| one.f1).fold(0.0, f64::max);
    let good = |one: &Tried| one.structure.keeps_keys() && one.f1 >= best_f1 - 0.02;
    let recommended = tried.iter().position(good).unwrap_or(0);
    let one = &tried[recommended];
    let mut reasons = vec![format!(
        "{}-{}-{} is the fastest of those that list heavy keys with an F1 within 0.02 of the best ({:.3}): {:.1} M packets/s",
        one.design,
        one.state,
        one.structure,
        best_f1,
        one.packets_per_second as f64 / 1e6
    )];
    let with = |design: Design, state: State| {
        let same = |other: &&Tried| {
            (other.design, other.state, other.structure) == (design, state, one.structure)
        };
        tried.iter().find(same)
    };
    if let (Some(separate), Some(shared)) =
        (with(one.design, State::Separate), with(one.design, State::Shared))
    {
        reasons.push(format!(
            "separate structures need {:.1} ns a packet, a shared one {:.1}: cores that share counters wait for each other's cache lines",
            separate.processing_ns_mean, shared.processing_ns_mean
        ));
    }
    if let (Some(rss), Some(master)) =
        (with(Design::Rss, one.state), with(Design::Async, one.state))
    {
        reasons.push(format!(
            "rss makes {:.2} times the rate of async: no core only hands out packets; without queues of the card async comes next",
            rss.packets_per_second as f64 / master.packets_per_second.max(1) as f64
        ));
    }
    if let (Some(master), Some(sync)) =
        (with(Design::Async, one.state), with(Design::Sync, one.state))
    {
        reasons.push(format!(
            "async makes {:.2} times the rate of sync, whose master waits for the slowest worker of each batch",
            master.packets_per_second as f64 / sync.packets_per_second.max(1) as f64
        ));
    }
    if one.structure == Kind::Sht {
        reasons.push(
            "sht gives no bound for keys that it lost: where one is needed take mg or mv".into(),
        );
    }
    Advice { tried, recommended, reasons }
}

/// Of at least one.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
