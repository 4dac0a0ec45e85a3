//! Tests of runs, verdicts and comparisons on an experiment that takes seconds: rows have their
//! provenance, failures are not judged, and a planted regression is found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{EQUAL, builds, experiment, program, run, twice, twice_as};
use ringtap_lab::compare::{Change, Comparison};
use ringtap_lab::judge::judge;
use ringtap_lab::machine::Machine;
use ringtap_lab::{Programs, Row, RunFolder, State, Verdict, settings};

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
        assert_eq!(
            (row.commit.as_str(), row.program.as_str()),
            ("0123456789ab", "0123456789abcdef")
        );
        assert!(row.value.is_some() && !row.machine.is_empty(), "{row:?}");
        assert!(row.seconds > Some(0.0) && row.cpu_seconds.is_some(), "{row:?}");
        assert_eq!(row.seed, 1 + u64::from(row.trial), "{row:?}");
        let again =
            format!("name={} size={} seed={}", row.candidate, row.parameters["size"], row.seed);
        assert_eq!(row.command, format!("ringtap measure {again}"));
    }
}

#[test]
fn modelled_settings_of_one_command_share_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let calls = folder.path().join("calls");
    let mut experiment = experiment(&["plain", "modelled"], EQUAL);
    experiment.command =
        format!("ringtap measure name=plain calls={} seed={{seed}}", calls.display());
    experiment.candidates[1].modelled = true;
    let (_, rows) = run(folder.path(), &program, &experiment);
    assert_eq!(rows.len(), 36);
    // Of the check and each of the six rounds: three sizes, and one trial for the modelled ones.
    assert_eq!(fs::read_to_string(&calls).unwrap().lines().count(), 7 * (3 + 1));
    for round in 1..=6 {
        let modelled = |row: &&Row| row.trial == round && row.candidate == "modelled";
        let mut times = rows.iter().filter(modelled).map(|row| row.seconds);
        let first = times.next().unwrap();
        assert!(times.all(|time| time == first));
    }
}

#[test]
fn modelled_settings_share_a_trial_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let calls = folder.path().join("calls");
    let mut experiment = experiment(&["plain", "modelled"], EQUAL);
    experiment.command = format!("ringtap measure name=broken calls={}", calls.display());
    experiment.candidates[1].modelled = true;
    let (_, rows) = run(folder.path(), &program, &experiment);
    // A setting that fails when it is checked does not run again.
    assert_eq!(fs::read_to_string(&calls).unwrap().lines().count(), 3 + 1);
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row.state, State::Failed);
        assert!(row.reason.ends_with("no luck"), "{row:?}");
    }
}

#[test]
fn rows_have_no_paths_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = experiment(&["plain"], EQUAL);
    experiment.command = "ringtap measure name={name} from={traffic}/a.pcap to={scratch}".into();
    let (run, rows) = run(folder.path(), &program, &experiment);
    assert!(run.path.is_absolute());
    let name = run.path.file_name().unwrap().to_str().unwrap();
    let expected =
        format!("ringtap measure name=plain from=runs/traffic/a.pcap to=runs/{name}/scratch");
    assert!(!rows.is_empty() && rows.iter().all(|row| row.command == expected), "{rows:?}");
}

/// A program that prints a build with `--version`.
fn build(folder: &Path, name: &str, lines: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\nprintf '{name} 0.1.0\\n{lines}'\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn programs_of_different_builds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |commit: &str, profile: &str| {
        format!("commit {commit}\\nprofile {profile}\\nfeatures tls\\ncompiler rustc 1.95.0\\n")
    };
    let lab = build(folder.path(), "ringtap-lab", &lines("abc", "release"));
    let settings = settings(&experiment(&["plain"], EQUAL), true).unwrap();
    let found = |text: &str| {
        build(folder.path(), "ringtap", text);
        Programs::of(lab.clone()).builds(&settings).map_err(|error| error.to_string())
    };
    let missing = Programs::of(lab.clone()).builds(&settings).unwrap_err().to_string();
    assert_eq!(missing, "ringtap is not installed");
    let equal = found(&lines("abc", "release")).unwrap();
    assert_eq!((equal["ringtap"].features.as_str(), equal["ringtap"].sha256.len()), ("tls", 64));
    assert_ne!(equal["ringtap"].sha256, equal["ringtap-lab"].sha256);
    for other in [lines("abd", "release"), lines("abc", "quick")] {
        let error = found(&other).unwrap_err();
        assert!(
            error.contains("commit abc, profile release") && error.contains("cargo build"),
            "{error}"
        );
    }
    let early = found("").unwrap_err();
    assert!(early.contains("does not print its commit"), "{early}");
}

#[test]
fn a_run_is_not_continued_with_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let open = |builds| RunFolder::open(folder.path(), &Machine::this(), true, true, builds);
    open(builds()).unwrap();
    open(builds()).unwrap();
    let mut other = builds();
    other.get_mut("ringtap").unwrap().sha256 = "0".repeat(64);
    let error = open(other).unwrap_err().to_string();
    assert!(error.contains("other programs"), "{error}");
}

