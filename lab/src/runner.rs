//! Runs experiments: first the trials of all predictions, then of each experiment a check of each setting and all planned
//! rounds, then further rounds of the settings whose claims are open.
//!
//! ```text
//!  round 0   A B C D    checked, not counted; settings that fail are left out, with the reason
//!  round 1   C A D B    each round has every setting once, in a new random order,
//!  round 2   B D A C    so a temporary disturbance affects all settings alike
//!  …
//!  block 1   D B        further rounds, as many as planned, of the settings whose claims all
//!  block 2   B D        rounds before the block leave undecided, while there is time
//! ```
//!
//! A trial during which the machine was not quiet is repeated (`quiet`). Modelled settings of a round that have the same
//! command share its trial.
//!
//! Rows that are in the run's folder already are not measured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::experiment::Experiment;
use crate::machine::{Machine, Placement};
use crate::programs::{Programs, sha256};
use crate::quiet::Gate;
use crate::rows::{Row, RowFile, State};
use crate::run_folder::RunFolder;
use crate::settings::{Context, Setting, settings};
use crate::traffic;
use crate::trial::{self, Ended, How, TrialError};
use crate::{LabError, judge, prediction};
use ringtap_base::Clock;
use ringtap_base::SplitMix;

/// Runs experiments with the programs of one revision, on one machine, into one folder.
pub struct Runner<'a> {
    /// The programs to measure.
    pub programs: &'a Programs,
    /// The machine of the run.
    pub machine: &'a Machine,
    /// The folder for the results.
    pub folder: &'a mut RunFolder,
    /// Seed of round 0; the seed of round n is `seed + n`.
    pub seed: u64,
    /// Finds the trials to repeat.
    pub gate: Gate,
    /// Whether the time for the run allows another round; asked before each further one.
    pub has_time: &'a mut dyn FnMut() -> bool,
    /// Called after each trial.
    pub progress: &'a mut dyn FnMut(&Progress),
}

/// Progress of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Id of the experiment.
    pub experiment: String,
    /// Completed trials.
    pub done: usize,
    /// All trials.
    pub total: usize,
    /// Estimate; `None` until a trial has run.
    pub seconds_left: Option<f64>,
    /// The failure of the last trial, unless it was reported before.
    pub warning: Option<String>,
}

/// A running experiment.
struct Work<'e> {
    experiment: &'e Experiment,
    settings: Vec<Setting>,
    file: RowFile,
    /// Durations of the trials so far including checks, in seconds.
    took: Vec<f64>,
    /// Completed and remaining trials.
    done: usize,
    left: usize,
    /// The first result of each group that must agree.
    expected: Expected,
    /// Numbers of settings that run no more.
    left_out: BTreeSet<usize>,
    /// Warnings so far.
    reported: BTreeSet<String>,
    /// Whether the trials are those of predictions.
    predicts: bool,
    /// Of the latest round: the last trial of each modelled command.
    shared: (u32, BTreeMap<String, Shared>),
}

/// A trial or why it failed, and what disturbed it.
type Shared = (Result<Rc<Ended>, TrialError>, Option<String>);

impl<'e> Work<'e> {
    /// The rounds of `settings` that are not in `file` yet.
    fn new(
        experiment: &'e Experiment,
        settings: Vec<Setting>,
        file: RowFile,
        rounds: usize,
        predicts: bool,
    ) -> Self {
        Self {
            experiment,
            left: settings.len() * rounds,
            settings,
            file,
            took: Vec::new(),
            done: 0,
            expected: BTreeMap::new(),
            left_out: BTreeSet::new(),
            reported: BTreeSet::new(),
            predicts,
            shared: (0, BTreeMap::new()),
        }
    }

    /// The trial of this round that a modelled setting with this command shares.
    fn shared(&mut self, task: &Task, command: &str) -> Option<Shared> {
        if self.shared.0 != task.round {
            self.shared = (task.round, BTreeMap::new());
        }
        self.shared.1.get(command).filter(|_| task.setting.modelled).cloned()
    }
}

