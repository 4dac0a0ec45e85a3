//! Compares two revisions of the programs on the same trials.
//!
//! Each round runs each setting twice, once per program, in a new random order, so a slow phase of
//! the machine affects both. A rank test decides whether the two differ (`statistics`). Many
//! settings are tested at once; Holm's rule keeps the chance of any false alarm at 5 % (S. Holm, "A
//! Simple Sequentially Rejective Multiple Test Procedure", 1979).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::experiment::Experiment;
use crate::machine::Machine;
use crate::programs::Programs;
use crate::runner::shuffled;
use crate::settings::{Context, Setting, settings};
use crate::trial::{self, How};
use crate::{LabError, statistics, traffic};

/// Experiments that are compared by default: a few quick ones that cover the applications.
pub const DEFAULT: &[&str] =
    &["rings/fastforward", "skeletons/microbenchmarks", "probe/arrangements", "measure/choose"];

/// Chance of any false alarm among all differences.
const ALARM: f64 = 0.05;
/// Smallest relative change that is reported, however certain.
const LEAST: f64 = 0.03;

/// The programs to compare, and where and how often.
pub struct Comparison<'a> {
    /// The programs of the earlier revision, and the current ones.
    pub programs: [Programs; 2],
    /// The machine of the measurement.
    pub machine: &'a Machine,
    /// Folder for traffic and for files that trials write.
    pub folder: PathBuf,
    /// Short trials, for a first result.
    pub quick: bool,
    /// Number of interleaved rounds.
    pub rounds: u32,
    /// Seed of the order of trials.
    pub seed: u64,
}

/// One value of one setting, in both programs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Id of the experiment.
    pub experiment: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Values of the parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// Name of the measured quantity.
    pub quantity: String,
    /// Unit of the values.
    pub unit: String,
    /// Median of the earlier program.
    pub then: f64,
    /// Median of the current program.
    pub now: f64,
    /// The p-value of the rank test.
    pub chance: f64,
    /// The result of the test.
    pub verdict: Change,
}

/// The direction of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The current revision is better.
    Better,
    /// The current revision is worse.
    Worse,
    /// No difference that stands out from the noise.
    None,
}

impl Change {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::None => "no difference seen",
        }
    }
}

/// The result of a comparison.
pub struct Compared {
    /// One entry for each setting that ran in both programs, the most certain first.
    pub differences: Vec<Difference>,
    /// Settings that could not be compared: experiment, candidate and reason.
    pub left_out: Vec<String>,
}

impl Comparison<'_> {
    /// Runs all rounds. After each trial calls `progress` with the number of trials done and the
    /// total.
    pub fn run(
        &self,
        experiments: &[Experiment],
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Compared, LabError> {
        let mut all = Vec::new();
        for experiment in experiments {
            let files = self.folder.join("traffic");
            traffic::make(&self.programs[1], &files, experiment, self.quick)?;
            let own = |s: &Setting| s.is_own() && !s.probe;
            let settings = settings(experiment, self.quick)?.into_iter().filter(own);
            all.extend(settings.map(|setting| Pair {
                experiment,
                setting,
                values: [Vec::new(), Vec::new()],
                failure: None,
            }));
        }
        let total = all.len() * 2 * self.rounds as usize;
        let mut done = 0;
        for round in 0..self.rounds {
            let seed = self.seed.wrapping_add(u64::from(round));
            for place in shuffled(all.len() * 2, seed) {
                let pair = &mut all[place / 2];
                if pair.failure.is_none() {
                    pair.failure = self.trial(pair, place % 2, seed).err();
                }
                done += 1;
                progress(done, total);
            }
        }
        let (complete, failed): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|pair| pair.failure.is_none());
        let mut differences: Vec<_> = complete.iter().filter_map(Pair::difference).collect();
        judge(&mut differences);
        let describe = |pair: &Pair| {
            let failure = pair.failure.as_deref().unwrap_or_default();
            format!("{} {}: {failure}", pair.experiment.id, pair.setting.candidate)
        };
        Ok(Compared { differences, left_out: failed.iter().map(describe).collect() })
    }

    fn trial(&self, pair: &mut Pair, which: usize, seed: u64) -> Result<(), String> {
        let setting = &pair.setting;
        let placement = setting.placement(self.machine)?;
        let (traffic, scratch) = (self.folder.join("traffic"), self.folder.join("scratch"));
        let words = setting.words(&Context {
            cores: &placement.cores,
            seed,
            traffic: &traffic.to_string_lossy(),
            scratch: &scratch.to_string_lossy(),
        })?;
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let limit = Duration::from_secs(pair.experiment.time_limit);
        let (program, words) = words.split_first().ok_or("the command is empty")?;
        let program = self.programs[which].file(program)?;
        let ended = trial::run(&program, words, &How { limit, scratch: &scratch, only: None })
            .map_err(|error| error.to_string())?;
        ended.check(&setting.sane)?;
        let quantity = &pair.experiment.plot.y;
        let reading = setting
            .values
            .get(quantity)
            .ok_or_else(|| format!("the setting has no value {quantity} to compare"))?;
        pair.values[which].push(ended.value(reading, setting.per(reading)?)?);
        Ok(())
    }
}

