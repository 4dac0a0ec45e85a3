//! Options of a measurement.

use ringtap_engine::{AppOptions, Machine, Memory, Plan, PlanError, display};
use ringtap_wire::Tunnels;
use serde::Serialize;
use thiserror::Error;

use super::Design;
use crate::{Settings, SettingsError, State};

/// The largest rate, packets a second: above any link's.
const MOST_RATE: u64 = 10_000_000_000;
/// Memory of each worker besides its lane and its structures, bytes.
const WORKER_BYTES: u64 = 2 << 20;
/// Marks are not used here; the distance is the monitor's.
const TICK_NS: u64 = 15_000_000_000;

/// The options of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Options {
    /// Distribution of packets to the workers.
    #[serde(serialize_with = "display")]
    pub design: Design,
    /// Offered packets a second; a full queue drops them.
    pub rate: Option<u64>,
    /// What is counted.
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
    /// Number of structures, and bytes of each.
    #[error("{0} structures of {1} bytes exceed the machine's memory")]
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
    options.settings.check()?;
    if let Some(rate) = options.rate.filter(|rate| !(1..=MOST_RATE).contains(rate)) {
        return Err(MeasureError::Rate(rate));
    }
    let plan = Plan::new(run, options, machine)?;
    // One for each IP version.
    let shared = options.settings.state == State::Shared;
    let structures = 2 * if shared { 1 } else { plan.arrangement.workers as u64 };
    let each = options.settings.memory_bytes;
    if structures.saturating_mul(each) > machine.memory_bytes {
        return Err(MeasureError::Memory(structures, each));
    }
    Ok(plan)
}

impl AppOptions for Options {
    const NAME: &'static str = "measure";

    fn dispatch_share(&self) -> u32 {
        420
    }

    fn worker_bytes(&self) -> u64 {
        WORKER_BYTES
    }

    fn tick_ns(&self) -> u64 {
        TICK_NS
    }

    fn settle(&mut self, _: &Memory) -> Result<(), PlanError> {
        Ok(())
    }
}
