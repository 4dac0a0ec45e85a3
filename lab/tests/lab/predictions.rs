//! Tests of predictions: they are made on one core before the first trial, cannot change unnoticed, say what a claim would be
//! that this machine cannot decide, and are withdrawn if they are wrong where they can be checked.

use std::fs;

use crate::common::{EQUAL, experiment, program, run, run_in_full, twice};
use ringtap_lab::judge::{Judgement, of_run};
use ringtap_lab::prediction::points;
use ringtap_lab::{Experiment, Paper, State, Verdict, report};

/// `fast` needs more cores than any machine has. `slowed` needs two, so its prediction can be checked; it is `factor` times
/// what is measured.
fn predicted(factor: f64) -> Experiment {
    let prediction = format!(
        "\n[prediction]\ntext = 'The slowest thread limits.'\nquantity = 'rate'\n\
         reading = {{ at = '/rate', scale = {factor:?}, unit = 'packets/s' }}\n"
    );
    let claims = twice("fast") + EQUAL + &prediction;
    let mut experiment = experiment(&["plain", "fast", "slowed"], &claims);
    experiment.candidates[1].threads = Some(vec!["5000".into()]);
    experiment.candidates[2].threads = Some(vec!["2".into()]);
    experiment
}

#[test]
fn what_a_machine_cannot_measure_is_predicted_before_the_first_trial() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let calls = folder.path().join("calls");
    let mut experiment = predicted(1.0);
    experiment.command += &format!(" calls={}", calls.display());
    let (runs, rows) = run_in_full(folder.path(), &program, &experiment);
    let rows_of = runs.predicted(&experiment).unwrap();
    // Three candidates, three sizes, six rounds.
    assert_eq!(rows_of.len(), 54);
    assert!(rows_of.iter().all(|row| row.state == State::Predicted && row.value.is_some()));
    assert!(rows.iter().all(|row| row.state != State::Predicted));
    // The first calls are those of the predictions.
    let called = fs::read_to_string(&calls).unwrap();
    let called: Vec<&str> = called.lines().take(rows_of.len()).collect();
    let commands: Vec<&str> = rows_of.iter().map(|row| row.command.as_str()).collect();
    assert_eq!(
        called,
        commands.iter().map(|c| c.strip_prefix("ringtap ").unwrap()).collect::<Vec<_>>()
    );

    let judgements = of_run(&runs, &experiment).unwrap().judgements;
    let [fast, equal]: [Judgement; 2] = judgements.try_into().unwrap();
    assert_eq!((fast.verdict, fast.ours.as_str()), (Verdict::NotPossibleHere, "–"));
    assert!(fast.predicted.ends_with(", which would be reproduced"), "{fast:?}");
    assert!(equal.predicted.is_empty() && equal.verdict == Verdict::Reproduced, "{equal:?}");

    // The same run, started again, predicts nothing again.
    let before = fs::read_to_string(&calls).unwrap();
    run_in_full(folder.path(), &program, &experiment);
    assert_eq!(fs::read_to_string(&calls).unwrap(), before);
}

#[test]
fn a_prediction_that_is_wrong_where_it_can_be_checked_withdraws_the_model() {
    if ringtap_lab::machine::Machine::this().cores.len() < 2 {
        return eprintln!("SKIPPED: checking a prediction needs two cores");
    }
    for (factor, withdrawn) in [(1.0, false), (1.5, true), (0.5, true)] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "ringtap", 1);
        let experiment = predicted(factor);
        let (runs, rows) = run_in_full(folder.path(), &program, &experiment);
        let predicted = runs.predicted(&experiment).unwrap();
        let points = points(&experiment, false, &predicted, &rows).unwrap();
        let errors: Vec<Option<f64>> = points.iter().map(|point| point.error()).collect();
        // Of `fast` nothing was measured.
        assert_eq!((errors.len(), errors.iter().flatten().count()), (9, 6), "{errors:?}");
        assert!(errors.iter().flatten().all(|e| (e - (factor - 1.0)).abs() < 0.15), "{errors:?}");
        let judgements = of_run(&runs, &experiment).unwrap().judgements;
        let said = &judgements[0].predicted;
        assert_eq!(said.contains("by a model that is withdrawn: it is "), withdrawn, "{said}");
        let paper = Paper {
            title: "t".into(),
            authors: "a".into(),
            venue: "v".into(),
            introduction: "i".into(),
            machine: "m".into(),
        };
        let page = report::write_of(&runs, vec![(paper, vec![experiment])]).unwrap();
        let html = fs::read_to_string(page.with_file_name("test.html")).unwrap();
        assert!(html.contains("Predicted from one core: 9 points, 6 of them measured, at most "));
        assert_eq!(html.contains(": the model is withdrawn</summary>"), withdrawn);
        // Nor is it drawn.
        assert_eq!(html.contains("dashed: a model, not a measurement"), !withdrawn);
    }
}

