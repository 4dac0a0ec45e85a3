//! Advice: the best design on this machine for this traffic, by measuring all of them.
//!
//! All designs run interleaved over the same sample, so that other load on the machine affects all
//! alike; medians count.

use ringtap_engine::{Machine, Plan, Watch};
use ringtap_skeleton::RunError;
use serde::Serialize;

use super::options::{Options, plan};
use super::{Design, MeasureError, Sample, run_sample};
use crate::{Kind, Settings, State};

/// Rounds over all designs.
const ROUNDS: usize = 5;
/// Packets of a run: at most a tenth of a second for most designs.
const PACKETS: u64 = 500_000;

/// A design that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The distribution of packets.
    #[serde(serialize_with = "ringtap_engine::display")]
    pub design: Design,
    /// Separate structures or a shared one.
    #[serde(serialize_with = "ringtap_engine::display")]
    pub state: State,
    /// The structure.
    #[serde(serialize_with = "ringtap_engine::display")]
    pub structure: Kind,
    /// Packets a second, median of the rounds.
    pub packets_per_second: u64,
    /// Time to count a packet, median of the rounds.
    pub processing_ns_mean: f64,
    /// Memory of all structures.
    pub memory_bytes: u64,
    /// F1 against the exact answer, in a run that is not timed.
    pub f1: f64,
}

/// The recommendation, with reasons.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Designs, fastest first.
    pub tried: Vec<Tried>,
    /// Index of the recommended design.
    pub recommended: usize,
    /// Why this design, one sentence each.
    pub reasons: Vec<String>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    /// The options are invalid.
    #[error(transparent)]
    Request(#[from] MeasureError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The sample is empty.
    #[error("the sample has no packets: use a source with packets")]
    NoPackets,
    /// The run was stopped.
    #[error("stopped before all designs were tried")]
    Stopped,
}

/// Choices that are not varied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed {
    /// The design is given.
    pub design: bool,
    /// The state is given.
    pub state: bool,
    /// The structure is given.
    pub structure: bool,
}

/// Measures the designs on a sample. `fixed` choices are those of the options.
pub fn advise(
    run: &ringtap_engine::Options,
    options: &Options,
    fixed: Fixed,
    machine: &Machine,
    sample: &Sample,
    watch: &Watch,
) -> Result<Advice, AdviceError> {
    if sample.is_empty() {
        return Err(AdviceError::NoPackets);
    }
    let packets = PACKETS.max(sample.len()).min(4 * PACKETS);
    let mut trials = plans(run, options, fixed, machine)?;
    for _ in 0..ROUNDS {
        for trial in &mut trials {
            let outcome = run_sample(&trial.plan, sample, packets, watch)?;
            if watch.stopped() {
                return Err(AdviceError::Stopped);
            }
            let report = &outcome.merged.report;
            trial.rates.push(outcome.run.performance.packets_per_second as f64);
            trial.times.push(report.processing_ns_mean.unwrap_or(0.0));
            trial.memory_bytes = report.memory_bytes;
        }
    }
    let mut tried = Vec::new();
    for mut trial in trials {
        trial.plan.app.settings.check = true;
        let checked = run_sample(&trial.plan, sample, sample.len(), watch)?;
        let f1 = checked.merged.report.accuracy.map_or(0.0, |accuracy| accuracy.f1);
        let Options { design, settings, .. } = trial.plan.app;
        tried.push(Tried {
            design,
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
    plan: Plan<Options>,
    rates: Vec<f64>,
    times: Vec<f64>,
    memory_bytes: u64,
}

fn plans(
    run: &ringtap_engine::Options,
    options: &Options,
    fixed: Fixed,
    machine: &Machine,
) -> Result<Vec<Trial>, AdviceError> {
    let requested = &options.settings;
    let designs = if fixed.design {
        vec![options.design]
    } else {
        vec![Design::Sync, Design::Async, Design::Rss]
    };
    let states = if fixed.state { vec![requested.state] } else { State::ALL.to_vec() };
    let structures = if fixed.structure {
        vec![requested.structure]
    } else {
        vec![Kind::Sht, Kind::Cms, Kind::Mg, Kind::Ss, Kind::Mv]
    };
    // If exactly that was requested, the plan returns the error.
    let possible = |structure, state| {
        state == State::Separate
            || Kind::SHARED.contains(&structure)
            || fixed.state && fixed.structure
    };
    let mut trials = Vec::new();
    for &structure in &structures {
        for &state in states.iter().filter(|&&state| possible(structure, state)) {
            for &design in &designs {
                let settings = Settings { structure, state, check: false, ..*requested };
                let mut run = run.clone();
                if design != Design::Rss {
                    run.queues = None;
                }
                let plan = plan(run, Options { design, rate: None, settings }, machine)?;
                trials.push(Trial { plan, rates: Vec::new(), times: Vec::new(), memory_bytes: 0 });
            }
        }
    }
    Ok(trials)
}

/// The fastest design that lists heavy keys and finds nearly all; then the paper's ratios, by our
/// figures.
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
            "rss reaches {:.2} times the rate of async: no core only dispatches; without card queues async is next",
            rss.packets_per_second as f64 / master.packets_per_second.max(1) as f64
        ));
    }
    if let (Some(master), Some(sync)) =
        (with(Design::Async, one.state), with(Design::Sync, one.state))
    {
        reasons.push(format!(
            "async reaches {:.2} times the rate of sync, whose master waits for the slowest worker of each batch",
            master.packets_per_second as f64 / sync.packets_per_second.max(1) as f64
        ));
    }
    if one.structure == Kind::Sht {
        reasons
            .push("sht has no bound for keys that it lost: if you need one, use mg or mv".into());
    }
    Advice { tried, recommended, reasons }
}

/// The median of at least one value.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
