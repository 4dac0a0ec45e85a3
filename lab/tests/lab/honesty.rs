//! The lab on an experiment of seconds: it tells what is so, refuses what it cannot know, and finds a
//! regression that was planted.

use std::fs;
use std::path::PathBuf;

use crate::common::{EQUAL, experiment, program, run, twice};
use ringtap_lab::compare::{Change, Comparison};
use ringtap_lab::judge::{Verdict, judge};
use ringtap_lab::machine::Machine;
use ringtap_lab::{Programs, State};

#[test]
fn every_number_has_its_provenance() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let (_, rows) = run(folder.path(), &program, &experiment(&["plain", "fast"], EQUAL));
    // Two candidates, three sizes, six rounds.
    assert_eq!(rows.len(), 36);
    for row in &rows {
        assert_eq!(
            (row.state, row.quantity.as_str(), row.unit.as_str()),
            (State::Ok, "rate", "packets/s")
        );
        assert!(
            row.value.is_some() && !row.commit.is_empty() && !row.machine.is_empty(),
            "{row:?}"
        );
        assert_eq!(row.seed, 1 + u64::from(row.trial), "{row:?}");
        let again =
            format!("who={} size={} seed={}", row.candidate, row.parameters["size"], row.seed);
        assert_eq!(row.command, format!("ringtap measure {again}"));
    }
}

#[test]
fn a_planted_regression_of_two_turns_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let claims = twice("fast") + &twice("slow") + EQUAL;
    let experiment = experiment(&["plain", "fast", "slow"], &claims);
    let (_, rows) = run(folder.path(), &program, &experiment);
    let verdicts: Vec<_> = judge(&experiment, &rows).into_iter().map(|j| j.verdict).collect();
    // What should be as fast as `fast` takes twice as long.
    assert_eq!(verdicts, [Verdict::Reproduced, Verdict::NotReproduced, Verdict::Reproduced]);
}

#[test]
fn a_planted_regression_of_two_is_found_between_programs_and_none_is_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let [then, now] =
        [("then", 2), ("now", 1)].map(|(name, factor)| program(folder.path(), name, factor));
    let machine = Machine::this();
    let compared = |files: [PathBuf; 2]| {
        let programs = files.map(|file| Programs { ringtap: file.clone(), lab: file });
        let place = folder.path().to_owned();
        let comparison = Comparison {
            programs,
            machine: &machine,
            folder: place,
            quick: true,
            rounds: 8,
            seed: 1,
        };
        comparison.run(&[experiment(&["plain", "fast", "broken"], EQUAL)], |_, _| {}).unwrap()
    };
    let found = compared([then.clone(), now.clone()]);
    assert_eq!(found.differences.len(), 6);
    for difference in &found.differences {
        assert_eq!(difference.verdict, Change::Worse, "{difference:?}");
        assert!((0.4..0.6).contains(&(difference.now / difference.then)), "{difference:?}");
    }
    assert_eq!(found.left_out.len(), 3);
    assert!(found.left_out.iter().all(|reason| reason.contains("no luck")), "{:?}", found.left_out);
    let back = compared([now, then.clone()]);
    assert!(back.differences.iter().all(|difference| difference.verdict == Change::Better));
    let same = compared([then.clone(), then]);
    assert!(same.differences.iter().all(|d| d.verdict == Change::None), "{:?}", same.differences);
}

#[test]
fn who_gives_another_result_is_wrong_however_fast() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let claims = twice("liar") + EQUAL;
    let experiment = experiment(&["plain", "liar"], &claims);
    let (_, rows) = run(folder.path(), &program, &experiment);
    // Whoever came first is believed; the other one is wrong, and has no numbers.
    let wrong: Vec<_> = rows.iter().filter(|row| row.state == State::Wrong).collect();
    assert!(
        !wrong.is_empty() && wrong.iter().all(|row| row.value.is_none() && !row.reason.is_empty())
    );
    let [speed, equal] = judge(&experiment, &rows).try_into().unwrap();
    assert_eq!(equal.verdict, Verdict::NotReproduced, "{equal:?}");
    assert_ne!(speed.verdict, Verdict::Reproduced, "{speed:?}");
}