#[test]
fn planted_faults_change_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    // The slowed one is 1.3 times as fast as `plain`, the fastest five times, and two are swapped.
    let claims = [
        twice("fast"),
        twice("slowed"),
        twice("fastest"),
        twice_as("plain", "fast"),
        EQUAL.to_owned(),
    ];
    let experiment = experiment(&["plain", "fast", "slowed", "fastest"], &claims.concat());
    let (_, rows) = run(folder.path(), &program, &experiment);
    let verdicts: Vec<_> = judge(&experiment, &rows).into_iter().map(|j| j.verdict).collect();
    use Verdict::{Contradicted, Reproduced, Stronger, Weaker};
    assert_eq!(verdicts, [Reproduced, Weaker, Stronger, Contradicted, Reproduced]);
}

#[test]
fn a_ring_that_drops_and_a_generator_that_falls_behind_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let limit = "saturated = { quantity = 'behind', above = 0.02 }\n";
    let claims = [twice("dropping"), twice("late") + limit, twice("fast") + limit];
    let mut experiment = experiment(&["plain", "fast", "dropping", "late"], &claims.concat());
    let mut behind = experiment.values["rate"].clone();
    behind.at = "/behind".into();
    experiment.values.insert("behind".into(), behind);
    let (_, rows) = run(folder.path(), &program, &experiment);
    let [dropping, late, fast] = judge(&experiment, &rows).try_into().unwrap();
    assert_eq!(dropping.verdict, Verdict::Inconclusive);
    assert!(dropping.reason.contains("/residual is 3, not 0"), "{dropping:?}");
    // Twice as fast, but it offered half of what was planned.
    assert_eq!(late.verdict, Verdict::Inconclusive);
    assert!(late.reason.contains("late is saturated: behind 0.50"), "{late:?}");
    assert_eq!(fast.verdict, Verdict::Reproduced);
}

#[test]
fn a_comparison_finds_a_planted_slowdown_of_two_and_reports_no_false_one() {
    let folder = tempfile::tempdir().unwrap();
    let [then, now] =
        [("then", 2), ("now", 1)].map(|(name, factor)| program(folder.path(), name, factor));
    let machine = Machine::this();
    let compared = |files: [PathBuf; 2]| {
        let programs =
            files.map(|file| Programs { ringtap: file.clone(), ndn: file.clone(), lab: file });
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
fn a_candidate_with_a_different_result_is_wrong_even_if_it_is_fast() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let claims = twice("differing") + EQUAL;
    let experiment = experiment(&["plain", "differing"], &claims);
    let (_, rows) = run(folder.path(), &program, &experiment);
    // The first result counts as right; a different one is wrong, and its row has no value.
    let wrong: Vec<_> = rows.iter().filter(|row| row.state == State::Wrong).collect();
    assert!(
        !wrong.is_empty() && wrong.iter().all(|row| row.value.is_none() && !row.reason.is_empty())
    );
    let [speed, equal] = judge(&experiment, &rows).try_into().unwrap();
    assert_eq!(equal.verdict, Verdict::Contradicted, "{equal:?}");
    assert_ne!(speed.verdict, Verdict::Reproduced, "{speed:?}");
}

#[test]
fn a_failed_trial_is_a_row_with_its_reason_and_others_continue() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let claims = twice("broken") + &twice("lacking");
    let experiment = experiment(&["plain", "broken", "lacking"], &claims);
    let (_, rows) = run(folder.path(), &program, &experiment);
    let of = |name: &str| rows.iter().filter(|row| row.candidate == name).collect::<Vec<_>>();
    assert_eq!(of("plain").len(), 18);
    // One trial per size: a candidate that fails in the first round is left out.
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
fn a_hung_trial_is_killed_after_the_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = experiment(&["plain"], EQUAL);
    experiment.command = "ringtap wait name={name} size={size}".into();
    experiment.time_limit = 1;
    let (_, rows) = run(folder.path(), &program, &experiment);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.reason.contains("timed out after 1 s")), "{rows:?}");
}

#[test]
fn equality_is_inconclusive_if_a_setting_failed_or_hung() {
    for failing in ["broken", "hung"] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "ringtap", 1);
        let mut experiment = experiment(&["plain", "fast", failing], EQUAL);
        experiment.time_limit = 1;
        if failing == "hung" {
            experiment.candidates[2].command = Some("ringtap wait name={name} size={size}".into());
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
fn an_interrupted_run_continues_where_it_stopped() {
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
    // As if the run had been killed while it wrote the fourth row from the end.
    let lines: Vec<_> = text.lines().collect();
    let cut = lines[..lines.len() - 4].join("\n") + "\n" + &lines[lines.len() - 4][..20];
    fs::write(&file, cut).unwrap();
    let (_, again) = run(folder.path(), &program, &experiment);
    assert_eq!((again.len(), called()), (18, 25));
    assert_eq!(again[..14], rows[..14]);
    let (_, last) = run(folder.path(), &program, &experiment);
    assert_eq!((last, called()), (again, 25));
}
