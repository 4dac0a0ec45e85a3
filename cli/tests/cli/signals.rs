//! Signals, on a stream that never ends by itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use ringtap_io::live::SendOptions;

use crate::common::office;
use crate::formats::records;
use crate::net::{Beside, Net, Right, Within};
use ringtap_testkit::send_all;

/// A monitor that has read the bundled capture, all but its end, and waits for more.
pub(crate) struct Waiting {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Waiting {
    pub(crate) fn new(folder: &Path, flags: &[&str]) -> Self {
        Self::by(&mut Command::new(env!("CARGO_BIN_EXE_ringtap")), folder, flags)
    }

    /// The same, started by a command that takes the flags.
    pub(crate) fn by(command: &mut Command, folder: &Path, flags: &[&str]) -> Self {
        let child = command
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

/// A named pipe of that name in a folder.
fn named_pipe(folder: &Path) -> PathBuf {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let pipe = folder.join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    pipe
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
    let pipe = named_pipe(folder.path());
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

/// A reader that takes nothing: neither a hangup nor an interrupt waits for it, and what it did not get is counted.
#[test]
fn an_interrupt_ends_it_whatever_an_output_does() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--write", "json:-", "--write", "csv:flows.csv", "--sequential"];
    let mut monitor = Waiting::new(folder.path(), &flags);
    monitor.send(Signal::HUP);
    monitor.send(Signal::INT);
    // Nobody reads the records before it has ended; they are more than a pipe holds.
    let mut errors = String::new();
    monitor.errors.read_to_string(&mut errors).unwrap();
    let code = monitor.child.wait().unwrap().code();
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("error: writing to json:-: it takes nothing"), "{errors}");
    assert!(errors.contains("json:-: ") && errors.contains(" flow records lost"), "{errors}");
    assert!(errors.contains("\"residual\": 0"), "the report is there: {errors}");
    let whole = ["flows.csv", "flows.csv.1"].map(|name| folder.path().join(name));
    let whole = whole.iter().filter(|file| file.exists()).map(|file| records("csv", file));
    assert_eq!(whole.sum::<u64>(), 1_921, "the other output has everything");
}

#[test]
fn the_second_interrupt_ends_it_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        // Nobody reads the records, which fill the pipe: the first interrupt is done with after a while only.
        let flags = ["--write", "json:-", "--write", "csv:flows.csv", "--sequential"];
        let flags = [&flags[..], &["--export", "ipfix-file:flows.ipfix"]].concat();
        let mut monitor = Waiting::new(folder.path(), &flags);
        monitor.send(Signal::INT);
        // Two signals that come together are one to the kernel.
        std::thread::sleep(Duration::from_millis(150));
        monitor.send(Signal::INT);
        let code = monitor.child.wait().unwrap().code();
        if code == Some(1) {
            // The second one came too late. That may happen on a machine with other things to do.
            continue;
        }
        assert_eq!(code, Some(130));
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
        return;
    }
    panic!("the second interrupt always came too late");
}

