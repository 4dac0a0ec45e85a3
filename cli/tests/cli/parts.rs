//! States of each interval of a run: in order, in any order and nesting, with some missing, after a kill.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringtap_base::SplitMix;
use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};
use crate::merge::{generated, merge, read, real, report};

/// Monitors a capture with a state for each interval. Returns the report, and the states in order.
fn monitor(path: &Path, folder: &Path, flags: &[&str]) -> (Value, Vec<PathBuf>) {
    let mut command = ringtap();
    command.args(["monitor", "--report", "json", "--digest", "-q", "--memory", "512M", "-r"]);
    command.arg(path).args(flags);
    if !folder.as_os_str().is_empty() {
        command.arg("--state").arg(folder).args(["--probe", "site/1"]);
    }
    let (out, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{}: {errors}", path.display());
    (serde_json::from_str(&out).unwrap(), states(folder))
}

/// The states in a folder, in order.
fn states(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "state"));
    all.sort();
    all
}

/// Merges states in a random order and nesting.
fn nested(mut states: Vec<PathBuf>, folder: &Path, random: &mut SplitMix) -> Value {
    let mut number = 0;
    while states.len() > 3 {
        let group: Vec<_> = (0..2 + random.below(2))
            .map(|_| states.swap_remove(random.below(states.len() as u64) as usize))
            .collect();
        let into = folder.join(format!("merged-{number}"));
        merge(&group.iter().collect::<Vec<_>>(), &into);
        states.push(into);
        number += 1;
    }
    report(&states.iter().collect::<Vec<_>>())
}

#[test]
fn merged_intervals_have_the_digest_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let step = if std::env::var_os("RINGTAP_FULL").is_some() { 1 } else { 5 };
    let mut captures: Vec<_> = real().into_iter().step_by(step).collect();
    captures
        .extend(["w2", "scans", "applications"].map(|name| generated(folder.path(), name, "20k")));
    captures.push(office());
    let (mut random, mut exact, mut all_parts) = (SplitMix::new(3), 0, 0);
    for (number, path) in captures.iter().enumerate() {
        let interval = ["1s", "2500ms", "20s", "1h"][number % 4];
        let flags = match number % 4 {
            0 => &["--interval", interval, "--skeleton", "farm", "--workers", "3"][..],
            1 => &["--interval", interval, "--sequential", "--analyses", "all,tcp"],
            2 => &["--interval", interval, "--analyses", "flows,statistics,talkers,tcp,volumes"],
            _ => &["--interval", interval, "--active-timeout", "2s", "--idle-timeout", "1s"],
        };
        let (whole, _) = monitor(path, Path::new(""), flags);
        let own = tempfile::tempdir().unwrap();
        let (run, parts) = monitor(path, own.path(), flags);
        assert_eq!(run["digest"], whole["digest"], "{}", path.display());
        all_parts += parts.len();
        let merged = nested(parts, own.path(), &mut random);
        let reasons = merged["inexact_reasons"].as_object();
        let has_jumps = reasons.is_some_and(|all| all.contains_key("packets with irregular times"));
        // Of times that step back, large jumps alone are noticed (docs/NETWORK.md).
        if !has_jumps && !read(path).is_some_and(|traffic| traffic.steps_back) {
            assert_eq!(merged["digest"], whole["digest"], "{}: {reasons:?}", path.display());
            exact += 1;
        }
    }
    assert!(exact > 0 && all_parts > 3 * exact, "{all_parts} parts of {exact} runs");
}

