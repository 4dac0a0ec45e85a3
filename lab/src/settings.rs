//! The settings of an experiment: each candidate at each point of its sweep.

use std::collections::BTreeMap;

use crate::LabError;
use crate::experiment::{
    Candidate, Claim, Experiment, OneOrMore, Parameters, Point, Reading, Selector, Sweep, Value,
};
use crate::machine::{Machine, Place, Placement};
use crate::template;

/// A candidate with its parameters. Trials of one setting differ only in their seed.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Name of the candidate.
    pub candidate: String,
    /// Parameters from the sweep and from `set`, as text.
    pub parameters: BTreeMap<String, String>,
    /// Number of busy threads.
    pub threads: usize,
    /// Neither plotted nor listed.
    pub probe: bool,
    /// Calculated rather than measured.
    pub modelled: bool,
    pub(crate) command: String,
    pub(crate) values: BTreeMap<String, Reading>,
    pub(crate) equal: Vec<String>,
    pub(crate) sane: BTreeMap<String, String>,
    /// The number of queues that a prediction is for; its trials have one.
    pub(crate) queues: Option<f64>,
}

/// Values for a trial's command besides the parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context<'a> {
    pub(crate) cores: &'a [usize],
    pub(crate) seed: u64,
    /// Folder of the traffic files.
    pub(crate) traffic: &'a str,
    /// Folder for files that the trial writes.
    pub(crate) scratch: &'a str,
}

/// All settings of `experiment`, in the order of the candidates.
pub fn settings(experiment: &Experiment, quick: bool) -> Result<Vec<Setting>, LabError> {
    let effort = experiment.effort(quick);
    let mut common = experiment.sweep.clone();
    common.extend(effort.sweep.clone());
    let mut settings = Vec::new();
    for candidate in &experiment.candidates {
        let mut own = candidate.sweep.clone().unwrap_or_else(|| common.clone());
        // The points of a quick run, as far as the candidate has this parameter.
        for (name, points) in &effort.sweep {
            own.entry(name.clone()).and_modify(|all| points.clone_into(all));
        }
        for point in crossed(&own) {
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
        threads +=
            part.parse::<usize>().map_err(|_| format!("invalid number of threads {part:?}"))?;
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
        modelled: candidate.modelled,
        command: candidate.command.as_ref().unwrap_or(&experiment.command).clone(),
        values,
        equal: candidate.equal.as_ref().unwrap_or(&experiment.equal).clone(),
        sane,
        queues: None,
    };
    // Report errors before the first trial.
    setting.check()?;
    Ok(setting)
}

/// All combinations of points.
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
    /// The cores for its threads on `machine`; an error if `machine` lacks suitable cores.
    pub(crate) fn placement(&self, machine: &Machine) -> Result<Placement, String> {
        self.place().and_then(|place| machine.placement(place, self.threads))
    }

    /// Whether its command and values refer to parameters that it has.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.words(&Context::default())?;
        self.place()?;
        self.values.values().try_for_each(|reading| self.per(reading).map(drop))
    }

    fn place(&self) -> Result<Place, String> {
        self.parameters.get("place").map_or(Ok(Place::Anywhere), |place| place.parse())
    }

    /// The words of the command, its program first.
    pub(crate) fn words(&self, context: &Context) -> Result<Vec<String>, String> {
        let mut known = self.parameters.clone();
        let cores: Vec<_> = context.cores.iter().map(ToString::to_string).collect();
        known.insert("cores".into(), cores.join(","));
        known.insert("seed".into(), context.seed.to_string());
        known.insert("traffic".into(), context.traffic.to_owned());
        known.insert("scratch".into(), context.scratch.to_owned());
        template::fill(&self.command, &known)
    }

    /// Whether its threads run on the cores of its placement only, mostly.
    pub(crate) fn is_pinned(&self) -> bool {
        self.command.contains("{cores}")
    }

    /// Name of its program.
    pub(crate) fn program(&self) -> &str {
        self.command.split_whitespace().next().unwrap_or_default()
    }

    /// Whether it runs the program `name`, also through the lab.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let through_lab = match name {
            "ringtap" => "ringtap-lab trial instances ",
            "ringtap-ndn" => "ringtap-lab ndn live ",
            _ => return self.program() == name,
        };
        self.program() == name || self.command.starts_with(through_lab)
    }

    /// Whether its program is one of this project.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.program(), "ringtap" | "ringtap-ndn" | "ringtap-lab")
    }

    /// Whether it is judged by a value that is the same on fewer cores than threads.
    pub(crate) fn is_judged_anywhere(&self) -> bool {
        self.values.values().any(|reading| reading.any_cores)
    }

    /// The share of packets that its queues drop, if one queue drops the share `value`: each counts what that one
    /// counted. Without queues the value itself.
    pub(crate) fn of_queues(&self, value: f64) -> f64 {
        self.queues.map_or(value, |queues| (1.0 - queues * (1.0 - value)).max(0.0))
    }

    /// The value of the parameter `reading.per` (the dividend), if there is one.
    pub(crate) fn per(&self, reading: &Reading) -> Result<Option<f64>, String> {
        let Some(name) = &reading.per else { return Ok(None) };
        let value =
            self.parameters.get(name).ok_or_else(|| format!("missing parameter {name:?}"))?;
        template::number(value).map(Some).ok_or_else(|| format!("invalid number {value:?}"))
    }
}

