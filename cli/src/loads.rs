//! The CPU load of each thread of this process, from /proc/self/task.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// One thread's load since the last reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ThreadLoad {
    pub(crate) thread: String,
    /// Share of one core, 0 to 1.
    pub(crate) busy: f64,
}

impl ThreadLoad {
    /// The place of the output that it writes, in the order of the command line.
    pub(crate) fn output(&self) -> Option<usize> {
        let number: usize = self.thread.strip_prefix("output ")?.parse().ok()?;
        number.checked_sub(1)
    }
}

/// Bytes of a thread's name that the kernel keeps.
const KEPT: usize = 15;

/// The CPU times at the last reading.
#[derive(Default)]
pub(crate) struct Loads {
    /// Whole names of threads.
    names: Vec<String>,
    elapsed: Duration,
    /// CPU time in clock ticks, by thread.
    ticks: BTreeMap<u32, u64>,
}

impl Loads {
    /// The loads of a run whose threads have these names, among others.
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names, ..Self::default() }
    }

    /// The whole name of a thread.
    fn whole(&self, kept: String) -> String {
        let mut whole = self.names.iter().filter(|name| name.starts_with(&kept));
        match (kept.len(), whole.next(), whole.next()) {
            (KEPT, Some(name), None) => name.clone(),
            _ => kept,
        }
    }

    /// The load of each thread since the last call; empty for the first call. `elapsed` must grow.
    pub(crate) fn read(&mut self, elapsed: Duration) -> Vec<ThreadLoad> {
        let past_s = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        self.elapsed = elapsed;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut loads = Vec::new();
        let mut seen = BTreeMap::new();
        for (id, thread, ticks) in threads() {
            if let Some(before) = self.ticks.get(&id)
                && past_s > 0.0
            {
                let busy = ticks.saturating_sub(*before) as f64 / per_second / past_s;
                loads.push(ThreadLoad { thread: self.whole(thread), busy: busy.min(1.0) });
            }
            seen.insert(id, ticks);
        }
        self.ticks = seen;
        loads
    }
}

/// Id, name and ticks of each thread.
fn threads() -> impl Iterator<Item = (u32, String, u64)> {
    fs::read_dir("/proc/self/task").into_iter().flatten().flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (thread, ticks) = parse_stat(&stat)?;
        Some((id, thread, ticks))
    })
}

/// Name and ticks (user and kernel mode) in a line as in proc_pid_stat(5). The name is in
/// parentheses and may contain any characters.
fn parse_stat(stat: &str) -> Option<(String, u64)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name.into(), user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_parsed_for_any_thread_name() {
        let rest = "R 1 2 3 4 5 6 7 8 9 10 70 7 0 0 20 0 3";
        assert_eq!(
            parse_stat(&format!("12 (queue 0 + merg) {rest}")),
            Some(("queue 0 + merg".into(), 77))
        );
        assert_eq!(parse_stat(&format!("12 (a) (b)) {rest}")), Some(("a) (b)".into(), 77)));
        assert_eq!(parse_stat("12 (short) R 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn names_that_the_kernel_cuts_are_completed() {
        let names = ["worker 0", "worker 1 + merger", "dispatcher 10 + a", "dispatcher 10 + b"];
        let loads = Loads::new(names.map(str::to_owned).to_vec());
        let whole = |name: &str| loads.whole(name.to_owned());
        assert_eq!(whole("worker 1 + merg"), "worker 1 + merger");
        assert_eq!(whole("worker 0"), "worker 0");
        assert_eq!(whole("worker 1"), "worker 1");
        assert_eq!(whole("dispatcher 10 +"), "dispatcher 10 +");
    }

    #[test]
    fn a_busy_thread_has_a_high_load() {
        let mut loads = Loads::default();
        assert!(loads.read(Duration::ZERO).is_empty());
        // Half a second of this thread's CPU time, however long it takes.
        let spent = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let (begin, mut sum) = (spent(), 0u64);
        while (spent() - begin).tv_nsec < 500_000_000 && (spent() - begin).tv_sec == 0 {
            sum = std::hint::black_box(sum + 1);
        }
        let busy = loads.read(Duration::from_millis(500)).into_iter().map(|load| load.busy);
        assert!(busy.fold(0.0, f64::max) > 0.8);
    }
}
