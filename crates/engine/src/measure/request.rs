//! From what was asked to what will be measured, and how.

use ringtap_measure::{CountBy, Kind, Settings, SettingsError, State, Weight};
use ringtap_skeleton::Role;
use ringtap_wire::Tunnels;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use thiserror::Error;

use super::Design;
use crate::{Machine, Plan, PlanError, Request};

/// 1 MiB holds every heavy key of a link, for a sketch.
const MEMORY: u64 = 1 << 20;
/// Every key wants more.
const MEMORY_EXACT: u64 = 256 << 20;
/// The paper's.
const THRESHOLD: f64 = 0.0001;
/// Packets a second: more than any link has.
const MOST_RATE: u64 = 10_000_000_000;

/// What the user asked for; `None` leaves the choice to the plan.
#[derive(Clone, Debug, Default)]
pub struct MeasureRequest {
    /// The source, and how the run is arranged; not the skeleton, the analyses and the memory.
    pub run: Request,
    pub design: Option<Design>,
    pub structure: Option<Kind>,
    pub state: Option<State>,
    pub by: Option<CountBy>,
    pub weight: Option<Weight>,
    pub threshold: Option<f64>,
    /// Of one structure.
    pub memory_bytes: Option<u64>,
    pub check: bool,
    pub distinct: bool,
    /// Packets a second that are offered; those that find a full queue are dropped.
    pub rate: Option<u64>,
}

/// Why a request cannot become a plan.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MeasureError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("a queue has one worker in rss; give --queues or --workers, or both the same")]
    WorkersOfRss,
    #[error("{0} structures of {1} bytes are more than the machine's memory")]
    Memory(u64, u64),
    #[error("from 1 to {MOST_RATE} packets a second can be offered, not {0}")]
    Rate(u64),
}

/// What will run. All choices made; printable.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    pub design: Design,
    pub settings: Settings,
    /// Packets a second that are offered.
    pub rate: Option<u64>,
    /// The source and the arrangement. What it says of analyses has no meaning here.
    pub run: Plan,
}

impl MeasurePlan {
    /// Makes all choices left open.
    pub fn new(request: MeasureRequest, machine: &Machine) -> Result<Self, MeasureError> {
        let design = request.design.unwrap_or(Design::Rss);
        let mut run = request.run;
        run.skeleton = Some(design.skeleton());
        // A tunnel is traffic between its two ends.
        run.tunnels = Tunnels::Outer;
        (run.memory_bytes, run.analyses) = (None, None);
        if design == Design::Rss {
            let workers = run.workers.take();
            if workers.is_some() && run.queues.is_some() && workers != run.queues {
                return Err(MeasureError::WorkersOfRss);
            }
            run.queues = run.queues.or(workers);
        }
        let run = Plan::new(run, machine)?;
        let structure = request.structure.unwrap_or(Kind::Mg);
        let settings = Settings {
            structure,
            state: request.state.unwrap_or(State::Separate),
            by: request.by.unwrap_or(CountBy::FiveTuple),
            weight: request.weight.unwrap_or(Weight::Packets),
            threshold: request.threshold.unwrap_or(THRESHOLD),
            memory_bytes: request.memory_bytes.unwrap_or(match structure {
                Kind::Exact => MEMORY_EXACT.min(machine.memory_bytes / 4),
                _ => MEMORY,
            }),
            check: request.check,
            distinct: request.distinct,
            seed: run.seed,
        };
        settings.check()?;
        // One of each IP version.
        let structures = 2 * if settings.state == State::Shared { 1 } else { run.workers as u64 };
        if structures.saturating_mul(settings.memory_bytes) > machine.memory_bytes {
            return Err(MeasureError::Memory(structures, settings.memory_bytes));
        }
        if let Some(rate) = request.rate.filter(|rate| !(1..=MOST_RATE).contains(rate)) {
            return Err(MeasureError::Rate(rate));
        }
        Ok(Self { design, settings, rate: request.rate, run })
    }

    /// Who sits on each thread.
    pub fn seats(&self) -> impl Iterator<Item = String> + '_ {
        let names = |roles: &Vec<Role>| {
            roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
        };
        self.run.seating.seats.iter().map(names)
    }
}

impl Serialize for MeasurePlan {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self { design, settings, rate, run } = self;
        let mut plan = s.serialize_struct("MeasurePlan", 19)?;
        plan.serialize_field("source", &run.source)?;
        plan.serialize_field("app", "measure")?;
        plan.serialize_field("design", design.name())?;
        plan.serialize_field("state", settings.state.name())?;
        plan.serialize_field("structure", settings.structure.name())?;
        plan.serialize_field("key", &settings.by.to_string())?;
        plan.serialize_field("weight", settings.weight.name())?;
        plan.serialize_field("threshold", &settings.threshold)?;
        plan.serialize_field("memory_bytes", &settings.memory_bytes)?;
        plan.serialize_field("check", &settings.check)?;
        plan.serialize_field("rate", rate)?;
        plan.serialize_field("skeleton", run.skeleton.name())?;
        plan.serialize_field("queues", &run.queues)?;
        plan.serialize_field("workers", &run.workers)?;
        plan.serialize_field("seating", &self.seats().collect::<Vec<_>>())?;
        plan.serialize_field("ring", &run.ring.to_string())?;
        plan.serialize_field("ring_capacity", &run.ring_capacity)?;
        plan.serialize_field("ring_batch", &run.ring_batch)?;
        plan.serialize_field("seed", &run.seed)?;
        plan.end()
    }
}
