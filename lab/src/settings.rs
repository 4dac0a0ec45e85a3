//! From an experiment to its settings: each candidate at each point of its sweep.

use std::collections::BTreeMap;

use crate::LabError;
use crate::experiment::{
    Candidate, Claim, Experiment, OneOrMore, Parameters, Point, Reading, Selector, Sweep, Value,
};
use crate::machine::{Machine, Place, Placement};
use crate::programs::is_own;
use crate::template;

/// What a trial is of; all trials of one differ in their seed alone.
#[derive(Clone, Debug)]
pub struct Setting {
    pub candidate: String,
    /// Swept or set, as they are written.
    pub parameters: BTreeMap<String, String>,
    /// Threads it keeps busy.
    pub threads: usize,
    /// For the model only.
    pub probe: bool,
    pub(crate) command: String,
    pub(crate) values: BTreeMap<String, Reading>,
    pub(crate) equal: Vec<String>,
    pub(crate) sane: BTreeMap<String, String>,
}

/// What a trial's command is filled in with, besides the parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings<'a> {
    pub(crate) cores: &'a [usize],
    pub(crate) seed: u64,
    /// The folder of the files of traffic.
    pub(crate) traffic: &'a str,
    /// A folder for what it writes.
    pub(crate) scratch: &'a str,
}

/// All settings of `experiment`, in the order of the candidates.
pub(crate) fn settings(experiment: &Experiment, quick: bool) -> Result<Vec<Setting>, LabError> {
    let effort = experiment.effort(quick);
    let mut common = experiment.sweep.clone();
    common.extend(effort.sweep.clone());
    let mut settings = Vec::new();
    for candidate in &experiment.candidates {
        for point in crossed(candidate.sweep.as_ref().unwrap_or(&common)) {
            let mut parameters = effort.set.clone();
            parameters.extend(candidate.set.clone());
            parameters.extend(point);
            settings.push(
                setting(experiment, candidate, &parameters).map_err(|reason| {
                    LabError::Experiment { file: experiment.id.clone(), reason }
                })?,
            );
        }
    }
    Ok(settings)
}

fn setting(
    experiment: &Experiment,
    candidate: &Candidate,
    parameters: &Parameters,
) -> Result<Setting, String> {
    let parameters: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let mut threads = 0;
    for part in candidate.threads.as_ref().unwrap_or(&experiment.threads) {
        let part = template::fill_word(&part.to_string(), &parameters)?;
        threads += part.parse::<usize>().map_err(|_| format!("{part:?} threads"))?;
    }
    let mut values = candidate.values.as_ref().unwrap_or(&experiment.values).clone();
    for reading in values.values_mut() {
        reading.at = template::fill_word(&reading.at, &parameters)?;
    }
    let mut sane = BTreeMap::new();
    for (at, wanted) in candidate.sane.as_ref().unwrap_or(&experiment.sane) {
        let wanted = template::fill_word(&wanted.to_string(), &parameters)?;
        sane.insert(template::fill_word(at, &parameters)?, wanted);
    }
    let setting = Setting {
        candidate: candidate.name.clone(),
        parameters,
        threads,
        probe: candidate.probe,
        command: candidate.command.as_ref().unwrap_or(&experiment.command).clone(),
        values,
        equal: candidate.equal.as_ref().unwrap_or(&experiment.equal).clone(),
        sane,
    };
    // Whatever is wrong with it shall be known before the first trial.
    setting.words(&Surroundings::default())?;
    setting.place()?;
    for reading in setting.values.values() {
        setting.per(reading)?;
    }
    Ok(setting)
}

/// Each combination of points.
fn crossed(sweep: &Sweep) -> Vec<Parameters> {
    sweep.iter().fold(vec![Parameters::new()], |combined, (name, points)| {
        let with = |so_far: &Parameters, point: &Point| {
            let mut parameters = so_far.clone();
            match point {
                Point::One(value) => drop(parameters.insert(name.clone(), value.clone())),
                Point::Together(values) => parameters.extend(values.clone()),
            }
            parameters
        };
        combined.iter().flat_map(|so_far| points.iter().map(move |p| with(so_far, p))).collect()
    })
}

impl Setting {
    /// Where its threads go on `machine`; an error says why that cannot be.
    pub(crate) fn placement(&self, machine: &Machine) -> Result<Placement, String> {
        self.place().and_then(|place| machine.placement(place, self.threads))
    }

