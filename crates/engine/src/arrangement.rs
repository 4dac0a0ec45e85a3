//! The number of queues and workers of a run, and the thread of each.

use ringtap_skeleton::{MOST_QUEUES, Role, Seating, Skeleton};
use serde::{Serialize, Serializer};

use crate::options::display;
use crate::{Machine, Options, PlanError};

/// An upper bound above any machine's cores; each worker still has a share of the key space.
pub(crate) const MOST_WORKERS: u64 = 512;

/// Queues, their workers and their threads.
#[derive(Clone, Debug, Serialize)]
pub struct Arrangement {
    /// The skeleton.
    #[serde(serialize_with = "display")]
    pub skeleton: Skeleton,
    /// Queues through which the source is read.
    pub queues: usize,
    /// Workers of all queues.
    pub workers: usize,
    /// Share of the key space of each worker, in thousandths.
    pub shares: Vec<u32>,
    /// The nodes of each thread.
    #[serde(serialize_with = "seats")]
    pub seating: Seating,
}

impl Arrangement {
    /// Fills in the options that were not given. `dispatch_share` is the application's, in
    /// thousandths.
    ///
    /// # Errors
    /// If workers or queues are given for a skeleton with a fixed number, or a core does not exist.
    pub(crate) fn new(
        options: &Options,
        machine: &Machine,
        dispatch_share: u32,
    ) -> Result<Self, PlanError> {
        let &Options { queues, workers, .. } = options;
        let cores = options.cores.as_ref().map_or(machine.cores, Vec::len).max(1);
        let skeleton = options.skeleton.unwrap_or(match (queues, workers) {
            (None, None) if cores == 1 => Skeleton::Reference,
            (_, None) => Skeleton::MultiQueue,
            (_, Some(_)) => Skeleton::Farm,
        });
        let even =
            |queues: usize, each: usize, seating| (queues, vec![1000; queues * each], seating);
        let (queues, weights, mut seating) = match (skeleton, queues.unwrap_or(1), workers) {
            (Skeleton::Reference, 1, None) => {
                let seats = vec![vec![Role::Dispatcher(0), Role::Worker(0), Role::Merger]];
                even(1, 1, Seating { seats, pin: Vec::new() })
            }
            (Skeleton::Reference, ..) => return Err(PlanError::WorkersOfReference),
            (Skeleton::MultiQueue, _, Some(_)) => return Err(PlanError::WorkersOfQueues),
            (Skeleton::MultiQueue, _, None) => {
                let queues = queues.unwrap_or(cores.min(MOST_QUEUES));
                even(queues, 1, Seating::queues(queues, cores))
            }
            (Skeleton::SharedPipeline, _, _) => {
                let queues = queues.unwrap_or(2);
                let each = workers.unwrap_or(cores.saturating_sub(queues).max(1));
                even(queues, each, Seating::shared(queues, each, cores))
            }
            (_, 1, Some(workers)) => even(1, workers, Seating::apart(workers, cores)),
            (_, 1, None) => {
                let (weights, seating) = balanced(cores, dispatch_share);
                (1, weights, seating)
            }
            (_, queues, _) => {
                let each = workers.unwrap_or((cores / queues).saturating_sub(1).max(1));
                even(queues, each, Seating::side_by_side(queues, each, cores))
            }
        };
        seating.pin = options.cores.clone().unwrap_or_default();
        machine.check_cores(&seating.pin)?;
        let total: u32 = weights.iter().sum();
        let shares = weights.iter().map(|w| (w * 1000 / total.max(1)).max(1)).collect();
        Ok(Self { skeleton, queues, workers: weights.len(), shares, seating })
    }

    /// Whether packets cross from one thread to another through rings.
    pub fn packets_cross_rings(&self) -> bool {
        !matches!(self.skeleton, Skeleton::Reference | Skeleton::MultiQueue)
    }
}

/// The best number of workers on `cores`, and their shares. Worker 0 runs on the dispatcher's core
/// while reading leaves it time.
fn balanced(cores: usize, dispatch: u32) -> (Vec<u32>, Seating) {
    let cores = cores.min(MOST_WORKERS as usize);
    let each = 1000 / cores as u32;
    if cores == 1 {
        (vec![1000], Seating::apart(1, 1))
    } else if each > dispatch + 20 {
        let mut weights = vec![each; cores];
        weights[0] = each - dispatch;
        (weights, Seating::beside(cores, cores))
    } else {
        let workers = cores - 1;
        (vec![1000; workers], Seating::apart(workers, cores))
    }
}

fn seats<S: Serializer>(seating: &Seating, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(seating.seats.iter().enumerate().map(|(seat, roles)| {
        let names = roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        match seating.pin.as_slice() {
            [] => names,
            pin => format!("{names} on core {}", pin[seat % pin.len()]),
        }
    }))
}