#[test]
fn a_prediction_without_cores_to_check_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = predicted(1.0);
    experiment.candidates.iter_mut().for_each(|one| one.threads = Some(vec!["5000".into()]));
    let (runs, _) = run_in_full(folder.path(), &program, &experiment);
    let judgements = of_run(&runs, &experiment).unwrap().judgements;
    let said = &judgements[0].predicted;
    // Each of the two values may be 15 % off.
    assert!(said.ends_with(", which would decide nothing, unchecked here"), "{said}");
    experiment.claims[0].predicted = false;
    let judgements = of_run(&runs, &experiment).unwrap().judgements;
    assert_eq!(judgements[0].predicted, "");
}

#[test]
fn interrupted_predictions_go_on_and_failing_ones_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = predicted(1.0);
    experiment.candidates[2].set.insert("name".into(), "broken".into());
    let (runs, _) = run_in_full(folder.path(), &program, &experiment);
    let rows = runs.predicted(&experiment).unwrap();
    let failed = rows.iter().filter(|row| row.state == State::Failed);
    assert_eq!((rows.len(), failed.count()), (36 + 3, 3));
    // As if the program had been killed while it made them: a part of them, unsealed, and no trial.
    let file = runs.path.join("predictions/test-tiny.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    fs::remove_file(runs.path.join("test-tiny.csv")).unwrap();
    let facts = fs::read_to_string(runs.path.join("machine.json")).unwrap();
    let (before, sealed) = facts.split_once(",\n  \"predictions\"").unwrap();
    assert!(sealed.contains("test-tiny"));
    fs::write(runs.path.join("machine.json"), format!("{before}\n}}\n")).unwrap();
    let (runs, _) = run_in_full(folder.path(), &program, &experiment);
    let again = runs.predicted(&experiment).unwrap();
    let kept = again.iter().filter(|row| rows.contains(row)).count();
    assert!(again.len() == rows.len() && kept > rows.len() / 3, "{} {kept}", again.len());
}

#[test]
fn predictions_that_changed_after_the_run_began_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let experiment = predicted(1.0);
    let (runs, _) = run_in_full(folder.path(), &program, &experiment);
    let file = runs.path.join("predictions/test-tiny.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen(",predicted,", ",predicted,better", 1)).unwrap();
    let error = of_run(&runs, &experiment).err().unwrap().to_string();
    assert!(error.contains("not those that were made before the trials"), "{error}");
    fs::remove_file(&file).unwrap();
    let error = of_run(&runs, &experiment).err().unwrap().to_string();
    assert!(error.contains("test-tiny.csv"), "{error}");
}

#[test]
fn what_was_measured_first_is_not_predicted_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = predicted(1.0);
    let prediction = experiment.prediction.take();
    run_in_full(folder.path(), &program, &experiment);
    experiment.prediction = prediction;
    let (runs, _) = run_in_full(folder.path(), &program, &experiment);
    assert!(runs.predicted(&experiment).unwrap().is_empty());
    // Neither is a quick run.
    let (runs, _) = run(folder.path(), &program, &experiment);
    assert!(runs.predicted(&experiment).unwrap().is_empty());
}

#[test]
fn a_value_that_cores_do_not_change_is_judged_with_more_threads_than_cores() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "ringtap", 1);
    let mut experiment = predicted(1.0);
    experiment.values.get_mut("rate").unwrap().any_cores = true;
    let (_, rows) = run(folder.path(), &program, &experiment);
    let fast: Vec<_> = rows.iter().filter(|row| row.candidate == "fast").collect();
    assert!(fast.len() == 18 && fast.iter().all(|row| row.state == State::Oversubscribed));
    let judgements = ringtap_lab::judge::judge(&experiment, &rows);
    assert_eq!(judgements[0].verdict, Verdict::Reproduced, "{:?}", judgements[0]);
}
