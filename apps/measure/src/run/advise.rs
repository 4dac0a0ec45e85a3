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
/// The share of all keys that `sht` must list to be recommended: it keeps the first key of a slot, so where it lacks many
/// keys, a heavy one that comes later is among them.
const LISTED_LEAST: f64 = 0.9;

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
    /// Of `sht`: the share of all keys of the sample that it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<f64>,
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
        let Options { design, settings, .. } = trial.plan.app;
        let mut check = |threshold, top| {
            let settings = &mut trial.plan.app.settings;
            (settings.threshold, settings.top) = (threshold, top);
            let checked = run_sample(&trial.plan, sample, sample.len(), watch)?;
            Ok::<_, RunError>(checked.merged.report.accuracy)
        };
        let f1 = check(settings.threshold, settings.top)?.map_or(0.0, |accuracy| accuracy.f1);
        let listed = match settings.structure {
            Kind::Sht => check(None, None)?.map(|accuracy| accuracy.recall),
            _ => None,
        };
        tried.push(Tried {
            design,
            state: settings.state,
            structure: settings.structure,
            packets_per_second: median(&mut trial.rates) as u64,
            processing_ns_mean: median(&mut trial.times),
            memory_bytes: trial.memory_bytes,
            f1,
            listed,
        });
    }
    tried.sort_by_key(|one| std::cmp::Reverse(one.packets_per_second));
    Ok(recommend(tried, sample.cut))
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
                let plan =
                    plan(run, Options { design, rate: None, settings, ..*options }, machine)?;
                trials.push(Trial { plan, rates: Vec::new(), times: Vec::new(), memory_bytes: 0 });
            }
        }
    }
    Ok(trials)
}

/// The fastest design that lists heavy keys and finds nearly all; then the paper's ratios, by our
/// figures. `cut`: the sample is not all of the traffic.
fn recommend(tried: Vec<Tried>, cut: bool) -> Advice {
    // Further traffic has further keys.
    let lacks_keys = |one: &Tried| one.listed.is_some_and(|share| cut || share < LISTED_LEAST);
    let lists = |one: &&Tried| one.structure.keeps_keys() && !lacks_keys(one);
    let best_f1 = tried.iter().filter(lists).map(|one| one.f1).fold(0.0, f64::max);
    let good = |one: &Tried| lists(&one) && one.f1 >= best_f1 - 0.02;
    let found = tried.iter().position(good);
    let recommended = found.unwrap_or(0);
    let one = &tried[recommended];
    let among = match found {
        Some(_) => {
            format!("those that list heavy keys with an F1 within 0.02 of the best ({best_f1:.3})")
        }
        None => "those tried, of which none lists heavy keys reliably".into(),
    };
    let mut reasons = vec![format!(
        "{}-{}-{} is the fastest of {among}: {:.1} M packets/s",
        one.design,
        one.state,
        one.structure,
        one.packets_per_second as f64 / 1e6
    )];
    if let Some(faster) = tried[..=recommended].iter().find(|one| lacks_keys(one)) {
        let of = if cut { "the first part of this traffic" } else { "this traffic" };
        reasons.push(format!(
            "{}-{}-sht lists {:.0} % of the keys of {of}: it keeps the first key of a slot and loses the others",
            faster.design,
            faster.state,
            faster.listed.unwrap_or(0.0) * 100.0
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial with this speed, F1 and share of listed keys.
    fn tried(structure: Kind, packets_per_second: u64, f1: f64, listed: Option<f64>) -> Tried {
        Tried {
            design: Design::Rss,
            state: State::Separate,
            structure,
            packets_per_second,
            processing_ns_mean: 1.0,
            memory_bytes: 1,
            f1,
            listed,
        }
    }

    fn recommended(tried: Vec<Tried>, cut: bool) -> (Kind, String) {
        let advice = recommend(tried, cut);
        (advice.tried[advice.recommended].structure, advice.reasons.join("\n"))
    }

    #[test]
    fn sht_is_recommended_only_if_it_lists_nearly_all_keys_of_all_traffic() {
        let all = |listed| {
            vec![
                tried(Kind::Cms, 9, 1.0, None),
                tried(Kind::Sht, 8, 1.0, Some(listed)),
                tried(Kind::Mv, 7, 0.9, None),
                tried(Kind::Mg, 6, 0.99, None),
            ]
        };
        let (structure, reasons) = recommended(all(1.0), false);
        assert!(structure == Kind::Sht && !reasons.contains("lists"), "{reasons}");
        let (structure, reasons) = recommended(all(0.5), false);
        assert_eq!(structure, Kind::Mg);
        assert!(reasons.contains("sht lists 50 % of the keys of this traffic"), "{reasons}");
        // Further traffic has further keys.
        let (structure, reasons) = recommended(all(1.0), true);
        assert_eq!(structure, Kind::Mg);
        assert!(reasons.contains("the first part of this traffic"), "{reasons}");
        // It was requested.
        let (structure, reasons) = recommended(vec![tried(Kind::Sht, 8, 1.0, Some(0.5))], false);
        assert!(structure == Kind::Sht && reasons.contains("lists 50 %"), "{reasons}");
        assert!(reasons.contains("none lists heavy keys reliably"), "{reasons}");
    }
}
