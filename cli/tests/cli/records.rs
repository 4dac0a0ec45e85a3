//! Flow records to files and stdout.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{office, ringtap, said};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_get_every_record_and_nothing_is_left_half_done() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.csv"), "of an earlier run").unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "--report", "json", "-r"]).arg(office());
    command.args(["--write", "json:flows.json", "--write", "csv:flows.csv"]);
    let (report, errors, code) = said(&mut command);
    assert_eq!((errors.as_str(), code), ("", 0));
    let report: Value = serde_json::from_str(&report).unwrap();
    let records = report["flows"]["records"].as_u64().unwrap() as usize;

    let json = fs::read_to_string(folder.path().join("flows.json")).unwrap();
    let rows: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), records);
    let octets: u64 = rows
        .iter()
        .flat_map(|row| [&row["octetDeltaCount"], &row["reverseOctetDeltaCount"]])
        .map(|octets| octets.as_u64().unwrap())
        .sum();
    assert_eq!(octets, report["octets"]["ip"]);
    assert!(rows.iter().all(|row| row["communityId"].as_str().unwrap().starts_with("1:")));
    let csv = fs::read_to_string(folder.path().join("flows.csv")).unwrap();
    assert_eq!(csv.lines().count(), records + 1);
    assert_eq!(names(folder.path()), ["flows.csv", "flows.json"]);
}

#[test]
fn records_on_stdout_send_the_report_to_stderr() {
    let (records, report, code) =
        said(ringtap().args(["monitor", "-q", "--write", "json:-", "-r"]).arg(office()));
    assert_eq!(code, 0);
    assert_eq!(records.lines().filter(|line| line.starts_with("{\"flow")).count(), 1_921);
    assert!(records.lines().count() == 1_921 && report.contains("1,921 records"), "{report}");
}

/// If one output cannot be opened, nothing runs, and the others leave no trace.
#[test]
fn a_run_that_does_not_start_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.json"), "of an earlier run").unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    command.args(["--write", "json:flows.json", "--write", "csv:no/such/flows.csv"]);
    let (out, errors, code) = said(&mut command);
    assert_eq!((out.as_str(), code), ("", 1), "{errors}");
    assert_eq!(names(folder.path()), ["flows.json"]);
    let text = fs::read_to_string(folder.path().join("flows.json")).unwrap();
    assert_eq!(text, "of an earlier run");
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    let (out, errors, code) = said(command.args(["--write", "json:no/such/folder"]));
    assert_eq!((out.as_str(), code), ("", 1), "before the run: {errors}");
    assert!(errors.contains("json:no/such/folder: No such file"), "{errors}");

    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: a full device needs /dev/full");
        return;
    }
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    let (out, errors, code) =
        said(command.args(["--write", "csv:/dev/full", "--write", "json:whole.json"]));
    assert!(code == 1 && errors.contains("/dev/full"), "{errors}");
    assert!(out.contains("Flows"), "the report comes all the same: {out}");
    assert_eq!(names(folder.path()), ["whole.json"]);
}