/// A datagram of a flow of its own.
pub(crate) fn frame(number: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0];
    frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1]);
    frame.extend((1_000 + number).to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Flows whose records do not fit a pipe.
const FLOWS: u16 = 1_500;

/// Flags of a run with a file of records, and more records on stdout, all of which come at the end.
const AT_THE_END: [&str; 8] = [
    "--sequential",
    "--idle-timeout",
    "1d",
    "--active-timeout",
    "1d",
    "--write=json:-",
    "--write=csv:flows.csv",
    "--write=parquet:flows.parquet",
];

/// Reads a page now and then, as a slow reader does, until `told`, and then the rest at once.
pub(crate) fn read_slowly(
    mut pipe: std::process::ChildStdout,
    told: &Arc<AtomicBool>,
) -> JoinHandle<Vec<u8>> {
    let told = Arc::clone(told);
    std::thread::spawn(move || {
        let (mut all, mut page) = (Vec::new(), [0; 4096]);
        while !told.load(Ordering::Relaxed) {
            match pipe.read(&mut page).unwrap() {
                0 => break,
                read => all.extend_from_slice(&page[..read]),
            }
            std::thread::sleep(Duration::from_millis(40));
        }
        pipe.read_to_end(&mut all).unwrap();
        all
    })
}

/// All records came, less the byte that was read first. If the machine kept the reader waiting for too long, some did not,
/// and the exit code says so.
pub(crate) fn check_slowly_read(records: &[u8], count: usize, code: i32) {
    let lines = records.iter().filter(|&&byte| byte == b'\n').count();
    let complete = code == 0 && lines == count;
    assert!(complete || code == 1 && lines <= count, "{lines} of {count} records, code {code}");
}

fn send(net: &Net) {
    let frames: Vec<_> = (0..FLOWS).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
}

/// A monitor whose duration ends. Records come then, more than the pipe takes, so the run cannot end.
fn filled(net: &Net, folder: &Path) -> Beside {
    let base = ["monitor", "-i", "right", "--duration", "8s"];
    let mut command = net.ringtap(Right, &[&base[..], &AT_THE_END].concat());
    command.current_dir(folder);
    let monitor = Beside::start(command, "listening: ");
    send(net);
    monitor
}

#[test]
fn an_interrupt_after_the_duration_destroys_nothing() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = filled(&net, folder.path());
    let mut stdout = monitor.child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let told = Arc::default();
    let reader = read_slowly(stdout, &told);
    monitor.interrupt();
    monitor.wait_for("already stopping");
    told.store(true, Ordering::Relaxed);
    let (_, errors, code) = monitor.end();
    check_slowly_read(&reader.join().unwrap(), usize::from(FLOWS), code);
    assert!(errors.contains("1,500 received"), "the report: {errors}");
    for (format, name) in [("csv", "flows.csv"), ("parquet", "flows.parquet")] {
        assert_eq!(records(format, &folder.path().join(name)), u64::from(FLOWS), "{name}");
    }
}

/// The duration is over and nobody reads the pipe: the first interrupt ends the run, with its report.
#[test]
fn an_interrupt_after_the_duration_releases_a_pipe_that_nobody_reads() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = filled(&net, folder.path());
    let mut stdout = monitor.child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    monitor.interrupt();
    monitor.wait_for("already stopping");
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("json:-: it takes nothing") && errors.contains("1,500 received"));
    assert!(folder.path().join("flows.csv").exists());
}

/// The names of a program's threads.
fn threads(program: &Beside) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.child.id())).unwrap();
    // A thread may end while it is looked at.
    tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect()
}

/// The same for commands that have no records.
#[test]
fn an_interrupt_after_the_duration_of_another_command_is_the_first() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pipe = named_pipe(folder.path());
    net.add_output();
    let flags = ["filter", "-i", "right", "-o", "out", "--duration", "8s", "--default", "deny"];
    let mut command = net.ringtap(Right, &[&flags[..], &["--drops", "pipe"]].concat());
    command.current_dir(&folder);
    // A reader must be there for the pipe to be opened.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::File::open(pipe).unwrap()
    });
    let mut filter = Beside::start(command, "listening: ");
    let mut reader = reader.join().unwrap();
    // 256 KiB are written at a time, and a pipe takes 64: the writer waits for the reader.
    send(&net);
    let large = || [frame(0), vec![0; 1_400]].concat();
    send_all(&mut net.sender(&SendOptions::default()), &vec![large(); 600]);
    let mut header = [0; 24];
    reader.read_exact(&mut header).unwrap();
    // The duration is over when the worker has ended; what is left is the writer.
    while threads(&filter).contains("queue 0") {
        std::thread::sleep(Duration::from_millis(50));
    }
    filter.interrupt();
    filter.wait_for("already stopping");
    let drops = std::thread::spawn(move || {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        rest.len()
    });
    let (report, errors, code) = filter.end();
    assert_eq!(code, 0, "{errors}");
    assert!(String::from_utf8(report).unwrap().contains("2,100"), "the report is made");
    assert!(drops.join().unwrap() > 600 * 1_400, "the drops are whole");
}
