//! Tests of the store with a disk that fails (each call of the system fails once, each write also in half or for ever),
//! and with a collector that restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::common::{have, office, output_of, ringtap};
use crate::export::{Collector, free_port, wait_until};
use crate::store::{FLAGS, feed, lines, run, verify};

/// Runs a command under strace, which lets the `number`-th call of a system call fail.
fn failing(folder: &Path, call: &str, number: u32) -> Option<(String, i32)> {
    if !have("strace") {
        eprintln!("SKIPPED: errors are injected by strace (Debian package strace)");
        return None;
    }
    let mut command = assert_cmd::Command::new("strace");
    let inject = format!("inject={call}:error=EIO:when={number}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
    command.args([env!("CARGO_BIN_EXE_ringtap"), "monitor", "-r"]).arg(office());
    let (_, errors, code) = output_of(command.args(FLAGS).arg("--sequential").current_dir(folder));
    if errors.contains("ptrace") && code != 0 {
        eprintln!("SKIPPED: strace cannot trace here: {errors}");
        return None;
    }
    Some((errors, code))
}

#[test]
fn each_call_that_fails_is_reported_and_the_next_run_finds_a_store_that_says_so() {
    for call in ["fsync", "fdatasync", "renameat2", "ftruncate", "mkdir", "unlink"] {
        for number in 1..40 {
            let folder = tempfile::tempdir().unwrap();
            let Some((errors, code)) = failing(folder.path(), call, number) else { return };
            let injected = errors.contains("Input/output error") || errors.contains("os error 5");
            // The next run completes it.
            let (_, later, next) = {
                let capture = office();
                let read = ["-r", capture.to_str().unwrap()];
                run(folder.path(), "monitor", &[&read, &FLAGS[..]].concat())
            };
            assert_eq!(next, 0, "{call} {number}: {later}");
            let (result, _) = verify(folder.path(), &[]);
            let records: u64 = result["probes"][0]["flow_records"].as_u64().unwrap();
            let gaps = result["gaps"].as_array().unwrap();
            let kinds: BTreeSet<_> = gaps.iter().map(|gap| gap["kind"].as_str().unwrap()).collect();
            let known = ["run-ended-early", "records-lost", "ledger-open"];
            assert!(kinds.iter().all(|kind| known.contains(kind)), "{call} {number}: {result}");
            // A run that reports success has all records.
            if code == 0 {
                assert!(kinds.is_empty(), "{call} {number}: {result} {errors}");
                assert!(records > 0);
            } else {
                assert!(injected, "{call} {number}: {errors}");
            }
            if !injected && number > 3 {
                break;
            }
        }
    }
}

/// Flow records, events, alerts and totals.
type Rows = BTreeMap<String, u64>;

/// The rows of the files that the manifest of a folder's store names, without those that a later run completed.
fn listed(folder: &Path) -> Rows {
    let mut rows = Rows::new();
    let lines = lines(folder, "manifest/").into_iter();
    for line in lines.filter(|line| line["kind"] == "file" && line["cut_octets"].is_null()) {
        let of = line["of"].as_str().unwrap().to_owned();
        *rows.entry(of).or_default() += line["rows"].as_u64().unwrap();
    }
    rows
}

/// The library that lets writes fail, built in this folder.
fn failing_writes(folder: &Path) -> Option<PathBuf> {
    const CODE: &str = include_str!("failing_writes.c");
    if !have("cc") {
        eprintln!("SKIPPED: writes fail by a library in C (Debian package gcc)");
        return None;
    }
    let (code, library) = (folder.join("failing_writes.c"), folder.join("failing_writes.so"));
    fs::write(&code, CODE).unwrap();
    let mut command = assert_cmd::Command::new("cc");
    command.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"]);
    command.arg(&library).arg(&code).arg("-ldl").assert().success();
    Some(library)
}

/// How writes fail: the mode of the library, the error, and its text.
const FAULTS: [(&str, i32, &str); 3] = [
    ("once", 5, "Input/output error"),
    ("half", 28, "No space left on device"),
    ("on", 28, "No space left on device"),
];

/// Stores the bundled capture, while writes fail to files of the store whose paths begin so, from a number on. Returns
/// stderr, the exit code and the number of writes.
fn with_failing_writes(
    library: &Path,
    folder: &Path,
    begin: &str,
    fault: (&str, i32),
    number: u64,
) -> (String, i32, u64) {
    let log = folder.join("writes");
    let begin = format!("{}/store/{begin}", folder.canonicalize().unwrap().display());
    let mut command = ringtap();
    command.env("LD_PRELOAD", library).env("FAULT_FOLDER", begin).env("FAULT_LOG", &log);
    command.env("FAULT_HOW", fault.0).env("FAULT_ERRNO", fault.1.to_string());
    command.env("FAULT_AT", number.to_string()).current_dir(folder);
    command.args(["monitor", "--sequential", "-r"]).arg(office());
    let (_, errors, code) = output_of(command.args(FLAGS));
    (errors, code, log.metadata().map_or(0, |data| data.len()))
}

/// The gaps of a folder's store, and how many records are lost by kind.
fn losses(folder: &Path) -> (Vec<String>, Rows) {
    let (result, _) = verify(folder, &[]);
    let (mut kinds, mut lost) = (Vec::new(), Rows::new());
    for gap in result["gaps"].as_array().unwrap() {
        let kind = gap["kind"].as_str().unwrap();
        if kind == "records-lost" {
            let output = gap["output"].as_str().unwrap().to_owned();
            *lost.entry(output).or_default() += gap["count"].as_u64().unwrap();
        }
        kinds.push(kind.to_owned());
    }
    (kinds, lost)
}

#[test]
fn each_write_that_fails_loses_nothing_or_what_is_counted() {
    let tools = tempfile::tempdir().unwrap();
    let Some(library) = failing_writes(tools.path()) else { return };
    let whole = tempfile::tempdir().unwrap();
    let none = ("once", 0);
    assert_eq!(with_failing_writes(&library, whole.path(), "", none, 0).1, 0);
    let made = listed(whole.path());
    assert_eq!(made.len(), 4);
    let (mut complete, mut lossy) = (0, 0);
    for begin in [".", "manifest/", "flows/", "events/", "alerts/", "totals/"] {
        let clean = tempfile::tempdir().unwrap();
        let (_, code, writes) = with_failing_writes(&library, clean.path(), begin, none, 0);
        assert!(code == 0 && writes > 0, "{begin}: {code}, {writes} writes");
        for (how, error, text) in FAULTS {
            for number in 1..=writes {
                let folder = tempfile::tempdir().unwrap();
                let folder = folder.path();
                let fault = (how, error);
                let (errors, code, _) = with_failing_writes(&library, folder, begin, fault, number);
                let case = format!("{begin} {how} {number}: {errors}");
                assert!(code == 0 || errors.contains(text), "{case}");
                let is_begun = folder.join("store").exists();
                assert!(is_begun || code == 1, "{case}");
                let (mut is_early, mut lost) = (!is_begun, Rows::new());
                if is_begun {
                    let (gaps, found) = losses(folder);
                    is_early = gaps.iter().any(|kind| kind == "run-ended-early");
                    lost = found;
                    assert!(code == 1 || gaps.is_empty(), "{case}");
                    // All are in files, or counted as lost.
                    let mut all = listed(folder);
                    for (kind, rows) in &lost {
                        *all.entry(kind.clone()).or_default() += rows;
                    }
                    assert!(is_early || all == made, "{case} {gaps:?} {all:?}");
                    // One failure loses a line of the manifest or a file only at the start.
                    assert!(how == "on" || gaps.is_empty(), "{case} {gaps:?}");
                    *if gaps.is_empty() { &mut complete } else { &mut lossy } += 1;
                }
                // The next run completes it.
                let capture = office();
                let read = ["--sequential", "-r", capture.to_str().unwrap()];
                let (_, later, next) = run(folder, "monitor", &[&read, &FLAGS[..]].concat());
                assert_eq!(next, 0, "{case} {later}");
                let (gaps, still_lost) = losses(folder);
                let known = ["run-ended-early", "records-lost"];
                assert!(gaps.iter().all(|kind| known.contains(&&kind[..])), "{case} {gaps:?}");
                assert_eq!(still_lost, lost, "{case}");
                // No record is in the store twice.
                let result = verify(folder, &[]).0;
                let flows = result["probes"][0]["flow_records"].as_u64().unwrap();
                let first = flows - made["flows"];
                assert!(first <= made["flows"], "{case}");
                let counted = first + lost.get("flows").copied().unwrap_or(0);
                assert!(is_early || counted >= made["flows"], "{case}");
            }
        }
    }
    assert!(complete > 0 && lossy > 0, "{complete} {lossy}");
}

/// The number of records of one direction, by the second in which their flows end.
type Ends = BTreeMap<u64, u64>;

/// What files of nfcapd have.
fn arrived(folder: &Path) -> Ends {
    let mut command = Command::new("nfdump");
    command.env("TZ", "UTC").args(["-q", "-N", "-o", "fmt:%te", "-R"]).arg(folder);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut ends = Ends::new();
    for line in text.lines().filter(|line| line.contains(':')) {
        // 2026-11-26 10:05:01.234
        let (date, time) = line.trim().split_once(' ').unwrap();
        assert_eq!(date, "2026-11-26");
        let seconds = time.split('.').next().unwrap().split(':');
        let of_day = seconds.fold(0, |all, part| all * 60 + part.parse::<u64>().unwrap());
        *ends.entry(1_795_651_200 + of_day).or_default() += 1;
    }
    ends
}

#[test]
fn a_collector_that_restarts_is_missing_what_the_store_says() {
    if !have("nfcapd") || !have("nfdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let port = free_port();
    let collector = |name: &str| {
        fs::create_dir_all(path(name)).unwrap();
        let mut command = Command::new("nfcapd");
        command.args(["-b", "127.0.0.1", "-p", &port.to_string(), "-t", "86400", "-w"]);
        Collector::start(command.arg(path(name)), port)
    };
    let first = collector("arrived/1");
    let url = format!("netflow9://127.0.0.1:{port}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "-r", "-", "--idle-timeout", "1s", "--memory", "320M"])
        .args(["--store", "store", "--probe", "edge", "--rotate", "1s", "--cut", "1s"])
        .args(["--template-refresh", "1s", "--write", "json:all-%s.json", "--export", &url])
        .current_dir(&folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (to, errors) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let goes_on = Arc::new(AtomicBool::new(true));
    let go_on = Arc::clone(&goes_on);
    let sender = std::thread::spawn(move || {
        feed(to, 0, || {
            // As fast as packet time.
            std::thread::sleep(Duration::from_micros(50));
            go_on.load(Ordering::Relaxed)
        })
    });
    // The lines of the manifest in which the counts of the output to the collector meet a condition.
    let lines_with = |condition: &dyn Fn(&Value) -> bool| {
        let lines = if path("store/manifest").exists() {
            lines(folder.path(), "manifest/")
        } else {
            Vec::new()
        };
        lines.iter().filter(|line| condition(&line["so_far"]["outputs"][&url])).count()
    };
    wait_until("records are sent", || lines_with(&|counts| counts["sent"].as_u64() > Some(0)) > 2);
    first.end(port);
    let mut errors = BufReader::new(errors).lines();
    let mut line_with = |words: &str| {
        let found = errors.by_ref().map(Result::unwrap).find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("ended before {words:?}"))
    };
    let error = line_with("refused");
    assert!(error.contains(&url), "{error}");
    let second = collector("arrived/2");
    line_with(&format!("{url}: works again"));
    let before = lines_with(&|_| true);
    wait_until("more records are sent", || lines_with(&|_| true) > before + 3);
    goes_on.store(false, Ordering::Relaxed);
    sender.join().unwrap();
    errors.for_each(drop);
    child.wait().unwrap();
    second.end(port);

    let mut missing = Ends::new();
    for entry in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if !entry.file_name().to_str().unwrap().starts_with("all-") {
            continue;
        }
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| record[name].as_u64().unwrap_or(0);
            let packets = ["packetDeltaCount", "reversePacketDeltaCount"].map(number);
            let directions = packets.iter().filter(|&&packets| packets > 0).count() as u64;
            *missing.entry(number("flowEndMilliseconds") / 1_000).or_default() += directions;
        }
    }
    let all = missing.len();
    for (second, records) in arrived(&path("arrived")) {
        *missing.get_mut(&second).unwrap() -= records;
    }
    missing.retain(|_, records| *records > 0);
    assert!(!missing.is_empty() && missing.len() < all, "{missing:?} of {all}");
    let (result, code) = verify(folder.path(), &["--against", "arrived"]);
    assert_eq!(code, 1, "{result}");
    let (mut found, mut lost) = (Ends::new(), 0);
    for gap in result["gaps"].as_array().unwrap() {
        let count = gap["count"].as_u64().unwrap();
        match gap["kind"].as_str().unwrap() {
            "not-arrived" => {
                assert_eq!(gap["output"], "flows", "{gap}");
                assert_eq!(
                    gap["interval"][1].as_u64(),
                    gap["interval"][0].as_u64().map(|at| at + 1)
                );
                found.insert(gap["interval"][0].as_u64().unwrap(), count);
            }
            "records-lost" => {
                assert_eq!(gap["output"], url, "{gap}");
                assert!(gap["interval"][0].as_u64() <= gap["interval"][1].as_u64(), "{gap}");
                lost += count;
            }
            _ => panic!("{gap}"),
        }
    }
    assert_eq!(found, missing);
    // Datagrams are lost, too, before the system reports that the port is closed.
    assert!((1..=missing.values().sum()).contains(&lost), "{lost} of {missing:?}");
}
