//! The file format of experiments: one TOML file per figure or table of a paper.
//!
//! ```toml
//! id = "rings/capacity"                   the id on the command line
//! paper = "mcringbuffer"                  its folder, with paper.toml
//! command = "ringtap-lab trial ring kind={ring} capacity={capacity} …"
//! [sweep]                                 all combinations, with each other and with the candidates
//! capacity = [100, 400, 2000]
//! [[candidate]]
//! name = "BasicRingBuffer"
//! set = { ring = "lamport" }
//! [values.throughput]                     read from the report by JSON pointer
//! at = "/items_per_second"
//! [[claim]]                               a claim of the paper: the settings, and its figure or bounds
//! effect = 2.2
//! ```
//!
//! The paper's figures are in these files only, each with its source; no code contains them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A paper that experiments are about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Title of the paper.
    pub title: String,
    /// Authors of the paper.
    pub authors: String,
    /// Where and when it was published.
    pub venue: String,
    /// A paragraph for readers who do not know the paper.
    pub introduction: String,
    /// The machine of its measurements, as far as the paper states it.
    pub machine: String,
}

/// An experiment, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Unique id, as on the command line.
    pub id: String,
    /// Key of the paper.
    pub paper: String,
    /// The figure or table in the paper: "Figure 8".
    pub figure: String,
    /// Title in reports.
    pub title: String,
    /// What is measured and how it differs from the paper, in a few sentences.
    pub about: String,
    /// The command of a trial, its program first; `{name}` is replaced by a parameter.
    pub command: String,
    /// Busy threads of a trial: the sum of these, numbers or `{name}`.
    #[serde(default = "one_thread")]
    pub threads: Vec<Value>,
    /// Seconds after which a trial is killed.
    #[serde(default = "minute")]
    pub time_limit: u64,
    /// Files that are generated before the first trial.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    /// The parameters that are varied.
    #[serde(default)]
    pub sweep: Sweep,
    /// The programs or settings that are compared.
    #[serde(rename = "candidate")]
    pub candidates: Vec<Candidate>,
    /// Numbers to read from each trial.
    pub values: BTreeMap<String, Reading>,
    /// JSON pointers whose values must be equal in all trials with equal parameters `equal_by`.
    #[serde(default)]
    pub equal: Vec<String>,
    /// Parameters that are equal in the trials compared by `equal`.
    #[serde(default)]
    pub equal_by: Vec<String>,
    /// JSON pointers and their required values; a trial with other values has failed.
    #[serde(default)]
    pub sane: BTreeMap<String, Value>,
    /// Rounds and points of a quick run.
    pub quick: Effort,
    /// Rounds and points of a full run.
    pub full: Effort,
    /// The figure.
    pub plot: Plot,
    /// Figures that the paper's text or tables print.
    #[serde(default, rename = "paper_value")]
    pub paper_values: Vec<PaperValue>,
    /// The claims of the paper.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// How settings with several threads are predicted from trials on one core.
    pub prediction: Option<Prediction>,
}

/// Rounds and points of a quick or a full run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Number of counted trials of each setting.
    pub repeat: u32,
    /// Whether each setting first runs once, checked but not counted.
    #[serde(default = "yes")]
    pub warm_up: bool,
    /// Parameters of every command.
    #[serde(default)]
    pub set: Parameters,
    /// Points that replace those of the experiment's sweep, by parameter.
    #[serde(default)]
    pub sweep: Sweep,
}

/// One of the programs or configurations that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub name: String,
    #[serde(default)]
    pub set: Parameters,
    /// Replaces the experiment's sweep; an empty table sweeps nothing.
    pub sweep: Option<Sweep>,
    /// Replaces the experiment's command, like the following fields.
    pub command: Option<String>,
    pub threads: Option<Vec<Value>>,
    pub values: Option<BTreeMap<String, Reading>>,
    pub equal: Option<Vec<String>>,
    pub sane: Option<BTreeMap<String, Value>>,
    /// Measured for a prediction or a single claim: neither plotted nor listed.
    #[serde(default)]
    pub probe: bool,
    /// Its values are computed, not measured; the figure marks them.
    #[serde(default)]
    pub modelled: bool,
}

/// A generated traffic file. `{traffic}` is its folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub file: String,
    /// The command that writes it, without the file name; its parameters are those of the effort.
    pub command: String,
}

/// How a number of a trial is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// A JSON pointer into the report, or `@seconds`: the run time of the process; of a prediction also `@busiest`.
    /// Parameters are replaced.
    pub at: String,
    pub unit: String,
    #[serde(default = "unscaled")]
    pub scale: f64,
    /// The value is this parameter (with k, M or G) divided by what was read: packets per second
    /// from seconds, for example.
    pub per: Option<String>,
    /// The value is the same on fewer cores than threads (memory, or what a cache found), so settings with
    /// more threads than cores are judged by it, too.
    #[serde(default)]
    pub any_cores: bool,
}

