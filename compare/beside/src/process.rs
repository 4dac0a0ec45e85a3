//! Trials in child processes, and CPU clocks.

use rustix::time::{ClockId, clock_gettime};
use std::process::Command;

/// Runs this program with these arguments; returns its trimmed standard output.
pub fn child(what: &str, arguments: &[u64]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|why| format!("this program: {why}"))?;
    let output = Command::new(program)
        .arg(what)
        .args(arguments.iter().map(u64::to_string))
        .output()
        .map_err(|why| format!("starting a trial: {why}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, why.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Parses the arguments that [`child`] passed.
pub fn numbers<const N: usize>(arguments: &[String]) -> Result<[u64; N], String> {
    let numbers = arguments.iter().map(|n| number(n)).collect::<Result<Vec<u64>, String>>()?;
    numbers.try_into().map_err(|_| format!("expected {N} numbers"))
}

pub fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("invalid number \"{text}\""))
}

/// CPU seconds of the calling thread so far.
pub fn thread_cpu() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU seconds of this process so far.
pub fn process_cpu() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
