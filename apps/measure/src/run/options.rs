//! Options of a measurement.

use ringtap_engine::{AppOptions, Machine, Memory, Plan, PlanError, display};
use ringtap_skeleton::MARKS_AHEAD;
use ringtap_wire::Tunnels;
use serde::Serialize;
use thiserror::Error;

use super::Design;
use crate::{Settings, SettingsError, State};

/// The largest rate, packets a second: above any link's.
const MOST_RATE: u64 = 10_000_000_000;
/// Memory of each worker besides its lane and its structures, bytes.
const WORKER_BYTES: u64 = 2 << 20;
/// The longest distance of marks, that of the monitor.
const TICK_NS: u64 = 15_000_000_000;
/// The shortest distance of marks on interfaces.
const SECOND_NS: u64 = 1_000_000_000;
/// Most numbers that are tried to divide an interval.
const TRIED_MOST: u64 = 10_000;

/// The options of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Options {
    /// Distribution of packets to the workers.
    #[serde(serialize_with = "display")]
    pub design: Design,
    /// Offered packets a second; a full queue drops them.
    pub rate: Option<u64>,
    /// Memory of one structure; `None`: [`plan`] chooses it.
    #[serde(skip)]
    pub memory_bytes: Option<u64>,
    /// What is counted; [`plan`] sets its memory and seed.
    #[serde(flatten)]
    pub settings: Settings,
}

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MeasureError {
    /// The arrangement is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Queues and workers of [`Design::Rss`] must be equal.
    #[error("rss has one worker a queue: use --queues or --workers, or equal numbers")]
    WorkersOfRss,
    /// Packets of a sample have no packet time.
    #[error("--interval needs packet times: use -r or -i, without --rate")]
    IntervalOfSample,
    /// The interval is too short for an interface.
    #[error("invalid interval of {} s for an interface: use 1s or more", seconds(.0))]
    LiveInterval(u64),
    /// Number of structures, and the most MiB of each.
    #[error("{0} structures exceed the machine's memory: use less --memory, at most {1}M")]
    Memory(u64, u64),
    /// The rate is out of range.
    #[error("invalid rate {0}: use 1 to {MOST_RATE} packets a second")]
    Rate(u64),
}

/// Fills in all options that were not given. The design determines the skeleton.
///
/// # Errors
/// If options are out of their range or contradict each other.
pub fn plan(
    mut run: ringtap_engine::Options,
    mut options: Options,
    machine: &Machine,
) -> Result<Plan<Options>, MeasureError> {
    run.skeleton = Some(options.design.skeleton());
    // A tunnel counts as traffic between its two ends.
    run.tunnels = Tunnels::Outer;
    if options.design == Design::Rss {
        let workers = run.workers.take();
        if workers.is_some() && run.queues.is_some() && workers != run.queues {
            return Err(MeasureError::WorkersOfRss);
        }
        run.queues = run.queues.or(workers);
    }
    options.settings.seed = run.seed;
    if let Some(rate) = options.rate.filter(|rate| !(1..=MOST_RATE).contains(rate)) {
        return Err(MeasureError::Rate(rate));
    }
    if let Some(interval_ns) = options.settings.interval_ns {
        if options.rate.is_some() {
            return Err(MeasureError::IntervalOfSample);
        }
        if run.live && interval_ns < SECOND_NS {
            return Err(MeasureError::LiveInterval(interval_ns));
        }
    }
    let given = options.memory_bytes;
    let mut plan = Plan::new(run, options, machine)?;
    let structures = plan.app.structures(plan.arrangement.workers);
    let share = machine.memory_bytes / structures;
    let settings = &mut plan.app.settings;
    settings.memory_bytes = given.unwrap_or_else(|| settings.default_bytes(share));
    settings.check()?;
    if settings.memory_bytes > share {
        return Err(MeasureError::Memory(structures, share >> 20));
    }
    Ok(plan)
}

impl Options {
    /// The most structures that exist at a time: one for each IP version and owner. With intervals there are three: the open
    /// one, and those that wait to be merged.
    pub fn structures(&self, workers: usize) -> u64 {
        let owners = if self.settings.state == State::Shared { 1 } else { workers as u64 };
        2 * owners * if self.settings.interval_ns.is_some() { 3 } else { 1 }
    }
}

fn seconds(ns: &u64) -> f64 {
    *ns as f64 / 1e9
}

/// An interval divided by this number; the whole without one.
fn part_of(interval_ns: u64, parts: Option<u64>) -> u64 {
    interval_ns / parts.unwrap_or(1).max(1)
}

impl AppOptions for Options {
    const NAME: &'static str = "measure";

