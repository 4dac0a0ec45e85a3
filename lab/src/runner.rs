//! Runs experiments: the check of each setting first, then all trials in turn.
//!
//! ```text
//!  round 0   A B C D    checked, not counted; who fails here is left out, with the reason
//!  round 1   C A D B    each round has every setting once, in an order drawn anew
//!  round 2   B D A C    so what disturbs the machine for a while disturbs all alike
//! ```
//!
//! What is in the run's folder already is not measured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::LabError;
use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::programs::Programs;
use crate::rows::{Row, RowFile, State};
use crate::run_folder::RunFolder;
use crate::settings::{Setting, Surroundings, settings};
use crate::traffic;
use crate::trial::{self, Unfit};
use ringtap_base::Clock;
use ringtap_base::SplitMix;

/// Runs what it is given with the programs of one revision, on one machine, into one folder.
pub struct Runner<'a> {
    /// What is measured.
    pub programs: &'a Programs,
    pub machine: &'a Machine,
    pub folder: &'a RunFolder,
    /// Of the first round; each round has the next.
    pub seed: u64,
    /// Told after each trial.
    pub progress: &'a mut dyn FnMut(&Progress),
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    pub experiment: String,
    pub done: usize,
    pub total: usize,
    /// None until something was measured.
    pub seconds_left: Option<f64>,
    /// What happened last, if it is worth a line and was not told before.
    pub trouble: Option<String>,
}

/// An experiment under way.
struct Work<'e> {
    experiment: &'e Experiment,
    settings: Vec<Setting>,
    file: RowFile,
    /// Seconds of the trials so far, checks included.
    took: Vec<f64>,
    /// Trials not done yet.
    left: usize,
}

impl Runner<'_> {
    /// Measures what is missing of `experiments`.
    pub fn run(&mut self, experiments: &[&Experiment]) -> Result<(), LabError> {
        let quick = self.folder.facts.quick;
        let mut all = Vec::new();
        for experiment in experiments {
            let settings = settings(experiment, quick)?;
            let file = self.folder.rows(experiment, &settings)?;
            let left = settings.len() * rounds(experiment, quick).count();
            all.push(Work { experiment, settings, file, took: Vec::new(), left });
        }
        let total = all.iter().map(|work| work.left).sum();
        for at in 0..all.len() {
            self.run_one(&mut all, at, total)?;
        }
        Ok(())
    }

    fn run_one(&mut self, all: &mut [Work], at: usize, total: usize) -> Result<(), LabError> {
        let quick = self.folder.facts.quick;
        let experiment = all[at].experiment;
        let traffic = self.folder.traffic();
        traffic::make(self.programs, &traffic, experiment, quick)?;
        let mut expected = BTreeMap::new();
        let mut out = BTreeSet::new();
        let mut told = BTreeSet::new();
        for round in rounds(experiment, quick) {
            let seed = self.seed.wrapping_add(u64::from(round));
            for number in shuffled(all[at].settings.len(), seed) {
                let work = &mut all[at];
                work.left -= 1;
                let setting = work.settings[number].clone();
                let mut trouble = None;
                if !out.contains(&number) {
                    let task =
                        Task { experiment, setting: &setting, round, seed, traffic: &traffic };
                    let done = self.trial(&task, work, &mut expected)?;
                    let first = round == *rounds(experiment, quick).start();
                    // What fails at first would fail again, and what says nothing is said once.
                    if first && !done.has_value() || done == State::Oversubscribed {
                        out.insert(number);
                    }
                    if !done.has_value() {
                        trouble = work.file.rows.last().map(trouble_of);
                        trouble = trouble.filter(|words| told.insert(words.clone()));
                    }
                }
                let done = total - all.iter().map(|work| work.left).sum::<usize>();
                let seconds_left = seconds_left(all);
                let experiment = experiment.id.clone();
                (self.progress)(&Progress { experiment, done, total, seconds_left, trouble });
            }
        }
        Ok(())
    }

    /// One trial, unless its rows are there. What became of it.
    fn trial(
        &self,
        task: &Task,
        work: &mut Work,
        expected: &mut Expected,
    ) -> Result<State, LabError> {
        let mut row = self.row(task);
        let placement = match task.setting.placement(self.machine) {
            Ok(placement) => placement,
            Err(reason) => {
                let row = Row { state: State::NotPossible, trial: 0, reason, ..row };
                return work.file.add_once(row);
            }
        };
        // It runs once, and that is its check, too.
        if placement.oversubscribed && task.round == 0 {
            return Ok(State::Ok);
        }
        let words = task
            .setting
            .words(&Surroundings {
                cores: &placement.cores,
                seed: task.seed,
                traffic: &task.traffic.to_string_lossy(),
                scratch: &self.scratch().to_string_lossy(),
            })
            .map_err(|reason| LabError::Experiment { file: task.experiment.id.clone(), reason })?;
        row.command = command(&words);
        let mut measured =
            work.file.rows.iter().filter(|known| known.state.has_value() && task.is_of(known));
        // The check leaves no rows if all is well: a later round has been there since.
        if task.round == 0 && measured.clone().next().is_some() {
            return Ok(State::Ok);
        }
        if let Some(known) =
            measured.find(|known| known.trial == task.round && known.command == row.command)
        {
            task.agrees(&known.result, expected);
            return Ok(known.state);
        }
        let watch = Clock::start();
        let done = self.measure(task, &words);
        work.took.push(watch.seconds());
        let (values, result) = match done {
            Ok(done) => done,
            Err(Unfit::NotPossible(reason)) => {
                return work.file.add_once(Row { state: State::NotPossible, reason, ..row });
            }
            Err(Unfit::Failed(reason)) => {
                return work.file.add_once(Row { state: State::Failed, reason, ..row });
            }
        };
        row.result = hash(&result);
        if !task.agrees(&row.result, expected) {
            let reason = format!("its result {} is not that of the others", row.result);
            return work.file.add_once(Row { state: State::Wrong, reason, ..row });
        }
        if task.round == 0 {
            return Ok(State::Ok);
        }
        if placement.oversubscribed {
            row.state = State::Oversubscribed;
            row.reason =
                format!("{} threads on {} cores", task.setting.threads, placement.cores.len());
        }
        let state = row.state;
        let one =
            |(quantity, unit, value)| Row { quantity, unit, value: Some(value), ..row.clone() };
        work.file.add(values.into_iter().map(one).collect())?;
        Ok(state)
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path.join("scratch")
    }

    fn row(&self, task: &Task) -> Row {
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
            commit: self.folder.facts.commit.clone(),
            machine: self.machine.label(),
            seed: task.seed,
            command: String::new(),
        }
    }

    fn measure(&self, task: &Task, words: &[String]) -> Result<Measured, Unfit> {
        let setting = task.setting;
        let (program, words) = words.split_first().ok_or("the command is empty".to_owned())?;
        let program = self.programs.file(program).map_err(Unfit::NotPossible)?;
        let scratch = self.scratch();
        let limit = Duration::from_secs(task.experiment.time_limit);
        let doing = |error| format!("{}: {error}", scratch.display());
        fs::create_dir_all(&scratch).map_err(doing)?;
        let ended = trial::run(&program, words, limit, &scratch);
        // It is made anew for the next; what is left over does no harm.
        let _ = fs::remove_dir_all(&scratch);
        let ended = ended?;
        ended.check(&setting.sane)?;
        let mut values = Vec::new();
        for (quantity, reading) in &setting.values {
            let value = ended.value(reading, setting.per(reading)?)?;
            values.push((quantity.clone(), reading.unit.clone(), value));
        }
        Ok((values, ended.result(&setting.equal)?))
    }
}

