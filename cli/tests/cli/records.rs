//! Tests of `--write`: flow records in files and on stdout.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{office, output_of, ringtap};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_have_every_record_and_no_temporary_files_remain() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.csv"), "of an earlier run").unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "--report", "json", "-r"]).arg(office());
    command.args(["--force", "--write", "json:flows.json", "--write", "csv:flows.csv"]);
    let (report, errors, code) = output_of(&mut command);
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
fn with_records_on_stdout_the_report_is_on_stderr() {
    let (records, report, code) =
        output_of(ringtap().args(["monitor", "-q", "--write", "json:-", "-r"]).arg(office()));
    assert_eq!(code, 0);
    assert_eq!(records.lines().filter(|line| line.starts_with("{\"flow")).count(), 1_921);
    assert!(records.lines().count() == 1_921 && report.contains("1,921 records"), "{report}");
}

/// If an output cannot be opened, the run does not start, and no other file is created.
#[test]
fn a_run_that_does_not_start_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.json"), "of an earlier run").unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    command.args(["--force", "--write", "json:flows.json", "--write", "csv:no/such/flows.csv"]);
    let (out, errors, code) = output_of(&mut command);
    assert_eq!((out.as_str(), code), ("", 1), "{errors}");
    assert_eq!(names(folder.path()), ["flows.json"]);
    let text = fs::read_to_string(folder.path().join("flows.json")).unwrap();
    assert_eq!(text, "of an earlier run");
}

#[test]
fn write_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    let (out, errors, code) = output_of(command.args(["--write", "json:no/such/folder"]));
    assert_eq!((out.as_str(), code), ("", 1), "before the run: {errors}");
    assert!(errors.contains("json:no/such/folder: No such file"), "{errors}");

    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: a full device needs /dev/full");
        return;
    }
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "-q", "-r"]).arg(office());
    let (out, errors, code) =
        output_of(command.args(["--write", "csv:/dev/full", "--write", "json:whole.json"]));
    assert!(code == 1 && errors.contains("/dev/full"), "{errors}");
    assert!(out.contains("Flows"), "the report is still printed: {out}");
    assert_eq!(names(folder.path()), ["whole.json"]);
}