    fn dispatch_share(&self) -> u32 {
        420
    }

    fn worker_bytes(&self) -> u64 {
        WORKER_BYTES
    }

    /// Queues are at most 64 marks apart, so those of files are at most an interval apart.
    fn tick_ns(&self) -> u64 {
        let Some(interval_ns) = self.settings.interval_ns else { return TICK_NS };
        let least = MARKS_AHEAD.max(interval_ns.div_ceil(TICK_NS));
        let mut parts = least..=least + TRIED_MOST;
        part_of(interval_ns, parts.find(|parts| interval_ns.is_multiple_of(*parts)))
    }

    fn begins_with_mark(&self) -> bool {
        self.settings.interval_ns.is_some()
    }

    fn live_tick_ns(&self) -> u64 {
        let Some(interval_ns) = self.settings.interval_ns else { return TICK_NS };
        let most = interval_ns / SECOND_NS;
        let mut parts = (most.saturating_sub(TRIED_MOST)..=most).rev();
        part_of(interval_ns, parts.find(|parts| interval_ns.is_multiple_of(*parts)))
    }

    fn settle(&mut self, _: &Memory) -> Result<(), PlanError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn all_structures_of_a_plan_fit_the_machine() {
        let planned = |cores: usize, gib: u64, memory_bytes, settings: Settings| {
            let allowed_cores = (0..cores).collect();
            let machine = Machine { cores, allowed_cores, memory_bytes: gib << 30 };
            let options = Options { design: Design::Rss, rate: None, memory_bytes, settings };
            plan(ringtap_engine::Options::default(), options, &machine)
        };
        for (cores, gib) in (1..=64).flat_map(|cores| [1, 2, 16, 512].map(|gib| (cores, gib))) {
            for (structure, interval_ns) in Kind::ALL
                .into_iter()
                .flat_map(|kind| [None, Some(60 * SECOND_NS)].map(|ns| (kind, ns)))
            {
                let by = crate::CountBy::Source;
                let settings = Settings { structure, by, interval_ns, ..Settings::default() };
                let plan = planned(cores, gib, None, settings).unwrap();
                let workers = plan.arrangement.workers;
                let structures = plan.app.structures(workers);
                let each = if interval_ns.is_some() { 3 } else { 1 };
                assert_eq!(structures, 2 * each * workers as u64);
                let bytes = plan.app.settings.memory_bytes;
                assert!(4 * structures * bytes <= gib << 30 || structure != Kind::Exact);
                assert!(structures * bytes <= gib << 30, "{structure}, {cores} cores, {gib} GiB");
                assert!(
                    bytes <= 256 << 20
                        && (gib < 512 || structure != Kind::Exact || bytes == 256 << 20)
                );
            }
        }
        let exact = Settings { structure: Kind::Exact, ..Settings::default() };
        let refused = planned(2, 8, Some(3 << 30), exact).unwrap_err().to_string();
        assert_eq!(
            refused,
            "4 structures exceed the machine's memory: use less --memory, at most 2048M"
        );
        assert!(planned(2, 8, Some(2 << 30), exact).is_ok());
    }

    #[test]
    fn intervals_end_at_marks_that_are_as_close_as_needed() {
        const MILLISECOND: u64 = 1_000_000;
        let of = |interval_ns| {
            let settings = Settings { interval_ns: Some(interval_ns), ..Settings::default() };
            Options { design: Design::Rss, rate: None, memory_bytes: None, settings }
        };
        for ms in (1..3_000).chain([15_000, 17_000, 60_000, 3_600_000, 86_400_000, 604_800_000]) {
            let (interval_ns, options) = (ms * MILLISECOND, of(ms * MILLISECOND));
            let tick_ns = options.tick_ns();
            assert!(interval_ns.is_multiple_of(tick_ns) && tick_ns <= TICK_NS, "{ms}");
            assert!(interval_ns / tick_ns >= MARKS_AHEAD, "{ms}: queues may be intervals apart");
            if ms >= 1_000 {
                let live_ns = options.live_tick_ns();
                assert!(interval_ns.is_multiple_of(live_ns) && live_ns >= SECOND_NS, "{ms}");
                assert!(live_ns <= interval_ns);
            }
        }
        assert_eq!(of(60 * SECOND_NS).live_tick_ns(), SECOND_NS);
        // A prime number, and the longest interval.
        for interval_ns in [1_000_000_007, u64::MAX] {
            let options = of(interval_ns);
            assert!(interval_ns.is_multiple_of(options.tick_ns()));
            assert!(interval_ns.is_multiple_of(options.live_tick_ns()));
        }
    }
}