/// A setting and its values in both programs.
struct Pair<'e> {
    experiment: &'e Experiment,
    setting: Setting,
    values: [Vec<f64>; 2],
    /// The first failure; no further trials are run.
    failure: Option<String>,
}

impl Pair<'_> {
    fn difference(&self) -> Option<Difference> {
        let [then, now] = &self.values;
        let quantity = &self.experiment.plot.y;
        Some(Difference {
            experiment: self.experiment.id.clone(),
            candidate: self.setting.candidate.clone(),
            parameters: self.setting.parameters.clone(),
            quantity: quantity.clone(),
            unit: self.setting.values.get(quantity)?.unit.clone(),
            then: statistics::median(then)?,
            now: statistics::median(now)?,
            chance: statistics::rank_test(then, now),
            verdict: Change::None,
        })
    }
}

/// Sets the verdicts by Holm's rule, from the smallest p-value on, and sorts by p-value.
fn judge(differences: &mut [Difference]) {
    differences.sort_by(|a, b| a.chance.total_cmp(&b.chance));
    let count = differences.len();
    for (place, difference) in differences.iter_mut().enumerate() {
        if difference.chance > ALARM / (count - place) as f64 {
            break;
        }
        let ratio = difference.now / difference.then;
        if (ratio - 1.0).abs() >= LEAST {
            // A higher rate is better; of any other quantity a lower value is.
            let good = (ratio > 1.0) == difference.unit.ends_with("/s");
            difference.verdict = if good { Change::Better } else { Change::Worse };
        }
    }
}

/// Builds the programs of `revision` in `folder`, unless they are there already. The working tree
/// is not touched. Early revisions have no `ringtap-lab`; only `ringtap` is built then.
pub fn build(revision: &str, folder: &Path) -> Result<Programs, LabError> {
    let error = |reason: String| LabError::Revision { revision: revision.into(), reason };
    let commit = run("git", ["rev-parse", "--verify", &format!("{revision}^{{commit}}")], None)
        .map_err(error)?;
    let folder =
        std::path::absolute(folder).map_err(LabError::io("finding", folder))?.join(commit.trim());
    let programs = Programs::within(&folder);
    if programs.ringtap.is_file() {
        return Ok(programs);
    }
    fs::create_dir_all(&folder).map_err(LabError::io("making", &folder))?;
    let tree = folder.join("tree");
    if !tree.exists() {
        let words = [
            "worktree".as_ref(),
            "add".as_ref(),
            // A worktree whose folder was deleted by hand is still in git's list.
            "--force".as_ref(),
            "--detach".as_ref(),
            tree.as_os_str(),
            commit.trim().as_ref(),
        ];
        run("git", words, None).map_err(error)?;
    }
    let target = folder.join("target");
    let words = [
        "build".as_ref(),
        "--release".as_ref(),
        "--locked".as_ref(),
        "--workspace".as_ref(),
        "--bins".as_ref(),
        "--target-dir".as_ref(),
        target.as_os_str(),
    ];
    let built = run("cargo", words, Some(&tree)).and_then(|_| {
        let made = Programs::within(&target.join("release"));
        let copy = |from: &Path, to: &Path| {
            fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))
        };
        // Revisions before them lack these.
        for (from, to) in [(&made.lab, &programs.lab), (&made.ndn, &programs.ndn)] {
            if from.is_file() {
                copy(from, to)?;
            }
        }
        copy(&made.ringtap, &programs.ringtap)
    });
    // The worktree was needed for the build only; the programs stay.
    let _ = run(
        "git",
        ["worktree".as_ref(), "remove".as_ref(), "--force".as_ref(), tree.as_os_str()],
        None,
    );
    let _ = fs::remove_dir_all(&target);
    built.map_err(error)?;
    Ok(programs)
}

fn run<W: AsRef<OsStr>>(
    program: &str,
    words: impl IntoIterator<Item = W>,
    within: Option<&Path>,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    if let Some(folder) = within {
        command.current_dir(folder);
    }
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim().lines().last().unwrap_or("failed without an error message");
    Err(format!("{program}: {last}"))
}
