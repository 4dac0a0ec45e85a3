//! Tests of signals: interrupts, hangups, kills.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use ringtap_engine::INTERRUPTED;
use ringtap_io::live::SendOptions;

use crate::common::{office, output_of, ringtap};
use crate::formats::records;
use crate::net::{Background, Net, NetCommands, Right};
use ringtap_testkit::send_all;

/// A monitor that has read the bundled capture on stdin except its last bytes, and waits for more.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    pub(crate) errors: BufReader<std::process::ChildStderr>,
}

impl Waiting {
    pub(crate) fn new(folder: &Path, flags: &[&str]) -> Self {
        Self::with(&mut Command::new(env!("CARGO_BIN_EXE_ringtap")), folder, flags)
    }

    /// As [`Self::new`], started by `command`, to which the flags are appended.
    pub(crate) fn with(command: &mut Command, folder: &Path, flags: &[&str]) -> Self {
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

    /// Waits for the end and returns the exit code, stdout and the rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), out, errors)
    }
}

/// Creates the named pipe `pipe` in a folder.
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
fn an_interrupt_flushes_outputs_and_prints_the_report_which_says_so() {
    for (signal, flags) in [(Signal::INT, &["--sequential"][..]), (Signal::TERM, &["-w", "3"])] {
        let folder = tempfile::tempdir().unwrap();
        let flags = [flags, &["--write", "json:flows.json"]].concat();
        let monitor = Waiting::new(folder.path(), &flags);
        assert!(
            !folder.path().join("flows.json").exists(),
            "the file has its name before it is complete"
        );
        monitor.send(signal);
        let (code, report, errors) = monitor.end();
        assert_eq!(code, Some(130), "{errors}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(
            (&report["packets"]["received"], &report["interrupted"]),
            (&8_191.into(), &true.into())
        );
        assert!(report["flows"]["end_reasons"]["forced"].as_u64().unwrap() > 0);
        let warnings = errors.lines().filter(|line| line.starts_with("warning: "));
        assert_eq!(warnings.collect::<Vec<_>>(), [format!("warning: {INTERRUPTED}")]);
        assert!(!errors.contains("error"), "{errors}");
        let records = fs::read_to_string(folder.path().join("flows.json")).unwrap();
        assert_eq!(records.lines().count() as u64, report["flows"]["records"].as_u64().unwrap());
    }
}

#[test]
fn a_hangup_finishes_the_files_and_starts_new_ones() {
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
    assert_eq!(code, Some(130), "{errors}");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for format in FORMATS {
        let second = folder.path().join(format!("flows.1.{format}"));
        let [before, after] = [first(format), second].map(|file| records(format, &file));
        assert!(before > 0 && after > 0, "{format}: {before} and {after}");
        assert_eq!(before + after, report["flows"]["records"].as_u64().unwrap(), "{format}");
    }
}