/// What a row without a number says. What the machine lacks is the same for all candidates.
fn trouble_of(row: &Row) -> String {
    let Row { experiment, candidate, state, reason, .. } = row;
    match state {
        State::NotPossible => format!("{experiment}: {state} in part: {reason}"),
        _ => format!("{experiment} {candidate}: {state}: {reason}"),
    }
}

/// With the round of the check, if there is one.
fn rounds(experiment: &Experiment, quick: bool) -> std::ops::RangeInclusive<u32> {
    let effort = experiment.effort(quick);
    u32::from(!effort.warm_up)..=effort.repeat
}

/// Numbers with their names and units, and what must be equal.
type Measured = (Vec<(String, String, f64)>, String);

/// What is to be done now.
struct Task<'a> {
    experiment: &'a Experiment,
    setting: &'a Setting,
    round: u32,
    seed: u64,
    traffic: &'a Path,
}

/// The result of whoever came first, for each group that must agree.
type Expected = BTreeMap<Vec<String>, String>;

impl Task<'_> {
    /// Whether `result` is that of the others; the first is believed. Who has none always agrees.
    fn agrees(&self, result: &str, expected: &mut Expected) -> bool {
        let of = |name: &String| self.setting.parameters.get(name).cloned().unwrap_or_default();
        let group = self.experiment.equal_by.iter().map(of).collect();
        result.is_empty() || *expected.entry(group).or_insert_with(|| result.into()) == result
    }

    fn is_of(&self, row: &Row) -> bool {
        row.candidate == self.setting.candidate && row.parameters == self.setting.parameters
    }
}

/// From what trials took so far; those of an experiment that was not begun yet count as the others.
fn seconds_left(all: &[Work]) -> Option<f64> {
    let took: Vec<f64> = all.iter().flat_map(|work| &work.took).copied().collect();
    let mean =
        |took: &[f64]| (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64);
    let typical = mean(&took)?;
    Some(all.iter().map(|work| work.left as f64 * mean(&work.took).unwrap_or(typical)).sum())
}

/// As it can be pasted into a shell.
pub(crate) fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) { word.clone() } else { format!("'{word}'") }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Short, for people: what is compared is random enough at 64 bits.
fn hash(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// 0 to n − 1 in an order drawn from the seed (Fisher and Yates).
pub(crate) fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix::new(seed);
    let mut order: Vec<_> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
    order
}
