//! Tests of the gate for a quiet machine and of further rounds, with planted readings of the machine
//! and a planted end of the time.

use std::fs;
use std::path::Path;

use crate::common::{EQUAL, builds, experiment, program, run, run_into, twice};
use ringtap_lab::judge::judge;
use ringtap_lab::machine::Machine;
use ringtap_lab::quiet::{CoreSpeed, CoreTimes, Disturbances, Gate, Sensor};
use ringtap_lab::{Experiment, Paper, Row, RunFolder, State, Verdict, report};

/// A machine with a neighbour that is busy for a minute of each trial whose number, repetitions
/// included, `is_busy`.
struct Neighbour<F> {
    is_busy: F,
    readings: u32,
    busy: f64,
}

impl<F: Fn(u32) -> bool> Sensor for Neighbour<F> {
    fn times(&mut self, _: &[usize]) -> CoreTimes {
        let (trial, is_after) = (self.readings / 2, self.readings % 2 == 1);
        self.readings += 1;
        if is_after && (self.is_busy)(trial) {
            self.busy += 60.0;
        }
        CoreTimes { busy: self.busy, steal: 0.0 }
    }

    fn speed(&mut self, _: usize) -> CoreSpeed {
        CoreSpeed { loop_seconds: 0.001, hertz: Some(3e9) }
    }
}

/// Runs `experiment` beside a neighbour.
fn beside(
    folder: &Path,
    experiment: &Experiment,
    is_busy: impl Fn(u32) -> bool + 'static,
) -> (RunFolder, Vec<Row>) {
    let program = program(folder, "ringtap", 1);
    let runs = RunFolder::open(&folder.join("runs"), &Machine::this(), true, true, builds());
    let gate = Gate::with(Neighbour { is_busy, readings: 0, busy: 0.0 });
    run_into(runs.unwrap(), &program, experiment, gate, &mut || true)
}

fn page(runs: &RunFolder, experiment: &Experiment) -> String {
    let paper = Paper {
        title: "t".into(),
        authors: "a".into(),
        venue: "v".into(),
        introduction: "i".into(),
        machine: "m".into(),
    };
    let page = report::write_of(runs, vec![(paper, vec![experiment.clone()])]).unwrap();
    fs::read_to_string(&page).unwrap()
        + &fs::read_to_string(page.with_file_name("test.html")).unwrap()
}

fn verdicts(experiment: &Experiment, rows: &[Row]) -> Vec<(Verdict, String)> {
    judge(experiment, rows)
        .into_iter()
        .map(|judgement| (judgement.verdict, judgement.reason))
        .collect()
}

/// Two candidates, three sizes and six rounds: 36 trials.
fn fast() -> Experiment {
    experiment(&["plain", "fast"], &(twice("fast") + EQUAL))
}

#[test]
fn on_a_quiet_machine_no_trial_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = fast();
    let (runs, rows) = beside(folder.path(), &experiment, |_| false);
    assert!(rows.len() == 36 && rows.iter().all(|row| row.state == State::Ok), "{rows:?}");
    assert!(page(&runs, &experiment).contains(" 0 of 36 trials were disturbed."));
}

#[test]
fn a_disturbed_trial_is_repeated_and_the_repetition_counts() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = fast();
    let (runs, rows) = beside(folder.path(), &experiment, |trial| trial == 4 || trial == 7);
    let found = Disturbances::of(&rows);
    assert_eq!(found, Disturbances { trials: 36, disturbed: 2, repeated: 2 });
    assert_eq!(rows.len(), 38);
    let marked: Vec<_> = rows.iter().filter(|row| row.state == State::Disturbed).collect();
    assert!(marked.iter().all(|row| row.reason.starts_with("other processes ")), "{marked:?}");
    assert!(marked.iter().all(|row| row.value.is_some() && !row.state.has_value()));
    let reproduced = (Verdict::Reproduced, String::new());
    assert_eq!(verdicts(&experiment, &rows), [reproduced.clone(), reproduced]);
    let page = page(&runs, &experiment);
    assert!(page.contains(" 2 of 36 trials were disturbed, 2 repeated successfully."));
    assert!(!page.contains("disturbed: all trials"));
}