#[test]
fn a_killed_run_leaves_no_incomplete_file_under_its_final_name() {
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
fn an_interrupt_before_the_first_byte_gives_an_empty_report() {
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
    assert!(code == Some(130) && out.contains("received"), "{out}{errors}");
    assert!(!errors.contains("error") && errors.contains(INTERRUPTED), "{errors}");
}

/// Interrupts a command whose input `pipe` in its folder got `bytes` and stays open. Returns the
/// exit code, stdout and stderr.
fn interrupted(folder: &Path, flags: &[&str], bytes: &[u8]) -> (Option<i32>, String, String) {
    let pipe = folder.join("pipe");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(flags)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening waits for the reader; afterwards the command handles signals.
    let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
    writer.write_all(bytes).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (mut out, mut errors) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (child.wait().unwrap().code(), out, errors)
}

#[test]
fn each_command_that_reads_files_says_that_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    named_pipe(folder.path());
    let bytes = fs::read(office()).unwrap();
    let run = |flags: &[&str]| interrupted(folder.path(), flags, &bytes[..bytes.len() - 10]);
    for flags in [
        &["monitor", "-r", "pipe", "--fail-on-drop"][..],
        &["monitor", "-r", "pipe", "--sequential"],
        &["filter", "-r", "pipe", "--fail-on-drop"],
        &["filter", "-r", "pipe", "--sequential", "-w", "passed", "--force"],
        &["measure", "-r", "pipe", "--fail-on-drop"],
        &["measure", "-r", "pipe", "--rate", "1M"],
    ] {
        let (code, text, errors) = run(flags);
        assert_eq!(code, Some(130), "{flags:?}: {errors}");
        assert!(errors.contains(&format!("warning: {INTERRUPTED}\n")), "{flags:?}: {errors}");
        assert!(text.contains(INTERRUPTED), "{flags:?}: {text}");
        let (code, report, errors) = run(&[flags, &["--report", "json"]].concat());
        assert_eq!(code, Some(130), "{flags:?}: {errors}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["interrupted"], true, "{flags:?}: {report}");
    }
    let (code, page, _) = run(&["monitor", "-r", "pipe", "--report", "html"]);
    assert!(code == Some(130) && page.contains(INTERRUPTED), "{page}");
    // Without a result there is no report.
    let merge = interrupted(folder.path(), &["merge", "pipe", "--state", "all"], b"ring");
    for (code, text, errors) in [run(&["measure", "-r", "pipe", "--advise"]), merge] {
        assert_eq!((code, text.as_str()), (Some(130), ""), "{errors}");
        assert!(errors.starts_with("error: "), "{errors}");
    }
    assert!(!folder.path().join("all").exists());
}

/// A whole run, and one in parts.
#[test]
fn the_state_of_an_interrupted_run_says_so_and_its_merge_too() {
    let folder = tempfile::tempdir().unwrap();
    named_pipe(folder.path());
    let bytes = fs::read(office()).unwrap();
    let all = ["merge", "a.state", "b.state"];
    let run = |words: &[&str]| output_of(ringtap().current_dir(folder.path()).args(words));
    for parts in [&[][..], &["--interval", "1m"]] {
        let flags =
            [&["monitor", "-r", "pipe", "--state", "a.state", "--force"][..], parts].concat();
        let (code, _, errors) = interrupted(folder.path(), &flags, &bytes[..bytes.len() - 10]);
        assert_eq!(code, Some(130), "{errors}");
        let office = office().display().to_string();
        let flags = [&["monitor", "-r", &office, "--state", "b.state", "--force"][..], parts];
        let (_, errors, code) = run(&flags.concat());
        assert_eq!(code, 0, "{errors}");

        let (text, errors, code) = run(&all);
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains(&format!("warning: {INTERRUPTED}\n")), "{errors}");
        assert!(text.contains(INTERRUPTED) && text.contains("  interrupted\n"), "{text}");
        let (_, errors, code) = run(&[&all[..], &["--state", "c.state", "--force"]].concat());
        assert!(code == 0 && errors.contains(INTERRUPTED), "{errors}");
        for (states, expected) in [(&all[1..], true), (&["c.state"], true), (&["b.state"], false)] {
            let (report, _, _) = run(&[&["merge", "--report", "json"][..], states].concat());
            let report: serde_json::Value = serde_json::from_str(&report).unwrap();
            let runs = report["runs"].as_array().unwrap();
            let interrupted = |one: &serde_json::Value| one["interrupted"] == true;
            assert_eq!(interrupted(&report), expected, "{states:?}: {report}");
            assert_eq!(runs.iter().filter(|run| interrupted(run)).count(), usize::from(expected));
            assert!(runs.iter().all(|run| run["ended"] == true));
        }
    }
}