/// Blocks of further rounds. Each is a chance to decide a claim wrongly (docs/LAB.md, "Verdicts").
const BLOCKS: u32 = 3;

impl Runner<'_> {
    /// Runs the trials of `experiments` that are not in the run's folder yet.
    pub fn run(&mut self, experiments: &[&Experiment]) -> Result<(), LabError> {
        let quick = self.folder.facts.quick;
        let traffic = self.folder.traffic();
        for experiment in experiments {
            traffic::make(self.programs, &traffic, experiment, quick)?;
        }
        let mut all = Vec::new();
        for experiment in experiments {
            let settings = settings(experiment, quick)?;
            let file = self.folder.rows(experiment, &settings)?;
            let rounds = rounds_of(experiment, quick, false).count();
            all.push(Work::new(experiment, settings, file, rounds, false));
        }
        // What was measured is not predicted afterwards.
        let new = all.iter().filter(|work| work.file.rows.is_empty()).map(|work| work.experiment);
        self.predict(&new.collect::<Vec<_>>())?;
        for at in 0..all.len() {
            let experiment = all[at].experiment;
            let every: BTreeSet<usize> = (0..all[at].settings.len()).collect();
            for round in rounds_of(experiment, quick, false) {
                self.round(&mut all, at, round, &every)?;
            }
        }
        if !quick {
            for block in 1..=BLOCKS {
                for at in 0..all.len() {
                    self.further(&mut all, at, block)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the predictions of these experiments, of which nothing was measured yet, and seals them.
    fn predict(&mut self, experiments: &[&Experiment]) -> Result<(), LabError> {
        let quick = self.folder.facts.quick;
        let mut all = Vec::new();
        for experiment in experiments {
            let settings = prediction::settings(experiment, quick)?;
            if settings.is_empty() || self.folder.is_sealed(experiment) {
                continue;
            }
            let file = self.folder.predictions(experiment, &settings)?;
            let rounds = rounds_of(experiment, quick, true).count();
            all.push(Work::new(experiment, settings, file, rounds, true));
        }
        for at in 0..all.len() {
            let every: BTreeSet<usize> = (0..all[at].settings.len()).collect();
            for round in rounds_of(all[at].experiment, quick, true) {
                self.round(&mut all, at, round, &every)?;
            }
            // Without a row, for example without the program, there is no file.
            if !all[at].file.rows.is_empty() {
                self.folder.seal(all[at].experiment)?;
            }
        }
        Ok(())
    }

    /// Runs a block of further rounds of the settings whose claims are undecided, while there is time.
    fn further(&mut self, all: &mut [Work], at: usize, block: u32) -> Result<(), LabError> {
        let work = &all[at];
        let planned = work.experiment.full.repeat;
        // The rounds before the block only: a continued run selects the same settings.
        let before = planned * block;
        let earlier = work.file.rows.iter().filter(|row| row.trial <= before).cloned();
        let undecided = judge::undecided(work.experiment, &earlier.collect::<Vec<_>>());
        let mut open = BTreeSet::new();
        for (number, Setting { candidate, parameters, .. }) in work.settings.iter().enumerate() {
            let is_open = undecided.contains(&(candidate.clone(), parameters.clone()));
            if is_open && !work.left_out.contains(&number) {
                open.insert(number);
            }
        }
        for round in before + 1..=before + planned {
            if open.is_empty() || !(self.has_time)() {
                break;
            }
            all[at].left += open.len();
            self.round(all, at, round, &open)?;
        }
        Ok(())
    }

    /// Runs one round of these settings of the experiment at `at`.
    fn round(
        &mut self,
        all: &mut [Work],
        at: usize,
        round: u32,
        numbers: &BTreeSet<usize>,
    ) -> Result<(), LabError> {
        let quick = self.folder.facts.quick;
        let traffic = self.folder.traffic();
        let experiment = all[at].experiment;
        let seed = self.seed.wrapping_add(u64::from(round));
        let order = shuffled(all[at].settings.len(), seed);
        for number in order.into_iter().filter(|number| numbers.contains(number)) {
            let work = &mut all[at];
            work.left -= 1;
            work.done += 1;
            let setting = work.settings[number].clone();
            let mut warning = None;
            if !work.left_out.contains(&number) {
                let predicts = work.predicts;
                let task = Task {
                    experiment,
                    setting: &setting,
                    round,
                    seed,
                    traffic: &traffic,
                    predicts,
                };
                let state = self.trial(&task, work)?;
                let first = round == *rounds_of(experiment, quick, work.predicts).start();
                let failed = !state.has_value() && state != State::Disturbed;
                // A setting that fails in the first round would fail again. An oversubscribed
                // one runs once, unless it has a value that is judged.
                let runs_once = state == State::Oversubscribed && !setting.is_judged_anywhere();
                if first && failed || runs_once {
                    work.left_out.insert(number);
                }
                if failed {
                    warning = work.file.rows.last().map(warning_of);
                    warning = warning.filter(|text| work.reported.insert(text.clone()));
                }
            }
            let done = all.iter().map(|work| work.done).sum();
            let total = all.iter().map(|work| work.done + work.left).sum();
            let seconds_left = seconds_left(all);
            let experiment = match all[at].predicts {
                true => format!("{}, predictions", experiment.id),
                false => experiment.id.clone(),
            };
            (self.progress)(&Progress { experiment, done, total, seconds_left, warning });
        }
        Ok(())
    }

    /// Runs one trial, unless its rows exist, and returns its state.
    fn trial(&mut self, task: &Task, work: &mut Work) -> Result<State, LabError> {
        let mut row = self.row(task);
        let placement = match task.setting.placement(self.machine) {
            Ok(placement) if task.predicts => {
                // One for each thread, as otherwise threads would share what they run.
                let first = placement.cores.first().copied().into_iter();
                let cores = first.cycle().take(task.setting.threads.max(1)).collect();
                Placement { cores, oversubscribed: false }
            }
            Ok(placement) => placement,
            Err(reason) => {
                let row = Row { state: State::NotPossible, trial: 0, reason, ..row };
                return work.file.add_once(row);
            }
        };
        // An oversubscribed setting runs once, in a later round; that trial is its check, too.
        if placement.oversubscribed && task.round == 0 {
            return Ok(State::Ok);
        }
        let words = task
            .setting
            .words(&Context {
                cores: &placement.cores,
                seed: task.seed,
                traffic: &task.traffic.to_string_lossy(),
                scratch: &self.scratch().to_string_lossy(),
            })
            .map_err(|reason| LabError::Experiment { file: task.experiment.id.clone(), reason })?;
        row.command = self.printed(&words);
        let mut measured =
            work.file.rows.iter().filter(|known| known.state.has_value() && task.is_of(known));
        // A successful check writes no rows. If a later round has, the check was done.
        if task.round == 0 && measured.clone().next().is_some() {
            return Ok(State::Ok);
        }
        if let Some(known) =
            measured.find(|known| known.trial == task.round && known.command == row.command)
        {
            task.agrees(&known.result, &mut work.expected);
            return Ok(known.state);
        }
        if placement.oversubscribed {
            row.reason =
                format!("{} threads on {} cores", task.setting.threads, placement.cores.len());
        }
        let cores: Vec<usize> = match task.setting.is_pinned() {
            _ if task.predicts => placement.cores.iter().take(1).copied().collect(),
            true => placement.cores,
            false => self.machine.cores.iter().map(|core| core.number).collect(),
        };
        // What is not judged may be disturbed.
        let is_judged = task.round > 0 && !placement.oversubscribed;
        for left in (0..=self.gate.repetitions()).rev() {
            row.load = trial::load();
            let known = work.shared(task, &row.command);
            let is_shared = known.is_some();
            let before = if is_judged && !is_shared { self.gate.before(&cores) } else { None };
            let watch = Clock::start();
            let done = match &known {
                Some((done, _)) => done.clone(),
                None => self.measure(task, &words, cores.first().copied()).map(Rc::new),
            };
            work.took.push(watch.seconds());
            let disturbance = match (known, &done) {
                (Some((_, disturbance)), _) => disturbance,
                (None, Ok(ended)) => {
                    before.and_then(|b| self.gate.after(&b, ended.seconds, ended.cpu_seconds))
                }
                (None, Err(_)) => None,
            };
            if task.setting.modelled && (disturbance.is_none() || left == 0) {
                work.shared.1.insert(row.command.clone(), (done.clone(), disturbance.clone()));
            }
            let read = done.and_then(|ended| Ok((task.measured(&ended)?, ended)));
            let (Measured { values, result }, ended) = match read {
                Ok(read) => read,
                Err(TrialError::NotPossible(reason)) => {
                    return work.file.add_once(Row { state: State::NotPossible, reason, ..row });
                }
                Err(TrialError::Failed(reason)) => {
                    return work.file.add_once(Row { state: State::Failed, reason, ..row });
                }
            };
            let Ended { seconds, cpu_seconds, .. } = *ended;
            row.result = hash(&result);
            if !task.agrees(&row.result, &mut work.expected) {
                let reason = format!("its result {} differs from that of other trials", row.result);
                return work.file.add_once(Row { state: State::Wrong, reason, ..row });
            }
            if task.round == 0 {
                return Ok(State::Ok);
            }
            let state = match disturbance {
                Some(_) => State::Disturbed,
                None if task.predicts => State::Predicted,
                None if placement.oversubscribed => State::Oversubscribed,
                None => State::Ok,
            };
            let reason = disturbance.unwrap_or_else(|| row.reason.clone());
            let (seconds, cpu_seconds) = (Some(seconds), Some(cpu_seconds));
            let one = |(quantity, unit, value)| {
                let (value, reason) = (Some(value), reason.clone());
                Row { quantity, unit, value, state, reason, seconds, cpu_seconds, ..row.clone() }
            };
            work.file.add(values.into_iter().map(one).collect())?;
            if state != State::Disturbed || left == 0 || is_shared {
                // A shared trial counts once.
                if !is_shared {
                    self.gate.ended(state);
                }
                return Ok(state);
            }
        }
        Ok(State::Disturbed)
    }

    /// The command as rows have it: in the folder that `runs` is in, whatever folder that is here.
    fn printed(&self, words: &[String]) -> String {
        let text = command(words);
        match self.folder.path.parent() {
            Some(root) if root.is_absolute() => text.replace(&*root.to_string_lossy(), "runs"),
            _ => text,
        }
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path.join("scratch")
    }

    fn row(&self, task: &Task) -> Row {
        let (commit, program) = self.program(task.setting);
        Row {
            experiment: task.experiment.id.clone(),
            candidate: task.setting.candidate.clone(),
            parameters: task.setting.parameters.clone(),
            quantity: String::new(),
            value: None,
            unit: String::new(),
            trial: task.round,
            state: State::Ok,
            reason: String::new(),
            result: String::new(),
            load: trial::load(),
            seconds: None,
            cpu_seconds: None,
            commit,
            program,
            machine: self.machine.label(),
            seed: task.seed,
            command: String::new(),
        }
    }

    /// The commit of a setting's program and the begin of its hash. A program of others has no commit,
    /// and a missing one no hash.
    fn program(&self, setting: &Setting) -> (String, String) {
        let name = setting.program();
        let (commit, hash) = match self.folder.facts.programs.get(name) {
            Some(build) => (build.commit.clone(), build.sha256.clone()),
            None => {
                let hash = self.programs.file(name).and_then(|file| sha256(&file));
                (String::new(), hash.unwrap_or_default())
            }
        };
        (commit, hash.chars().take(16).collect())
    }

    /// Runs a trial; one of a prediction on the core `first`.
    fn measure(
        &self,
        task: &Task,
        words: &[String],
        first: Option<usize>,
    ) -> Result<Ended, TrialError> {
        let (program, words) = words.split_first().ok_or("the command is empty".to_owned())?;
        let program = self.programs.file(program).map_err(TrialError::NotPossible)?;
        let scratch = self.scratch();
        let limit = Duration::from_secs(task.experiment.time_limit);
        let doing = |error| format!("{}: {error}", scratch.display());
        fs::create_dir_all(&scratch).map_err(doing)?;
        let only = first.filter(|_| task.predicts);
        let ended = trial::run(&program, words, &How { limit, scratch: &scratch, only });
        // Each trial creates its folder; remaining files do no harm.
        let _ = fs::remove_dir_all(&scratch);
        ended
    }
}

/// The warning for a row without a number. The reason of `NotPossible` is the machine's, so the
/// candidate is omitted.
fn warning_of(row: &Row) -> String {
    let Row { experiment, candidate, state, reason, .. } = row;
    match state {
        State::NotPossible => format!("{experiment}: some settings are {state}: {reason}"),
        _ => format!("{experiment} {candidate}: {state}: {reason}"),
    }
}

/// The rounds of a run, including round 0 if the experiment has a check; or those of its predictions.
fn rounds_of(
    experiment: &Experiment,
    quick: bool,
    predicts: bool,
) -> std::ops::RangeInclusive<u32> {
    let effort = experiment.effort(quick);
    match experiment.prediction.as_ref().filter(|_| predicts) {
        Some(prediction) => 1..=prediction.rounds,
        None => u32::from(!effort.warm_up)..=effort.repeat,
    }
}

/// What a successful trial yields.
struct Measured {
    /// Quantity, unit and number.
    values: Vec<(String, String, f64)>,
    /// The text that must be equal between trials.
    result: String,
}

/// One trial.
struct Task<'a> {
    experiment: &'a Experiment,
    setting: &'a Setting,
    round: u32,
    seed: u64,
    traffic: &'a Path,
    /// Whether it is for a prediction: on one core, whatever the number of threads.
    predicts: bool,
}

/// The first result of each group that must agree.
type Expected = BTreeMap<Vec<String>, String>;

impl Task<'_> {
    /// What its setting reads of a trial that ended.
    fn measured(&self, ended: &Ended) -> Result<Measured, String> {
        let setting = self.setting;
        ended.check(&setting.sane)?;
        let mut values = Vec::new();
        for (quantity, reading) in &setting.values {
            let value = setting.of_queues(ended.value(reading, setting.per(reading)?)?);
            values.push((quantity.clone(), reading.unit.clone(), value));
        }
        Ok(Measured { values, result: ended.result(&setting.equal)? })
    }

    /// Whether `result` equals the first result of its group. An empty result always agrees.
    fn agrees(&self, result: &str, expected: &mut Expected) -> bool {
        let of = |name: &String| self.setting.parameters.get(name).cloned().unwrap_or_default();
        let group = self.experiment.equal_by.iter().map(of).collect();
        result.is_empty() || *expected.entry(group).or_insert_with(|| result.into()) == result
    }

    fn is_of(&self, row: &Row) -> bool {
        row.candidate == self.setting.candidate && row.parameters == self.setting.parameters
    }
}

/// Estimates the remaining time from the durations so far. Trials of experiments that have not
/// started count with the mean of all others.
fn seconds_left(all: &[Work]) -> Option<f64> {
    let took: Vec<f64> = all.iter().flat_map(|work| &work.took).copied().collect();
    let mean =
        |took: &[f64]| (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64);
    let typical = mean(&took)?;
    Some(all.iter().map(|work| work.left as f64 * mean(&work.took).unwrap_or(typical)).sum())
}

/// The command as text that can be pasted into a shell.
pub(crate) fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) { word.clone() } else { format!("'{word}'") }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The first 64 bits of a SHA-256 hash in hexadecimal; empty for an empty text.
fn hash(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A random permutation of 0 to n − 1, by seed (Fisher and Yates).
pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix::new(seed);
    let mut order: Vec<_> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
    order
}
