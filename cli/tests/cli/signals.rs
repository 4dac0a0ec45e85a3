//! Signals, on a stream that never ends by itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::office;
use crate::formats::records;

/// A monitor that has read the bundled capture, all but its end, and waits for more.
pub(crate) struct Waiting {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Waiting {
    pub(crate) fn new(folder: &Path, flags: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
            .args(["monitor", "-r", "-", "--stats", "20ms", "--report", "json"])
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let bytes = fs::read(office()).unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(&bytes[..bytes.len() - 10]).unwrap();
        stdin.flush().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        wait_for(&mut errors, " 8,191 packets");
        Self { child, errors }
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The exit code, stdout, and what else came on stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), out, errors)
    }
}

/// Reads lines until one contains `words`.
fn wait_for(lines: &mut impl BufRead, words: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "ended before {words:?}");
    }
}

#[test]
fn an_interrupt_flushes_reports_and_succeeds() {
    for (signal, flags) in [(Signal::INT, &["--sequential"][..]), (Signal::TERM, &["-w", "3"])] {
        let folder = tempfile::tempdir().unwrap();
        let flags = [flags, &["--write", "json:flows.json"]].concat();
        let monitor = Waiting::new(folder.path(), &flags);
        assert!(!folder.path().join("flows.json").exists(), "not before it is whole");
        monitor.send(signal);
        let (code, report, errors) = monitor.end();
        assert_eq!(code, Some(0), "{errors}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["packets"]["received"], 8_191);
        assert!(report["flows"]["end_reasons"]["forced"].as_u64().unwrap() > 0);
        assert!(!errors.contains("error") && !errors.contains("warning"), "{errors}");
        let records = fs::read_to_string(folder.path().join("flows.json")).unwrap();
        assert_eq!(records.lines().count() as u64, report["flows"]["records"].as_u64().unwrap());
    }
}

#[test]
fn a_hangup_finishes_the_files_and_begins_new_ones() {
    const FORMATS: [&str; 5] = ["csv", "json", "eve", "zeek", "parquet"];
    let folder = tempfile::tempdir().unwrap();
    let writes = FORMATS.map(|format| format!("--write={format}:flows.{format}"));
    let flags: Vec<&str> =
        writes.iter().map(String::as_str).chain(["--sequential", "--idle-timeout=1s"]).collect();
    let mut monitor = Waiting::new(folder.path(), &flags);
    monitor.send(Signal::HUP);
    // The attendant takes signals in turn: when this one is done, so is the one before.
    let first = |format: &str| folder.path().join(format!("flows.{format}"));
    while !FORMATS.iter().all(|format| first(format).exists()) {
        wait_for(&mut monitor.errors, "stats: ");
    }
    monitor.send(Signal::INT);
    let (code, report, errors) = monitor.end();
    assert_eq!(code, Some(0), "{errors}");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for format in FORMATS {
        let second = folder.path().join(format!("flows.{format}.1"));
        let [before, after] = [first(format), second].map(|file| records(format, &file));
        assert!(before > 0 && after > 0, "{format}: {before} and {after}");
        assert_eq!(before + after, report["flows"]["records"].as_u64().unwrap(), "{format}");
    }
}

/// Not even a kill leaves a file that looks whole.
#[test]
fn a_kill_leaves_no_half_file_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let monitor =
        Waiting::new(folder.path(), &["--write=parquet:flows.parquet", "--write=zeek:conn.log"]);
    monitor.send(Signal::KILL);
    let (code, _, _) = monitor.end();
    assert_eq!(code, None, "a signal ended it");
    for name in ["flows.parquet", "conn.log"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn before_the_first_byte_an_interrupt_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "--stats", "20ms", "-r"])
        .arg(&pipe)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    wait_for(&mut errors, " 0 packets");
    let monitor = Waiting { child, errors };
    monitor.send(Signal::INT);
    let (code, out, errors) = monitor.end();
    assert!(code == Some(0) && out.contains("received"), "{out}{errors}");
}

#[test]
fn the_second_interrupt_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody reads the records, which fill the pipe: the first interrupt cannot be done with.
    let flags = ["--write", "json:-", "--write", "csv:flows.csv", "--sequential"];
    let flags = [&flags[..], &["--export", "ipfix-file:flows.ipfix"]].concat();
    let mut monitor = Waiting::new(folder.path(), &flags);
    monitor.send(Signal::INT);
    let mut first = [0; 1];
    monitor.child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    monitor.send(Signal::INT);
    assert_eq!(monitor.child.wait().unwrap().code(), Some(130));
    assert!(!folder.path().join("flows.csv").exists());
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("ipfix")));
}
