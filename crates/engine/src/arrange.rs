//! How many queues and workers a run has, and which thread runs which.

use ringtap_monitor::Analyses;
use ringtap_skeleton::{MOST_QUEUES, Role, Seating, Skeleton};

use crate::PlanError;

/// More workers than any machine has cores for; each still has a share of the key space.
pub(crate) const MOST_WORKERS: u64 = 512;

/// Queues, workers behind them and their threads.
pub(crate) struct Arrangement {
    pub(crate) queues: usize,
    /// Shares of all workers in the key space, of any sum.
    pub(crate) weights: Vec<u32>,
    pub(crate) seating: Seating,
}

/// Chooses what was left open.
///
/// # Errors
/// If workers or queues were asked of a skeleton that has none to choose.
pub(crate) fn arrange(
    skeleton: Skeleton,
    queues: Option<usize>,
    workers: Option<usize>,
    cores: usize,
    analyses: Analyses,
) -> Result<Arrangement, PlanError> {
    let even = |queues: usize, each: usize, seating| {
        Ok(Arrangement { queues, weights: vec![1000; queues * each], seating })
    };
    match (skeleton, queues.unwrap_or(1), workers) {
        (Skeleton::Reference, 1, None) => {
            let seats = vec![vec![Role::Dispatcher(0), Role::Worker(0), Role::Merger]];
            even(1, 1, Seating { seats, pin: Vec::new() })
        }
        (Skeleton::Reference, ..) => Err(PlanError::WorkersOfReference),
        (Skeleton::MultiQueue, _, Some(_)) => Err(PlanError::WorkersOfQueues),
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
            let (weights, seating) = balanced(cores, dispatch_share(analyses));
            Ok(Arrangement { queues: 1, weights, seating })
        }
        (_, queues, _) => {
            let each = workers.unwrap_or((cores / queues).saturating_sub(1).max(1));
            even(queues, each, Seating::side_by_side(queues, each, cores))
        }
    }
}

/// Thousandths of the whole work that reading, decoding and handing over make up (measured, see
/// docs/PERFORMANCE.md): what the dispatcher's core is busy with before it can help. With one or
/// two analyses that is nearly half of everything.
fn dispatch_share(analyses: Analyses) -> u32 {
    if analyses.names().len() > 2 { 250 } else { 420 }
}

/// As many workers as pay on `cores`, and what each should get. The dispatcher's core takes a
/// share of the analysis, too, as long as reading leaves it time.
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