#[test]
fn missing_intervals_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, parts) = monitor(&office(), folder.path(), &["--interval", "1s"]);
    let merged =
        |numbers: &[usize]| report(&numbers.iter().map(|&at| &parts[at]).collect::<Vec<_>>());
    let last = parts.len() - 1;

    let beginning = merged(&[0, 1]);
    assert_eq!(beginning["inexact_reasons"], json!({"runs whose end is missing": 1}));
    let run = &beginning["runs"][0];
    assert_eq!((&run["probe"], &run["parts"]), (&json!("site/1"), &json!([[0, 1]])));
    assert_eq!((&run["ended"], &run["missing"]), (&json!(false), &Value::Null));

    let gaps = merged(&[1, 2, last]);
    assert_eq!(gaps["inexact_reasons"], json!({"parts of runs that are missing": last - 2}));
    let missing = &gaps["runs"][0]["missing"];
    assert_eq!(
        (&missing[0]["parts"], &missing[1]["parts"]),
        (&json!([0, 0]), &json!([3, last - 1]))
    );
    let times = (missing[1]["from"].as_str().unwrap(), missing[1]["until"].as_str().unwrap());
    assert!(times.0 < times.1 && times.0.ends_with(".000000000Z"), "{times:?}");
    let (text, _, _) = output_of(ringtap().arg("merge").args([&parts[1], &parts[2], &parts[last]]));
    let line =
        format!("missing: parts 3 to {} of site/1, from {} until {}", last - 1, times.0, times.1);
    assert!(text.contains(&line), "{text}");

    // Flows that end in a part count there, and the packets of a part with it, which is said in all forms.
    let note = "flows count where they end; packets and octets are those of these parts, also by host and name";
    let mut all_rows = ringtap();
    all_rows.args(["merge", "--report", "json", "--top", "10000"]).arg(&parts[last]);
    let ending: Value = serde_json::from_str(&output_of(&mut all_rows).0).unwrap();
    let sources = ending["talkers"]["by_octets"]["source"].as_array().unwrap();
    let sent: u64 = sources.iter().map(|row| row["octets"].as_u64().unwrap()).sum();
    assert_eq!(Some(sent), ending["octets"]["ip"].as_u64());
    assert!(ending["flows"]["records"].as_u64() > ending["packets"]["handled"].as_u64());
    assert_eq!(ending["notes"], json!([note]));
    let html = output_of(ringtap().args(["merge", "--report=html"]).arg(&parts[last])).0;
    assert!(text.contains(note) && html.contains(note), "{text}");
    assert_eq!(report(&parts.iter().collect::<Vec<_>>())["notes"], Value::Null);

    // The packets of all parts add up.
    let packets = |report: &Value| report["packets"]["received"].as_u64().unwrap();
    let each: u64 = (0..=last).map(|at| packets(&merged(&[at]))).sum();
    assert_eq!(each, packets(&merged(&(0..=last).collect::<Vec<_>>())));

    // A folder stands for its states.
    let (all, _, _) = output_of(ringtap().args(["merge", "--report", "json"]).arg(folder.path()));
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!((packets(&all), &all["exact"]), (each, &json!(true)));
    let empty = tempfile::tempdir().unwrap();
    let (_, errors, code) = output_of(ringtap().arg("merge").arg(empty.path()));
    assert!(code == 2 && errors.contains("has no files *.state"), "{errors}");

    let mut twice = ringtap();
    twice.args(["merge", "--digest"]).args(&parts).arg(&parts[2]);
    let (_, errors, code) = output_of(&mut twice);
    assert!(code == 1 && errors.contains("is in two of the states"), "{errors}");
}

#[test]
fn states_of_a_killed_run_can_be_merged() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.args(["monitor", "-q", "-r", "-", "--interval", "1s", "--state"]).arg(folder.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // The input stays open.
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &fs::read(office()).unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while states(folder.path()).len() < 3 {
        assert!(Instant::now() < deadline, "{:?}", states(folder.path()));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let merged = report(&states(folder.path()).iter().collect::<Vec<_>>());
    assert_eq!(merged["inexact_reasons"], json!({"runs whose end is missing": 1}));
    assert!(merged["flows"]["records"].as_u64() > Some(0));
}

#[test]
fn folders_that_cannot_be_used_are_errors() {
    let run = |flags: &[&str]| {
        let (out, errors, code) =
            output_of(ringtap().args(["monitor", "-q", "-r"]).arg(office()).args(flags));
        (out, errors, code)
    };
    let (out, errors, code) = run(&["--state", "/tmp/"]);
    assert!((out.as_str(), code) == ("", 2) && errors.contains("add --interval"), "{errors}");
    let (out, errors, code) = run(&["--interval", "1s", "--state", "/no/such/folder/"]);
    assert!((out.as_str(), code) == ("", 1) && errors.contains("No such file"), "{errors}");
    // Every part that cannot be written is an error, and the report is printed all the same.
    let (out, errors, code) = run(&["--interval", "1s", "--state", "/proc/"]);
    assert!(out.contains("Packets") && code == 1, "{out}");
    assert!(errors.matches("error: writing /proc/").count() > 2, "{errors}");
}