/// How a full run predicts settings with several threads from trials on one core (`prediction.rs`).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The model and its assumptions, in a few sentences.
    pub text: String,
    /// The value that is predicted.
    pub quantity: String,
    /// How the predicted value is read from a trial on one core. `@busiest` is the processor time of the thread
    /// that used most, in seconds.
    pub reading: Reading,
    /// The command of that trial, if it is not the setting's own.
    pub command: Option<String>,
    /// Trials read the share of packets that one queue drops. This parameter is the number of queues, each of
    /// which counts as many packets as that one.
    pub queues: Option<String>,
    /// The settings that are predicted; all, if it is missing.
    #[serde(default)]
    pub of: Vec<Selector>,
    /// Trials of each setting. A claim about a best of several settings needs six.
    #[serde(default = "six")]
    pub rounds: u32,
}

/// Parameters by name.
pub(crate) type Parameters = BTreeMap<String, Value>;
/// The points of each parameter.
pub(crate) type Sweep = BTreeMap<String, Vec<Point>>;

/// One value of a swept parameter, or several parameters that change together.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Point {
    One(Value),
    Together(Parameters),
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Integer(i64),
    Float(f64),
    Flag(bool),
    Text(String),
}

/// The contents and axes of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    pub kind: PlotKind,
    /// The value on the vertical axis.
    pub y: String,
    pub y_label: String,
    /// The parameter on the horizontal axis; none for bars, one of which each candidate has.
    pub x: Option<String>,
    pub x_label: Option<String>,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
    /// A panel for each value of this parameter.
    pub panels: Option<String>,
    /// A line for each value of this parameter, besides one for each candidate.
    pub lines: Option<String>,
    /// Values are shown as multiples of the same line's value at this value of the parameter `x`.
    pub relative_to: Option<Value>,
}

/// The type of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// Lines over a numeric parameter.
    Lines,
    /// Bars, one group for each value.
    Bars,
}

/// A figure that the paper prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperValue {
    pub candidate: String,
    #[serde(default)]
    pub at: Parameters,
    pub quantity: String,
    pub value: f64,
    /// The value is a multiple, as the figure shows it, not the quantity itself.
    #[serde(default)]
    pub relative: bool,
}

/// A claim of the paper, our figure for it, and the paper's figure or the bounds that decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub text: String,
    pub kind: ClaimKind,
    /// Section, figure, page.
    pub source: String,
    /// The paper's figure, as the paper prints it.
    pub paper: String,
    /// One of the experiment's values; none for a claim that results are equal.
    pub quantity: Option<String>,
    /// The settings whose value is judged (the numerator).
    #[serde(default)]
    pub of: Selector,
    /// The settings of the denominator; without it the value itself is judged.
    pub to: Option<Selector>,
    /// The quantity of the denominator, if it is not `quantity`.
    pub over: Option<String>,
    /// Both values are first divided by the value of the same setting with these parameters, so
    /// that gains are compared.
    #[serde(default)]
    pub gain_over: BTreeMap<String, Value>,
    /// The claim is judged at each value of this parameter and must hold at all.
    pub each: Option<String>,
    /// The paper's figure as a ratio: 2.7 for a gain, 0.41 for a reduction. Half of the gain is
    /// reproduced, twice the gain is stronger (`bounds.rs`). If the paper prints several, the least.
    pub effect: Option<f64>,
    /// Lower bound of a reproduced figure, for a claim without `effect`.
    pub at_least: Option<f64>,
    /// Upper bound of a reproduced figure, for a claim without `effect`.
    pub at_most: Option<f64>,
    /// The reason for the bounds; with `effect` only what limits the paper's figure.
    #[serde(default)]
    pub because: String,
    /// Marks settings that cannot decide the claim.
    pub saturated: Option<Saturation>,
    /// Unit printed after our figure: ×, cycles, …
    #[serde(default = "times")]
    pub unit: String,
    /// Whether the experiment's prediction says anything of it. A model without lines that move between caches says nothing
    /// of rings.
    #[serde(default = "yes")]
    pub predicted: bool,
}

/// A setting is saturated if the median of `quantity` is above this limit. For example, a full queue
/// has the delay of its length, and a generator that falls behind offers less, whatever is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saturation {
    pub quantity: String,
    pub above: f64,
}

/// What kind of statement a claim is. Only verdicts on measured claims are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Compares settings that were measured here, and could have come out otherwise.
    Measured,
    /// Measures what the paper claims of a setting, in another one that the paper did not measure.
    Transferred,
    /// Follows from the design of the program or of the experiment.
    ByConstruction,
    /// Is arithmetic or a simulation.
    Model,
    /// States a speed, time or size of the paper's machine.
    Absolute,
}

impl ClaimKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Measured, Self::Transferred, Self::ByConstruction, Self::Model, Self::Absolute];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Transferred => "transferred",
            Self::ByConstruction => "by-construction",
            Self::Model => "model",
            Self::Absolute => "absolute",
        }
    }

    /// A sentence that explains the kind, for the report.
    pub fn about(self) -> &'static str {
        match self {
            Self::Measured => {
                "compares settings that were measured here, and could have come out otherwise"
            }
            Self::Transferred => {
                "measures what the paper claims of a setting, in another one that the paper did not measure: \
                 other workers, other analyses, other probes"
            }
            Self::ByConstruction => {
                "follows from the design of the program or of the experiment: equal results, which the tests \
                 enforce; a sum of linear sketches; sizes of packets whose bytes are not moved"
            }
            Self::Model => "is arithmetic or a simulation",
            Self::Absolute => {
                "states a speed, time or size of the paper's machine, which another machine meets or misses \
                 by its age"
            }
        }
    }
}