#[test]
fn who_fails_is_a_row_with_the_reason_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let claims = twice("broken") + &twice("lacking");
    let experiment = experiment(&["plain", "broken", "lacking"], &claims);
    let (_, rows) = run(folder.path(), &program, &experiment);
    let of = |name: &str| rows.iter().filter(|row| row.candidate == name).collect::<Vec<_>>();
    assert_eq!(of("plain").len(), 18);
    // Once each size: it would fail in every round.
    assert_eq!(of("broken").len(), 3);
    assert!(of("broken").iter().all(|r| r.state == State::Failed && r.reason.contains("no luck")));
    assert!(
        of("lacking")
            .iter()
            .all(|r| r.state == State::NotPossible && r.reason.contains("no counters"))
    );
    let [broken, lacking] = judge(&experiment, &rows).try_into().unwrap();
    assert_eq!((broken.verdict, broken.ours.as_str()), (Verdict::Inconclusive, "–"));
    assert!(broken.reason.contains("no luck"), "{broken:?}");
    assert_eq!(lacking.verdict, Verdict::NotPossibleHere);
}

#[test]
fn what_hangs_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = experiment(&["plain"], EQUAL);
    experiment.command = "ringtap wait who={who} size={size}".into();
    experiment.time_limit = 1;
    let (_, rows) = run(folder.path(), &program, &experiment);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.reason.contains("not done after 1 s")), "{rows:?}");
}

#[test]
fn results_are_not_said_to_agree_when_a_setting_failed_or_hung() {
    for trouble in ["broken", "hung"] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "ringtap", 1);
        let mut experiment = experiment(&["plain", "fast", trouble], EQUAL);
        experiment.time_limit = 1;
        if trouble == "hung" {
            experiment.candidates[2].command = Some("ringtap wait who={who} size={size}".into());
        }
        let (_, rows) = run(folder.path(), &program, &experiment);
        assert!(rows.iter().filter(|row| row.state == State::Ok).count() > 20);
        let [judgement] = judge(&experiment, &rows).try_into().unwrap();
        assert_eq!(judgement.verdict, Verdict::Inconclusive, "{judgement:?}");
        assert!(judgement.reason.contains("3 settings gave no result"), "{judgement:?}");
    }
}

#[test]
fn more_threads_than_cores_are_labelled_run_once_and_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let text = twice("fast");
    let mut experiment = experiment(&["plain", "fast"], &text);
    experiment.candidates[1].threads = Some(vec!["5000".into()]);
    let (_, rows) = run(folder.path(), &program, &experiment);
    let fast: Vec<_> = rows.iter().filter(|row| row.candidate == "fast").collect();
    assert_eq!(fast.len(), 3);
    assert!(fast.iter().all(|row| row.state == State::Oversubscribed && row.value.is_some()));
    let [judgement] = judge(&experiment, &rows).try_into().unwrap();
    assert_eq!(judgement.verdict, Verdict::NotPossibleHere);
    assert!(judgement.reason.contains("5000 threads"), "{judgement:?}");
}

#[test]
fn a_run_that_was_cut_off_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let calls = folder.path().join("calls");
    let mut experiment = experiment(&["plain"], EQUAL);
    experiment.command += &format!(" calls={}", calls.display());
    let called = || fs::read_to_string(&calls).unwrap_or_default().lines().count();
    let (runs, rows) = run(folder.path(), &program, &experiment);
    // Three sizes, six rounds and the check.
    assert_eq!((rows.len(), called()), (18, 21));
    let file = runs.path.join("test-tiny.csv");
    let text = fs::read_to_string(&file).unwrap();
    // As if it had been killed while it wrote the row before the last three.
    let lines: Vec<_> = text.lines().collect();
    let cut = lines[..lines.len() - 4].join("\n") + "\n" + &lines[lines.len() - 4][..20];
    fs::write(&file, cut).unwrap();
    let (_, again) = run(folder.path(), &program, &experiment);
    assert_eq!((again.len(), called()), (18, 25));
    assert_eq!(again[..14], rows[..14]);
    let (_, last) = run(folder.path(), &program, &experiment);
    assert_eq!((last, called()), (again, 25));
}
