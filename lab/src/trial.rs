//! One trial: a process with a time limit, and its report.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::experiment::Reading;
use ringtap_base::{Clock, Waited, try_wait};

/// Maximum number of bytes that are read of a process's output.
const OUTPUT_MAX: u64 = 64 << 20;

/// The result of a process that succeeded.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its standard output; null if that is not JSON.
    pub(crate) report: Value,
    /// Its run time.
    pub(crate) seconds: f64,
    /// User and system time of the process and its descendants.
    pub(crate) cpu_seconds: f64,
    /// Processor time of the thread of the process that used most, if threads were watched.
    pub(crate) busiest: Option<f64>,
}

/// How a process runs.
pub(crate) struct How<'a> {
    /// The time after which it, and what it started, is killed.
    pub(crate) limit: Duration,
    /// Folder of the files that standard output and standard error go to.
    pub(crate) scratch: &'a Path,
    /// The core that all its threads run on, for a prediction; then its threads are watched.
    pub(crate) only: Option<usize>,
}

/// The exit status of a trial that is not possible on this machine (sysexits(3): EX_UNAVAILABLE).
pub const UNAVAILABLE: u8 = 69;

/// Why a trial has no values; its row holds the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TrialError {
    #[error("{0}")]
    Failed(String),
    /// The machine lacks something that the trial requires.
    #[error("{0}")]
    NotPossible(String),
}

impl From<String> for TrialError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

/// Runs `program` and waits for its end.
pub(crate) fn run(
    program: &Path,
    words: &[impl AsRef<OsStr>],
    how: &How,
) -> Result<Ended, TrialError> {
    let How { limit, scratch, only } = *how;
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    let file = |path: &PathBuf| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    let (stdout, stderr) = (file(&out)?, file(&err)?);
    let watch = Clock::start();
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = on_core(only, || command.spawn())
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let mut threads = BTreeMap::new();
    let (status, cpu_seconds) = loop {
        child = match try_wait(child).map_err(|error| error.to_string())? {
            Waited::Ended { status, cpu_s } => break (status, cpu_s),
            Waited::Running(child) => child,
        };
        if only.is_some() {
            watch_threads(child.id(), &mut threads);
        }
        if watch.elapsed() >= limit {
            // Stopped, it starts no more. Those that ended in the meantime cannot be killed.
            if let Some(own) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(own, Signal::STOP);
            }
            descendants(child.id()).into_iter().for_each(|process| {
                let _ = kill_process(process, Signal::KILL);
            });
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("timed out after {} s", limit.as_secs()).into());
        }
        // Polling adds at most 20 ms and, beyond 200 ms, half a percent to the measured time.
        let pause =
            (watch.elapsed() / 200).clamp(Duration::from_millis(1), Duration::from_millis(20));
        std::thread::sleep(pause);
    };
    let seconds = watch.seconds();
    if !status.success() {
        let errors = text(&err);
        let first = errors.lines().map(str::trim).find(|line| !line.is_empty());
        let first = first.unwrap_or("no error message");
        let reason = first.strip_prefix("error: ").unwrap_or(first);
        if status.code() == Some(UNAVAILABLE.into()) {
            return Err(TrialError::NotPossible(reason.into()));
        }
        return Err(format!("{status}: {reason}").into());
    }
    let report = serde_json::from_str(&text(&out)).unwrap_or(Value::Null);
    let busiest = threads.into_values().max().map(|ns| ns as f64 * 1e-9);
    Ok(Ended { report, seconds, cpu_seconds, busiest })
}

/// Calls `start` on this core alone; the processes that it starts stay there.
fn on_core<T>(core: Option<usize>, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(core) = core else { return start() };
    let all = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    let started = start();
    sched_setaffinity(None, &all)?;
    started
}

/// The processes that a process started, and those that these started; none if the kernel does not list them
/// (CONFIG_PROC_CHILDREN).
fn descendants(process: u32) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let mut all = Vec::new();
    for child in lists.flatten().flat_map(|list| numbers(&list)) {
        all.extend(i32::try_from(child).ok().and_then(Pid::from_raw));
        all.extend(descendants(child));
    }
    all
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_whitespace().flat_map(str::parse).collect()
}