/// Selects settings by candidate and parameters. `candidate` is used like the name of a parameter.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Selector {
    /// Which of the settings that fit is taken, if several do.
    pub best: Option<Best>,
    #[serde(flatten)]
    pub wanted: BTreeMap<String, OneOrMore>,
}

/// The highest or lowest median over the rounds of the other parity: in odd rounds that of the even
/// ones, so that no value takes part in its own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Best {
    Highest,
    Lowest,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    One(Value),
    More(Vec<Value>),
}

impl Experiment {
    /// Parses the `text` of `file`; the file name is used in errors only.
    pub fn parse(file: &str, text: &str) -> Result<Self, crate::LabError> {
        let failed = |reason: String| crate::LabError::Experiment { file: file.to_owned(), reason };
        let experiment: Self = toml::from_str(text).map_err(|error| failed(error.to_string()))?;
        match experiment.claims.iter().find_map(|claim| Some((claim, claim.mistake()?))) {
            Some((claim, mistake)) => Err(failed(format!("claim '{}': {mistake}", claim.text))),
            None => Ok(experiment),
        }
    }

    /// The rounds and points of a quick or full run.
    pub fn effort(&self, quick: bool) -> &Effort {
        if quick { &self.quick } else { &self.full }
    }

    /// The stem of its file names: `rings-capacity`.
    pub fn file_name(&self) -> String {
        self.id.replace('/', "-")
    }
}

impl Claim {
    /// What is wrong with the bounds.
    fn mistake(&self) -> Option<&'static str> {
        let has_bounds = self.at_least.is_some() || self.at_most.is_some();
        match (self.effect, &self.quantity) {
            (Some(_), _) if has_bounds => Some("has effect and at_least or at_most: leave one out"),
            (Some(effect), _) if effect <= 0.0 || effect == 1.0 || !effect.is_finite() => {
                Some("invalid effect: use a positive number other than 1")
            }
            (Some(_), _) if self.unit != TIMES => Some("has effect and unit: an effect is a ratio"),
            (None, Some(_)) if !has_bounds => Some("lacks effect, at_least or at_most"),
            (effect, None) if effect.is_some() || has_bounds => Some("lacks quantity"),
            (None, _) if self.because.is_empty() => Some("lacks because"),
            _ => None,
        }
    }
}

impl OneOrMore {
    pub(crate) fn values(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::More(values) => values,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

fn one_thread() -> Vec<Value> {
    vec![Value::Integer(1)]
}

fn minute() -> u64 {
    60
}

fn unscaled() -> f64 {
    1.0
}

fn six() -> u32 {
    6
}

fn yes() -> bool {
    true
}

/// Unit of ratios.
pub(crate) const TIMES: &str = "×";

fn times() -> String {
    TIMES.into()
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bounds_are_an_error_that_names_the_claim() {
        let parsed = |bounds: &str| {
            Experiment::parse(
                "a.toml",
                &format!(
                    "id = 'a'\npaper = 'p'\nfigure = 'f'\ntitle = 't'\nabout = 'a'\ncommand = 'c'\n\
                     candidate = []\nvalues = {{}}\nquick = {{ repeat = 1 }}\nfull = {{ repeat = 1 }}\n\
                     plot = {{ kind = 'bars', y = 'v', y_label = 'y' }}\n\
                     [[claim]]\ntext = 'it is fast'\nkind = 'measured'\nsource = 's'\npaper = 'p'\n{bounds}"
                ),
            )
        };
        for valid in [
            "quantity = 'v'\neffect = 0.5",
            "quantity = 'v'\nat_most = 2.0\nunit = 'MB'\nbecause = 'b'",
            "because = 'digests'",
        ] {
            parsed(valid).unwrap();
        }
        for (bounds, wanted) in [
            ("quantity = 'v'\neffect = 2.0\nat_least = 1.2", "leave one out"),
            ("quantity = 'v'\neffect = 1.0", "other than 1"),
            ("quantity = 'v'\neffect = -2.0", "a positive number"),
            ("quantity = 'v'\neffect = nan", "a positive number"),
            ("quantity = 'v'\neffect = 2.0\nunit = 'MB'", "an effect is a ratio"),
            ("quantity = 'v'\nbecause = 'b'", "lacks effect, at_least or at_most"),
            ("effect = 2.0", "lacks quantity"),
            ("at_most = 2.0\nbecause = 'b'", "lacks quantity"),
            ("quantity = 'v'\nat_most = 2.0", "lacks because"),
            ("", "lacks because"),
        ] {
            let error = parsed(bounds).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("'it is fast'"), "{bounds}: {error}");
        }
    }
}
