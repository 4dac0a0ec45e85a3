//! An experiment as data: one TOML file, one figure or table of a paper.
//!
//! ```toml
//! id = "rings/capacity"                   what users type
//! paper = "mcringbuffer"                  its folder, with paper.toml
//! command = "ringtap-lab trial ring kind={ring} capacity={capacity} …"
//! [sweep]                                 crossed with each other and with the candidates
//! capacity = [100, 400, 2000]
//! [[candidate]]
//! name = "BasicRingBuffer"
//! set = { ring = "lamport" }
//! [values.throughput]                     what is read from the report, by JSON pointer
//! at = "/items_per_second"
//! [[claim]]                               what the paper says, and when that counts as reproduced
//! ```
//!
//! The paper's own figures stand here alone, each with its place in the paper; no code knows them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A paper that experiments are about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    pub title: String,
    pub authors: String,
    /// Where and when it came out.
    pub venue: String,
    /// A paragraph for who has not read it.
    pub introduction: String,
    /// The machine that its figures are from, as far as it tells.
    pub machine: String,
}

/// An experiment, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub id: String,
    pub paper: String,
    /// Its name in the paper: "Figure 8".
    pub figure: String,
    pub title: String,
    /// What is measured and how it differs from the paper, in a few sentences.
    pub about: String,
    /// A command, its program first; `{name}` stands for a parameter.
    pub command: String,
    /// Threads a trial keeps busy: the sum of these, numbers or `{name}`.
    #[serde(default = "one_thread")]
    pub threads: Vec<Value>,
    /// Seconds after which a trial is given up.
    #[serde(default = "minute")]
    pub time_limit: u64,
    /// Made before the first trial.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    #[serde(default)]
    pub sweep: Sweep,
    #[serde(rename = "candidate")]
    pub candidates: Vec<Candidate>,
    /// Numbers to read from each trial.
    pub values: BTreeMap<String, Reading>,
    /// Pointers whose contents must be the same in all trials that agree in the parameters `equal_by`.
    #[serde(default)]
    pub equal: Vec<String>,
    #[serde(default)]
    pub equal_by: Vec<String>,
    /// Pointers that must lead to just this, or the trial has failed.
    #[serde(default)]
    pub sane: BTreeMap<String, Value>,
    pub quick: Effort,
    pub full: Effort,
    pub plot: Plot,
    /// Figures of the paper, where its text or tables give them.
    #[serde(default, rename = "paper_value")]
    pub paper_values: Vec<PaperValue>,
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    pub model: Option<Model>,
}

/// How much is done, quickly or in full.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Trials of each setting that count.
    pub repeat: u32,
    /// Whether one that is checked and not counted comes before them.
    #[serde(default = "yes")]
    pub warm_up: bool,
    /// Parameters that every command has.
    #[serde(default)]
    pub set: Parameters,
    /// In place of parts of the experiment's sweep.
    #[serde(default)]
    pub sweep: Sweep,
}

/// One who is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub name: String,
    #[serde(default)]
    pub set: Parameters,
    /// In place of the experiment's; an empty table sweeps nothing.
    pub sweep: Option<Sweep>,
    /// In place of the experiment's.
    pub command: Option<String>,
    pub threads: Option<Vec<Value>>,
    pub values: Option<BTreeMap<String, Reading>>,
    pub equal: Option<Vec<String>>,
    pub sane: Option<BTreeMap<String, Value>>,
    /// Measured for the model only: neither plotted nor listed.
    #[serde(default)]
    pub probe: bool,
    /// What it gives is worked out and not measured, and is drawn so.
    #[serde(default)]
    pub modelled: bool,
}

/// A file of traffic. `{traffic}` is its folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub file: String,
    /// A command that writes it, without the file; the parameters are those of the effort.
    pub command: String,
}

/// Where a number of a trial is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// A JSON pointer into the report, or `@seconds`: from the start of the process to its end. Parameters
    /// are filled in.
    pub at: String,
    pub unit: String,
    #[serde(default = "unscaled")]
    pub scale: f64,
    /// The value is this parameter (with k, M or G) over what was read: packets a second, of seconds.
    pub per: Option<String>,
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

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Integer(i64),
    Float(f64),
    Flag(bool),
    Text(String),
}