/// The pipe of an output has no reader: the first signal ends the run.
#[test]
fn a_pipe_without_a_reader_does_not_delay_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = named_pipe(folder.path());
    let reason = "no program reads the pipe: start its reader first";
    let monitor = Waiting::new(folder.path(), &["--state", "pipe"]);
    monitor.send(Signal::TERM);
    let (code, report, errors) = monitor.end();
    assert!(code == Some(1) && report.contains("\"interrupted\": true"), "{code:?}: {report}");
    assert!(errors.contains(reason), "{errors}");
    // With a reader the state arrives.
    let monitor = Waiting::new(folder.path(), &["--state", "pipe"]);
    // Open at once, because it also writes; then the thread's opening does not wait.
    let both = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let mut file = fs::File::open(&pipe).unwrap();
    let reader = std::thread::spawn(move || {
        let mut state = Vec::new();
        file.read_to_end(&mut state).map(|_| state).unwrap()
    });
    monitor.send(Signal::TERM);
    let (code, _, errors) = monitor.end();
    drop(both);
    assert_eq!(code, Some(130), "{errors}");
    assert!(reader.join().unwrap().len() > 1_000);
}

#[test]
fn an_interrupted_generator_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    // The truth is written after the last of a billion frames; the interrupt comes before.
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["generate", "--packets", "1G", "-w", "frames", "--truth", "truth"])
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = |name: &std::ffi::OsStr| name.to_string_lossy().contains("frames");
    while !fs::read_dir(&folder).unwrap().any(|entry| begun(&entry.unwrap().file_name())) {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted after "), "{errors}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// Hangup and interrupt do not wait for a pipe that is not read. Its lost records are counted.
#[test]
fn an_interrupt_ends_the_run_although_an_output_is_blocked() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--write", "json:-", "--write", "csv:flows.csv", "--sequential"];
    let mut monitor = Waiting::new(folder.path(), &flags);
    monitor.send(Signal::HUP);
    monitor.send(Signal::INT);
    // The records are not read before the process has ended, and they are more than a pipe holds.
    let mut errors = String::new();
    monitor.errors.read_to_string(&mut errors).unwrap();
    let code = monitor.child.wait().unwrap().code();
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("error: writing to json:-: it accepts no data"), "{errors}");
    assert!(errors.contains("json:-: ") && errors.contains(" flow records lost"), "{errors}");
    assert!(errors.contains("\"residual\": 0"), "the report is missing: {errors}");
    let whole = ["flows.csv", "flows.1.csv"].map(|name| folder.path().join(name));
    let whole = whole.iter().filter(|file| file.exists()).map(|file| records("csv", file));
    assert_eq!(whole.sum::<u64>(), 1_921, "the other output lacks records");
}

#[test]
fn the_second_interrupt_ends_the_process_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        // The pipe of the records is full and not read, so the run needs a while to end after the
        // first interrupt.
        let flags = ["--write", "json:-", "--write", "csv:flows.csv", "--sequential"];
        let flags = [&flags[..], &["--export", "ipfix-file:flows.ipfix"]].concat();
        let mut monitor = Waiting::new(folder.path(), &flags);
        // Signals are merged until they are handled, so they are sent until two were.
        let end = loop {
            monitor.send(Signal::INT);
            if let Some(end) = monitor.child.try_wait().unwrap() {
                break end;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let code = end.code();
        if code == Some(1) {
            // The second signal came too late, which may happen on a busy machine.
            continue;
        }
        assert_eq!(code, Some(130));
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
        return;
    }
    panic!("the second interrupt always came too late");
}

