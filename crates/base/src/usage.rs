//! CPU time, wall time and memory of this process. It measures runs and never reaches an analysis.

use rustix::time::{ClockId, clock_gettime};

/// A reading; subtract two to measure what happened between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Seconds on the monotonic clock.
    pub wall_s: f64,
    /// CPU seconds of all threads.
    pub cpu_s: f64,
    /// Largest resident set so far, bytes; 0 if the system does not report it.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// Reads the clocks and the process's status.
    pub fn now() -> Self {
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
        };
        Self {
            wall_s: seconds(ClockId::Monotonic),
            cpu_s: seconds(ClockId::ProcessCPUTime),
            peak_rss_bytes: peak_rss_bytes().unwrap_or(0),
        }
    }
}

/// Resident memory of the process now, in bytes; `None` if /proc/self/status has no such line.
pub fn rss_bytes() -> Option<u64> {
    of_status("VmRSS:")
}

fn peak_rss_bytes() -> Option<u64> {
    of_status("VmHWM:")
}

/// A size in /proc/self/status.
fn of_status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows() {
        let before = Usage::now();
        let sum: u64 = std::hint::black_box((0..3_000_000u64).map(|n| n * n % 7).sum());
        let after = Usage::now();
        assert!(sum > 0 && after.wall_s > before.wall_s && after.cpu_s > before.cpu_s);
        assert!(after.peak_rss_bytes > 100_000);
    }
}