/// What a figure shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    pub kind: PlotKind,
    /// The value that is shown.
    pub y: String,
    pub y_label: String,
    /// The parameter along the axis; of bars there is none, candidates stand side by side.
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
    /// Shown as a multiple of the same line's point at which the parameter has this value.
    pub relative_to: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    Lines,
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
    /// A multiple, as the figure shows it, and not the quantity itself.
    #[serde(default)]
    pub relative: bool,
}

/// What the paper says, what ours is, and when that counts as reproduced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub text: String,
    pub kind: ClaimKind,
    /// Section, figure, page.
    pub source: String,
    /// What the paper has, in its own form.
    pub paper: String,
    /// Which of the experiment's values; none for a claim that results are equal.
    pub quantity: Option<String>,
    /// Whose value.
    #[serde(default)]
    pub of: Selector,
    /// Over whose; without it the value itself is judged.
    pub to: Option<Selector>,
    /// The value that it is divided by, if that is another one.
    pub over: Option<String>,
    /// Both are taken over themselves with these parameters: their gains are compared, not they.
    #[serde(default)]
    pub gain_over: BTreeMap<String, Value>,
    /// Judged at each value of this parameter: all must hold.
    pub each: Option<String>,
    /// Reproduced from here …
    pub at_least: Option<f64>,
    /// … to here.
    pub at_most: Option<f64>,
    /// Why these bounds.
    pub because: String,
    /// What to write behind our figure: ×, cycles, …
    #[serde(default = "times")]
    pub unit: String,
}

/// What a verdict on a claim is worth. Only verdicts on measured claims are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Settings are compared that were measured here, and the comparison could have come out otherwise.
    Measured,
    /// It follows from how the program or the experiment is built.
    ByConstruction,
    /// It is arithmetic or a simulation.
    Model,
    /// It states a speed, time or size of the paper's own machine.
    Absolute,
}

impl ClaimKind {
    pub const ALL: [Self; 4] = [Self::Measured, Self::ByConstruction, Self::Model, Self::Absolute];

    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::ByConstruction => "by-construction",
            Self::Model => "model",
            Self::Absolute => "absolute",
        }
    }

    /// What it means, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Self::Measured => {
                "settings measured here are compared, and the comparison could have come out otherwise"
            }
            Self::ByConstruction => {
                "it follows from how the program or the experiment is built: that results are equal, which the \
                 tests enforce; shared against separate structures with a single worker; sizes of packets \
                 whose bytes are not moved"
            }
            Self::Model => "it is arithmetic or a simulation",
            Self::Absolute => {
                "it states a speed, time or size of the paper's machine, which another machine meets or misses \
                 by its age"
            }
        }
    }
}

/// Trials by what they have in common. `candidate` is a name here like a parameter's.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Selector {
    /// Which of those that fit, if several do.
    pub best: Option<Best>,
    #[serde(flatten)]
    pub wanted: BTreeMap<String, OneOrMore>,
}

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

/// How a figure goes on beyond this machine's cores. `model.rs` has the formula.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// What it assumes, in a sentence.
    pub text: String,
    pub quantity: String,
    /// The parameter that counts the workers.
    pub workers: String,
    pub up_to: u32,
    /// One thread that does everything: its rate.
    pub whole: Selector,
    /// One thread that does what the dispatcher does: its rate.
    pub dispatch: Selector,
    /// A ring between two cores, items a second.
    pub ring: Selector,
    /// Memory read by one core, bytes a second, and how many bytes an item takes.
    pub bandwidth: Selector,
    pub bytes: f64,
    /// The values of the last two selectors.
    pub ring_quantity: String,
    pub bandwidth_quantity: String,
}

impl Experiment {
    /// From the text of `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, crate::LabError> {
        toml::from_str(text).map_err(|error| crate::LabError::Experiment {
            file: file.to_owned(),
            reason: error.to_string(),
        })
    }

    pub fn effort(&self, quick: bool) -> &Effort {
        if quick { &self.quick } else { &self.full }
    }

    /// The name of its files: `rings-capacity`.
    pub fn file_name(&self) -> String {
        self.id.replace('/', "-")
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

fn yes() -> bool {
    true
}

fn times() -> String {
    "×".into()
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
