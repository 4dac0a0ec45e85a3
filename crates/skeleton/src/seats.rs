//! Seats: which threads there are, which nodes each of them steps, and on which core.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::RunError;
use crate::idle::Idle;
use crate::node::{Node, Step};

/// A node's place in a farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads the feed and picks the worker.
    Dispatcher,
    /// Owns the shard of this index.
    Worker(usize),
    /// Joins.
    Merger,
}

/// Which nodes share a thread, and where the threads are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    /// The roles on each seat; every role of the farm stands in exactly one.
    pub seats: Vec<Vec<Role>>,
    /// The core of each seat (taken in turn if there are fewer); empty: left to the kernel.
    pub pin: Vec<usize>,
}

impl Seating {
    /// Dispatcher and workers apart as far as `cores` allow. The merger has little to do: it
    /// gets a seat of its own only when a core is left for it.
    pub fn apart(workers: usize, cores: usize) -> Self {
        let mut seats = vec![vec![Role::Dispatcher]];
        let worker_seats = workers.min(cores.saturating_sub(1));
        seats.extend((0..worker_seats).map(|_| Vec::new()));
        let first = usize::from(worker_seats > 0);
        let places = seats.len() - first;
        for worker in 0..workers {
            seats[first + worker % places].push(Role::Worker(worker));
        }
        if cores > workers + 1 {
            seats.push(vec![Role::Merger]);
        } else {
            seats[0].push(Role::Merger);
        }
        Self { seats, pin: Vec::new() }
    }

    /// As [`Seating::apart`], but worker 0 sits beside the dispatcher: for few cores, where
    /// reading alone would leave the dispatcher's core half idle.
    pub fn beside(workers: usize, cores: usize) -> Self {
        let mut seating = Self::apart(workers.saturating_sub(1), cores);
        for role in seating.seats.iter_mut().flatten() {
            if let Role::Worker(worker) = role {
                *worker += 1;
            }
        }
        seating.seats[0].insert(1, Role::Worker(0));
        seating
    }
}

/// Cores this process may run on.
pub fn free_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The highest core number that a thread can be pinned to.
pub const HIGHEST_CORE: usize = CpuSet::MAX_CPU - 1;

/// Runs `work` with the calling thread pinned to `core`, if one is given; the thread gets its
/// own affinity back. A core that is not ours is no reason to give up: then it is not pinned.
pub fn on_core<T>(core: Option<usize>, work: impl FnOnce() -> T) -> T {
    let before = core.filter(|&core| core <= HIGHEST_CORE).and_then(|core| {
        let before = sched_getaffinity(None).ok()?;
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(None, &set).ok()?;
        Some(before)
    });
    let result = work();
    if let Some(before) = before {
        // It was allowed before.
        let _ = sched_setaffinity(None, &before);
    }
    result
}

/// Steps all nodes until each is done. Seat 0 is the calling thread.
pub(crate) fn run(mut seats: Vec<Vec<Box<dyn Node + '_>>>, pin: &[usize]) -> Result<(), RunError> {
    let cores = free_cores();
    let count = seats.len();
    let shared = Shared { stop: AtomicBool::new(false), failure: Mutex::new(None) };
    let own = if seats.is_empty() { Vec::new() } else { seats.remove(0) };
    let core = |seat: usize| (!pin.is_empty()).then(|| pin[seat % pin.len()]);
    let started = std::thread::scope(|scope| {
        for (seat, nodes) in seats.into_iter().enumerate() {
            let name = nodes.iter().map(|n| n.name()).collect::<Vec<_>>().join(" + ");
            let (shared, core) = (&shared, core(seat + 1));
            let start = std::thread::Builder::new().name(name).spawn_scoped(scope, move || {
                on_core(core, || shared.sit(nodes, Idle::new(count, cores)));
            });
            if let Err(error) = start {
                shared.stop.store(true, Ordering::Relaxed);
                return Err(RunError::Thread(error.to_string()));
            }
        }
        on_core(core(0), || shared.sit(own, Idle::new(count, cores)));
        Ok(())
    });
    started?;
    let failure = shared.failure.into_inner().unwrap_or_else(|poison| poison.into_inner());
    failure.map_or(Ok(()), Err)
}

struct Shared {
    /// Read between steps; it carries no data, so Relaxed will do.
    stop: AtomicBool,
    failure: Mutex<Option<RunError>>,
}

impl Shared {
    fn sit(&self, mut nodes: Vec<Box<dyn Node + '_>>, mut idle: Idle) {
        while !nodes.is_empty() && !self.stop.load(Ordering::Relaxed) {
            let mut worked = false;
            let mut at = 0;
            while at < nodes.len() {
                match catch_unwind(AssertUnwindSafe(|| nodes[at].step())) {
                    Ok(Step::Worked) => {
                        worked = true;
                        at += 1;
                    }
                    Ok(Step::Idle) => at += 1,
                    Ok(Step::Done) => {
                        worked = true;
                        nodes.remove(at);
                    }
                    Err(panic) => {
                        self.fail(nodes[at].name(), panic.as_ref());
                        return;
                    }
                }
            }
            if worked {
                idle.reset();
            } else {
                idle.wait();
            }
        }
    }

    fn fail(&self, node: String, panic: &(dyn Any + Send)) {
        let mut failure = self.failure.lock().unwrap_or_else(|poison| poison.into_inner());
        // The first one is the cause, later ones may be its consequence.
        failure.get_or_insert(RunError::panicked(node, panic));
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_exactly_one_seat() {
        for workers in 1..9 {
            for cores in 1..12 {
                for seating in [Seating::apart(workers, cores), Seating::beside(workers, cores)] {
                    let mut roles: Vec<_> = seating.seats.concat();
                    roles.sort_by_key(|r| format!("{r:?}"));
                    let mut all: Vec<_> = (0..workers).map(Role::Worker).collect();
                    all.extend([Role::Dispatcher, Role::Merger]);
                    all.sort_by_key(|r| format!("{r:?}"));
                    assert_eq!(roles, all, "{workers} workers on {cores} cores");
                    assert!(seating.seats.iter().all(|s| !s.is_empty()));
                    assert!(seating.seats.len() <= cores.max(1), "{workers} on {cores}");
                }
            }
        }
    }
}