impl Selector {
    /// Whether a setting has the candidate and parameters of the selector.
    pub(crate) fn fits(&self, candidate: &str, parameters: &BTreeMap<String, String>) -> bool {
        self.wanted.iter().all(|(name, values)| {
            let has = match name.as_str() {
                "candidate" => Some(candidate),
                name => parameters.get(name).map(String::as_str),
            };
            has.is_some_and(|has| values.values().iter().any(|value| value.to_string() == has))
        })
    }

    /// The same selector with the additional condition that `name` is `value`.
    pub(crate) fn and(&self, name: &str, value: &str) -> Self {
        let mut selector = self.clone();
        selector.wanted.insert(name.to_owned(), OneOrMore::One(Value::Text(value.to_owned())));
        selector
    }
}

impl Claim {
    /// The selector of the denominator of a gain: `selector` with the parameters of `gain_over`.
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
        command = "ringtap-lab trial x n={n} name={name} size={size} rate={rate} seed={seed}"
        threads = ["{n}", 1]
        [sweep]
        n = [1, 2]
        size = [{ size = 64, rate = "14M" }, { size = 128, rate = "8M" }]
        [values.v]
        at = "/v"
        unit = "s"
        [[candidate]]
        name = "swept"
        set = { name = "a" }
        [[candidate]]
        name = "fixed"
        set = { name = "b", n = 1, size = 1, rate = 1 }
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
    fn candidates_are_combined_with_the_sweep() {
        let experiment = Experiment::parse("test", TEXT).unwrap();
        let full = settings(&experiment, false).unwrap();
        let found: Vec<_> = full
            .iter()
            .map(|setting| {
                (
                    setting.words(&Context { seed: 7, ..Context::default() }).unwrap()[3..]
                        .join(" "),
                    setting.threads,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("n=1 name=a size=64 rate=14M seed=7".to_owned(), 2),
                ("n=1 name=a size=128 rate=8M seed=7".to_owned(), 2),
                ("n=2 name=a size=64 rate=14M seed=7".to_owned(), 3),
                ("n=2 name=a size=128 rate=8M seed=7".to_owned(), 3),
                ("n=1 name=b size=1 rate=1 seed=7".to_owned(), 2),
            ]
        );
        assert_eq!(settings(&experiment, true).unwrap().len(), 3);
    }

    #[test]
    fn the_error_names_a_parameter_that_is_not_set() {
        let text = TEXT.replace("rate={rate}", "rate={speed}");
        let error = settings(&Experiment::parse("test", &text).unwrap(), true).unwrap_err();
        assert!(error.to_string().contains("speed"), "{error}");
    }
}