    fn place(&self) -> Result<Place, String> {
        self.parameters.get("place").map_or(Ok(Place::Anywhere), |place| place.parse())
    }

    /// The command, its program first.
    pub(crate) fn words(&self, around: &Surroundings) -> Result<Vec<String>, String> {
        let mut known = self.parameters.clone();
        let cores: Vec<_> = around.cores.iter().map(ToString::to_string).collect();
        known.insert("cores".into(), cores.join(","));
        known.insert("seed".into(), around.seed.to_string());
        known.insert("traffic".into(), around.traffic.to_owned());
        known.insert("scratch".into(), around.scratch.to_owned());
        template::fill(&self.command, &known)
    }

    /// Whether its program is one of a revision's.
    pub(crate) fn is_own(&self) -> bool {
        self.command.split(' ').next().is_some_and(is_own)
    }

    /// What a reading is divided into, if it is.
    pub(crate) fn per(&self, reading: &Reading) -> Result<Option<f64>, String> {
        let Some(name) = &reading.per else { return Ok(None) };
        let value = self.parameters.get(name).ok_or_else(|| format!("there is no {name:?}"))?;
        template::number(value).map(Some).ok_or_else(|| format!("{value:?} is no number"))
    }
}

impl Selector {
    pub(crate) fn fits(&self, candidate: &str, parameters: &BTreeMap<String, String>) -> bool {
        self.wanted.iter().all(|(name, values)| {
            let has = match name.as_str() {
                "candidate" => Some(candidate),
                name => parameters.get(name).map(String::as_str),
            };
            has.is_some_and(|has| values.values().iter().any(|value| value.to_string() == has))
        })
    }

    /// The same, and `name` is `value`.
    pub(crate) fn and(&self, name: &str, value: &str) -> Self {
        let mut selector = self.clone();
        selector.wanted.insert(name.to_owned(), OneOrMore::One(Value::Text(value.to_owned())));
        selector
    }
}

impl Claim {
    /// What a gain starts from.
    pub(crate) fn base(&self, selector: &Selector) -> Selector {
        let start = self.gain_over.iter();
        start.fold(selector.clone(), |base, (name, value)| base.and(name, &value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        id = "a/b"
        paper = "p"
        figure = "Figure 1"
        title = "t"
        about = "a"
        command = "ringtap-lab trial x n={n} who={who} size={size} rate={rate} seed={seed}"
        threads = ["{n}", 1]
        [sweep]
        n = [1, 2]
        size = [{ size = 64, rate = "14M" }, { size = 128, rate = "8M" }]
        [values.v]
        at = "/v"
        unit = "s"
        [[candidate]]
        name = "us"
        set = { who = "we" }
        [[candidate]]
        name = "them"
        set = { who = "they", n = 1, size = 1, rate = 1 }
        sweep = {}
        [quick]
        repeat = 1
        sweep = { n = [1] }
        [full]
        repeat = 2
        [plot]
        kind = "lines"
        y = "v"
        y_label = "v"
        [[claim]]
        kind = "measured"
        text = "c"
        source = "s"
        paper = "p"
        because = "b"
    "#;

    #[test]
    fn candidates_are_crossed_with_the_sweep() {
        let experiment = Experiment::parse("test", TEXT).unwrap();
        let full = settings(&experiment, false).unwrap();
        let told: Vec<_> = full
            .iter()
            .map(|setting| {
                (
                    setting.words(&Surroundings { seed: 7, ..Surroundings::default() }).unwrap()
                        [3..]
                        .join(" "),
                    setting.threads,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("n=1 who=we size=64 rate=14M seed=7".to_owned(), 2),
                ("n=1 who=we size=128 rate=8M seed=7".to_owned(), 2),
                ("n=2 who=we size=64 rate=14M seed=7".to_owned(), 3),
                ("n=2 who=we size=128 rate=8M seed=7".to_owned(), 3),
                ("n=1 who=they size=1 rate=1 seed=7".to_owned(), 2),
            ]
        );
        assert_eq!(settings(&experiment, true).unwrap().len(), 3);
    }

    #[test]
    fn a_parameter_that_nobody_sets_is_named() {
        let text = TEXT.replace("rate={rate}", "rate={speed}");
        let error = settings(&Experiment::parse("test", &text).unwrap(), true).unwrap_err();
        assert!(error.to_string().contains("speed"), "{error}");
    }
}
