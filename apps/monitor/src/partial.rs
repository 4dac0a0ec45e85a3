//! What a worker hands over to the merger at a mark.

use crate::analyses::Found;
use crate::analyses::volumes::Volumes;
use crate::counts::FlowCounts;
use crate::series::Series;
use crate::state::{WorkerRows, WorkerState};
use crate::totals::Totals;

/// A worker's partial result at a mark.
pub enum Partial {
    /// At a tick: a summary.
    Tick(Box<TickSummary>),
    /// At the end: everything.
    End(Box<Findings>),
}

/// A worker's results at the end.
pub struct Findings {
    pub(crate) volumes: Volumes,
    pub(crate) series: Option<Series>,
    pub(crate) conversations: Option<([u64; 2], bool)>,
    pub(crate) flows: FlowCounts,
    pub(crate) found: Found,
    /// Live flows at the end.
    pub(crate) active: u64,
    /// What a state has of this worker, if one is saved.
    pub(crate) state: Option<WorkerState>,
}

/// A worker's summary at a tick.
pub struct TickSummary {
    /// Live flows, without expired ones.
    pub(crate) active: u64,
    /// Volumes of finished intervals, if there is an output for intervals.
    pub(crate) over: Option<Box<Volumes>>,
    /// Partial results of the analyses.
    pub(crate) found: Found,
    /// The worker's totals since the beginning.
    pub(crate) totals: Totals,
    /// A part of the state, if one ends here.
    pub(crate) part: Option<WorkerRows>,
}