/// Notes the processor time of each thread of a process, nanoseconds. What a thread uses between the last call and its end is
/// missing: half a percent, as this is called after each pause.
fn watch_threads(process: u32, threads: &mut BTreeMap<OsString, u64>) {
    let folder = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    for thread in folder.flatten() {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        if let Some(ns) = text.split(' ').next().and_then(|first| first.parse().ok()) {
            threads.insert(thread.file_name(), ns);
        }
    }
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    // A file that cannot be read counts as empty.
    let _ = File::open(path).and_then(|file| file.take(OUTPUT_MAX).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Ended {
    /// The number at `reading`, scaled; with `per`, `per` divided by that number.
    pub(crate) fn value(&self, reading: &Reading, per: Option<f64>) -> Result<f64, String> {
        let raw = match reading.at.as_str() {
            "@seconds" => self.seconds,
            "@busiest" => self.busiest.ok_or("the kernel reports no times of threads")?,
            at => {
                let found = self.report.pointer(at).and_then(Value::as_f64);
                found.ok_or_else(|| format!("the report has no number at {at}"))?
            }
        };
        let value = per.map_or(raw, |of| of / raw) * reading.scale;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(format!("{} is {value}, not a finite number", reading.at))
        }
    }

    /// Checks that the report has the required values at these JSON pointers.
    pub(crate) fn check(&self, sane: &BTreeMap<String, String>) -> Result<(), String> {
        for (at, wanted) in sane {
            let found = self.report.pointer(at).map_or("nothing".into(), plain);
            if found != *wanted {
                return Err(format!("{at} is {found}, not {wanted}"));
            }
        }
        Ok(())
    }

    /// The values at the JSON pointers `equal`, a line each.
    pub(crate) fn result(&self, equal: &[String]) -> Result<String, String> {
        let found = |at: &String| {
            let found = self.report.pointer(at).ok_or_else(|| format!("the report lacks {at}"));
            found.map(plain)
        };
        Ok(equal.iter().map(found).collect::<Result<Vec<_>, _>>()?.join("\n"))
    }
}

/// A JSON value as text; strings without quotation marks.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The system load, averaged over the last minute; 0 if it is unknown.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Ended, TrialError> {
        let scratch = tempfile::tempdir().unwrap();
        let how = How { limit, scratch: scratch.path(), only: None };
        run(Path::new("/bin/sh"), &["-c", script], &how)
    }

    #[test]
    fn a_report_is_read_and_checked() {
        let report = r#"echo '{"rate": 2e6, "plan": {"name": "x"}, "residual": 0}'"#;
        let ended = shell(report, Duration::from_secs(10)).unwrap();
        let reading = |at: &str, per: Option<&str>| Reading {
            at: at.into(),
            unit: "1/s".into(),
            scale: 1e-6,
            per: per.map(str::to_owned),
            any_cores: false,
        };
        assert_eq!(ended.value(&reading("/rate", None), None), Ok(2.0));
        assert_eq!(ended.value(&reading("/rate", Some("n")), Some(8e12)), Ok(4.0));
        assert!(ended.value(&reading("/plan", None), None).unwrap_err().contains("/plan"));
        assert!(ended.value(&reading("@seconds", None), None).unwrap() > 0.0);
        assert_eq!(ended.result(&["/plan/name".into(), "/residual".into()]), Ok("x\n0".into()));
        assert!(ended.result(&["/digest".into()]).is_err());
        let sane = |wanted: &str| [("/residual".to_owned(), wanted.to_owned())].into();
        assert_eq!(ended.check(&sane("0")), Ok(()));
        assert_eq!(ended.check(&sane("1")), Err("/residual is 0, not 1".into()));
    }

    #[test]
    fn the_busiest_thread_of_a_process_on_one_core_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let usable = sched_getaffinity(None).unwrap();
        let core = (0..CpuSet::MAX_CPU).find(|&core| usable.is_set(core)).unwrap();
        let how = How { limit: Duration::from_secs(60), scratch: scratch.path(), only: Some(core) };
        let script = "grep Cpus_allowed_list /proc/self/status; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let ended = run(Path::new("/bin/sh"), &["-c", script], &how).unwrap();
        let allowed = text(&scratch.path().join("stdout"));
        assert_eq!(allowed.split_whitespace().next_back(), Some(core.to_string().as_str()));
        let busiest = ended.busiest.unwrap();
        assert!(busiest > 0.5 * ended.cpu_seconds && busiest <= ended.cpu_seconds + 0.02);
    }

    #[test]
    fn failures_and_timeouts_are_errors_with_a_reason() {
        let failed = shell("echo 'error: no such file' >&2; exit 3", Duration::from_secs(10));
        let reason = failed.unwrap_err().to_string();
        assert!(reason.contains('3') && reason.ends_with(": no such file"), "{reason}");
        let hung = shell("sleep 60", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(hung.contains("timed out"), "{hung}");
        let lacking = shell("echo 'error: no counters' >&2; exit 69", Duration::from_secs(10));
        assert_eq!(lacking.unwrap_err(), TrialError::NotPossible("no counters".into()));
    }

    #[test]
    fn a_timeout_ends_the_processes_that_a_trial_started() {
        let scratch = tempfile::tempdir().unwrap();
        let how = How { limit: Duration::from_secs(2), scratch: scratch.path(), only: None };
        let script = "(sleep 60 & echo $!; wait) & wait";
        let hung = run(Path::new("/bin/sh"), &["-c", script], &how).unwrap_err().to_string();
        assert!(hung.contains("timed out"), "{hung}");
        let started = text(&scratch.path().join("stdout"));
        let stat = format!("/proc/{}/stat", started.trim().parse::<u32>().unwrap());
        let runs = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let watch = Clock::start();
        while runs() && watch.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!runs(), "{stat}");
    }
}