/// A datagram of flow `number`.
pub(crate) fn frame(number: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0];
    frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 1, 1]);
    frame.extend((1_000 + number).to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Number of flows; their records do not fit in a pipe.
const FLOWS: u16 = 1_500;

/// Flags of a run that writes all records at its end, to stdout and to files.
const RECORDS_AT_THE_END: [&str; 8] = [
    "--sequential",
    "--idle-timeout",
    "1d",
    "--active-timeout",
    "1d",
    "--write=json:-",
    "--write=csv:flows.csv",
    "--write=parquet:flows.parquet",
];

/// Starts a thread that reads a page every 40 ms until `hurry` is set, and then the rest at once.
pub(crate) fn read_slowly(
    mut pipe: std::process::ChildStdout,
    hurry: &Arc<AtomicBool>,
) -> JoinHandle<Vec<u8>> {
    let hurry = Arc::clone(hurry);
    std::thread::spawn(move || {
        let (mut all, mut page) = (Vec::new(), [0; 4096]);
        while !hurry.load(Ordering::Relaxed) {
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

/// Checks that all `count` lines arrived with code 0, or fewer with code 1 because the reader was
/// too slow.
pub(crate) fn check_slowly_read(records: &[u8], count: usize, code: i32) {
    let lines = records.iter().filter(|&&byte| byte == b'\n').count();
    let complete = code == 0 && lines == count;
    assert!(complete || code == 1 && lines <= count, "{lines} of {count} records, code {code}");
}

fn send(net: &Net) {
    let frames: Vec<_> = (0..FLOWS).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
}

/// Starts a monitor with a duration. At its end the records fill the pipe, so the run cannot end.
fn blocked_monitor(net: &Net, folder: &Path) -> Background {
    let base = ["monitor", "-i", "right", "--duration", "8s"];
    let mut command = net.ringtap(Right, &[&base[..], &RECORDS_AT_THE_END].concat());
    command.current_dir(folder);
    let monitor = Background::start(command, "listening: ");
    send(net);
    monitor
}

#[test]
fn an_interrupt_after_the_duration_loses_no_records() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = blocked_monitor(&net, folder.path());
    let mut stdout = monitor.child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let hurry = Arc::default();
    let reader = read_slowly(stdout, &hurry);
    monitor.interrupt();
    monitor.wait_for("already stopping");
    hurry.store(true, Ordering::Relaxed);
    let (_, errors, code) = monitor.end();
    check_slowly_read(&reader.join().unwrap(), usize::from(FLOWS), code);
    assert!(errors.contains("1,500 received"), "the report: {errors}");
    for (format, name) in [("csv", "flows.csv"), ("parquet", "flows.parquet")] {
        assert_eq!(records(format, &folder.path().join(name)), u64::from(FLOWS), "{name}");
    }
}

/// After the duration, with a pipe that is not read, the first interrupt ends the run with its
/// report.
#[test]
fn an_interrupt_after_the_duration_ends_a_run_with_a_blocked_pipe() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = blocked_monitor(&net, folder.path());
    let mut stdout = monitor.child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    monitor.interrupt();
    monitor.wait_for("already stopping");
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("json:-: it accepts no data") && errors.contains("1,500 received"));
    assert!(folder.path().join("flows.csv").exists());
}

/// The names of a process's threads, concatenated.
fn threads(program: &Background) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.child.id())).unwrap();
    // A thread may end during the loop.
    tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect()
}

/// A filter that writes drops to a pipe completes them after its duration and one interrupt.
#[test]
fn an_interrupt_after_the_duration_of_a_filter_loses_no_drops() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pipe = named_pipe(folder.path());
    net.add_output();
    let flags = ["filter", "-i", "right", "-o", "out", "--duration", "8s", "--default", "deny"];
    let mut command = net.ringtap(Right, &[&flags[..], &["--drops", "pipe"]].concat());
    command.current_dir(&folder);
    // Opening a named pipe for writing waits for a reader.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::File::open(pipe).unwrap()
    });
    let mut filter = Background::start(command, "listening: ");
    let mut reader = reader.join().unwrap();
    // The writer writes 256 KiB at a time and a pipe holds 64 KiB, so it waits for the reader.
    send(&net);
    let large = || [frame(0), vec![0; 1_400]].concat();
    send_all(&mut net.sender(&SendOptions::default()), &vec![large(); 600]);
    let mut header = [0; 24];
    reader.read_exact(&mut header).unwrap();
    // The duration is over when the worker has ended; only the writer remains.
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
    assert!(String::from_utf8(report).unwrap().contains("2,100"), "the report is missing");
    assert!(drops.join().unwrap() > 600 * 1_400, "drops are missing");
}