#[test]
fn a_machine_that_is_never_quiet_ends_the_run_and_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = fast();
    let (runs, rows) = beside(folder.path(), &experiment, |_| true);
    assert!(rows.iter().all(|row| row.state == State::Disturbed));
    // The first ten trials run three times each, the others once.
    assert_eq!(rows.len(), 10 * 3 + 26);
    for (verdict, reason) in verdicts(&experiment, &rows) {
        assert_eq!(verdict, Verdict::Inconclusive);
        assert!(reason.starts_with("36 of 36 trials were disturbed (other processes "), "{reason}");
    }
    let page = page(&runs, &experiment);
    for wanted in [
        " 36 of 36 trials were disturbed, 0 repeated successfully; this machine is not quiet",
        "disturbed: all trials of a setting: plain; fast",
    ] {
        assert!(page.contains(wanted), "{wanted:?} is missing");
    }
    // Later, on a quiet machine, they are tried again.
    let (_, rows) = beside(folder.path(), &experiment, |_| false);
    assert_eq!(Disturbances::of(&rows).repeated, 36);
    assert_eq!(verdicts(&experiment, &rows)[0].0, Verdict::Reproduced);
}

#[test]
fn a_failed_trial_is_not_a_disturbed_one() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = experiment(&["broken", "differing", "plain"], EQUAL);
    let (_, rows) = beside(folder.path(), &experiment, |_| true);
    let states = |name: &str| -> Vec<State> {
        rows.iter().filter(|row| row.candidate == name).map(|row| row.state).collect()
    };
    assert_eq!(states("broken"), [State::Failed; 3]);
    assert!(rows.iter().any(|row| row.state == State::Wrong));
}

#[test]
fn the_page_says_that_the_gate_was_off() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = fast();
    let (runs, _) = run(folder.path(), &program(folder.path(), "ringtap", 1), &experiment);
    assert!(runs.path.to_string_lossy().ends_with("-quick-no-gate"));
    let page = page(&runs, &experiment);
    assert!(page.contains("was off (<code>--no-gate</code>)") && !page.contains("were disturbed"));
}

/// A claim that `slowed` has this effect. Its ratio to `plain` depends on the seed: it is 1.273 to 1.3.
fn effect(effect: f64) -> String {
    twice("slowed").replace("effect = 2.0", &format!("effect = {effect}"))
}

/// Number of rounds of each candidate in a full run with 8 planned rounds.
fn rounds(
    folder: &Path,
    experiment: &Experiment,
    has_time: &mut dyn FnMut() -> bool,
) -> ([u32; 3], Vec<Row>) {
    let program = program(folder, "ringtap", 1);
    let runs = RunFolder::open(&folder.join("runs"), &Machine::this(), false, false, builds());
    let (_, rows) = run_into(runs.unwrap(), &program, experiment, Gate::off(), has_time);
    let last = |name: &str| {
        let of = rows.iter().filter(|row| row.candidate == name);
        assert!(of.clone().all(|row| row.state == State::Ok));
        let last = of.clone().map(|row| row.trial).max().unwrap();
        // Three sizes, each round once.
        assert_eq!(of.count() as u32, 3 * last, "{name}");
        last
    };
    (["plain", "slowed", "fast"].map(last), rows)
}

fn open(effect_of_slowed: f64) -> Experiment {
    experiment(&["plain", "slowed", "fast"], &(twice("fast") + &effect(effect_of_slowed)))
}

#[test]
fn open_claims_get_further_rounds_until_they_are_decided() {
    let folder = tempfile::tempdir().unwrap();
    // The bound of 1.2747 is within the range of 8 rounds, but below the interval of 16.
    let experiment = open(1.5494);
    let (found, rows) = rounds(folder.path(), &experiment, &mut || true);
    assert_eq!(found, [16, 16, 8]);
    let planned: Vec<Row> = rows.iter().filter(|row| row.trial <= 8).cloned().collect();
    let claim = |rows: &[Row]| verdicts(&experiment, rows)[1].0;
    assert_eq!([claim(&planned), claim(&rows)], [Verdict::Inconclusive, Verdict::Reproduced]);
}

#[test]
fn further_rounds_end_after_three_blocks_or_with_the_time() {
    let folder = tempfile::tempdir().unwrap();
    // The bound is the median, so no number of rounds decides it.
    let experiment = open(1.5714);
    let (found, _) = rounds(folder.path(), &experiment, &mut || false);
    assert_eq!(found, [8, 8, 8]);
    let mut left = 5;
    let mut has_time = || {
        left -= 1;
        left >= 0
    };
    let (found, _) = rounds(folder.path(), &experiment, &mut has_time);
    assert_eq!(found, [13, 13, 8]);
    let (found, rows) = rounds(folder.path(), &experiment, &mut || true);
    assert_eq!(found, [32, 32, 8]);
    assert_eq!(verdicts(&experiment, &rows)[1].0, Verdict::Inconclusive);
}
