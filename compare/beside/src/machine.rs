//! A description of the machine.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;

/// CPU model, clock rate and kernel, in one line.
pub fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let unknown = || "unknown".to_owned();
    let model = field("model name").unwrap_or_else(unknown);
    let megahertz = field("cpu MHz").unwrap_or_else(unknown);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown());
    format!("{model}, {megahertz} MHz, Linux {}", kernel.trim())
}

/// The CPUs that this process may use.
pub fn allowed_cpus() -> Result<Vec<usize>, String> {
    let allowed = sched_getaffinity(None).map_err(|why| format!("allowed CPUs: {why}"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect())
}
