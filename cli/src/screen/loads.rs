//! How busy each thread of this process was, from /proc/self/task.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// One thread since the last look.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) thread: String,
    /// Of one core, 0 to 1.
    pub(super) busy: f64,
}

/// What was seen at the last look.
#[derive(Default)]
pub(super) struct Loads {
    elapsed: Duration,
    /// Ticks of the processor by thread.
    ticks: BTreeMap<u32, u64>,
}

impl Loads {
    /// The threads and how busy they were since the last look; the first one only notes. `elapsed` grows from call to call.
    pub(super) fn look(&mut self, elapsed: Duration) -> Vec<Load> {
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
                loads.push(Load { thread, busy: busy.min(1.0) });
            }
            seen.insert(id, ticks);
        }
        self.ticks = seen;
        loads
    }
}

fn threads() -> impl Iterator<Item = (u32, String, u64)> {
    fs::read_dir("/proc/self/task").into_iter().flatten().flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (thread, ticks) = of(&stat)?;
        Some((id, thread, ticks))
    })
}

/// Name and ticks, in user and in kernel mode together, of a line as in proc_pid_stat(5). The name stands in parentheses
/// and may hold any others.
fn of(stat: &str) -> Option<(String, u64)> {
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
    fn a_line_of_stat_is_read_whatever_the_name() {
        let rest = "R 1 2 3 4 5 6 7 8 9 10 70 7 0 0 20 0 3";
        assert_eq!(of(&format!("12 (queue 0 + merg) {rest}")), Some(("queue 0 + merg".into(), 77)));
        assert_eq!(of(&format!("12 (a) (b)) {rest}")), Some(("a) (b)".into(), 77)));
        assert_eq!(of("12 (short) R 1"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_busy_thread_is_seen() {
        let mut loads = Loads::default();
        assert!(loads.look(Duration::ZERO).is_empty());
        // Half a second of this thread's time, however long the machine takes to give it.
        let spent = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let (begin, mut sum) = (spent(), 0u64);
        while (spent() - begin).tv_nsec < 500_000_000 && (spent() - begin).tv_sec == 0 {
            sum = std::hint::black_box(sum + 1);
        }
        let busy = loads.look(Duration::from_millis(500)).into_iter().map(|load| load.busy);
        assert!(busy.fold(0.0, f64::max) > 0.8);
    }
}
