//! Seats: which threads there are, which nodes each of them steps, and on which core.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::RunError;
use crate::idle::{Idle, Parker, Pause, Wait};
use crate::node::{Node, Step};

/// The role of a node in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads the feed of this queue and picks the worker.
    Dispatcher(usize),
    /// Reads the feed of this queue and owns its shard.
    Queue(usize),
    /// Owns the shard of this index.
    Worker(usize),
    /// Joins.
    Merger,
}

/// A node with its role.
pub(crate) type Placed<'a> = (Role, Box<dyn Node + 'a>);

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Dispatcher(queue) => write!(f, "dispatcher {queue}"),
            Role::Queue(queue) => write!(f, "queue {queue}"),
            Role::Worker(index) => write!(f, "worker {index}"),
            Role::Merger => f.write_str("merger"),
        }
    }
}

/// The nodes of each thread, and the cores to which threads are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    /// The roles on each seat; every role of the run is in exactly one, except the merger of
    /// several queues, which may be in each.
    pub seats: Vec<Vec<Role>>,
    /// The core of each seat (reused in turn if there are fewer); empty: the kernel chooses.
    pub pin: Vec<usize>,
}

impl Seating {
    /// A seat for one dispatcher and each of its workers, as far as `cores` allow. The merger has
    /// little work: it gets its own seat only if a core is left.
    pub fn apart(workers: usize, cores: usize) -> Self {
        let mut seats = vec![vec![Role::Dispatcher(0)]];
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

    /// As [`Seating::apart`], but worker 0 shares the dispatcher's seat: for few cores, where
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

    /// For several queues with one node each. The merger is on all seats: an idle thread merges.
    pub fn queues(queues: usize, cores: usize) -> Self {
        let seats = queues.min(cores).max(1);
        let of_seat = |seat| (seat..queues).step_by(seats).map(Role::Queue);
        let with_merger = |seat| of_seat(seat).chain([Role::Merger]).collect();
        Self { seats: (0..seats).map(with_merger).collect(), pin: Vec::new() }
    }

    /// For several queues with a dispatcher and `each` workers: the nodes of a queue share a seat
    /// if there are too few cores.
    pub fn side_by_side(queues: usize, each: usize, cores: usize) -> Self {
        let queue = |queue: usize| {
            let workers = queue * each..(queue + 1) * each;
            std::iter::once(vec![Role::Dispatcher(queue)])
                .chain(workers.map(|worker| vec![Role::Worker(worker)]))
        };
        Self::folded((0..queues).flat_map(queue).collect(), cores)
    }

    /// For several queues whose workers share threads: worker i of each queue shares a seat with
    /// worker i of the others.
    pub fn shared(queues: usize, each: usize, cores: usize) -> Self {
        let readers = (0..queues).map(|queue| vec![Role::Dispatcher(queue)]);
        let of_all = |place| (0..queues).map(|queue| Role::Worker(queue * each + place)).collect();
        Self::folded(readers.chain((0..each).map(of_all)).collect(), cores)
    }

    /// Folds these threads into at most `cores` seats, neighbours together. The merger has little
    /// work: it gets its own seat only if a core is left.
    fn folded(threads: Vec<Vec<Role>>, cores: usize) -> Self {
        let count = threads.len().min(cores).max(1);
        let mut seats = vec![Vec::new(); count];
        for (seat, roles) in share(&vec![1; threads.len()], count).into_iter().zip(threads) {
            seats[seat].extend(roles);
        }
        if cores > count {
            seats.push(Vec::new());
        }
        let merger = if cores > count { count } else { 0 };
        seats[merger].push(Role::Merger);
        Self { seats, pin: Vec::new() }
    }
}

/// Cores on which this process may run.
pub fn free_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Numbers of the cores to which threads of this process may be pinned, ascending; empty if the
/// kernel does not report them. There may be more than [`free_cores`], which also respects CPU time
/// limits (cgroups).
pub fn allowed_cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..=HIGHEST_CORE).filter(|&core| set.is_set(core)).collect()
}

/// The highest core number that a thread can be pinned to.
pub const HIGHEST_CORE: usize = CpuSet::MAX_CPU - 1;

/// Runs `work` with the calling thread pinned to `core`, if given; afterwards the thread's own
/// affinity is restored. If pinning fails, `work` runs unpinned.
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

/// Divides nodes of these weights, in the order of the items, over at most `cores` seats; returns
/// the seat of each. With as many cores as nodes each has its own; with fewer, neighbours share
/// seats of about equal weight.
pub(crate) fn share(weights: &[u32], cores: usize) -> Vec<usize> {
    if weights.len() <= cores {
        return (0..weights.len()).collect();
    }
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    let mut before = 0;
    let mut seat = |&weight: &u32| {
        // The position of the node's middle.
        let middle = 2 * before + u64::from(weight);
        before += u64::from(weight);
        (middle * cores.max(1) as u64 / (2 * total).max(1)) as usize
    };
    weights.iter().map(&mut seat).collect()
}

/// Steps all nodes until each is done: a thread for each seat, of which seat 0 is the calling
/// thread. Seat *s* is pinned to core `pin[s % pin.len()]`, if any is given.
///
/// # Errors
/// The first panic or error of a node, or a thread that cannot be started. The other seats stop
/// after the step they are in, and all nodes are dropped before this returns.
pub fn run(
    mut seats: Vec<Vec<Box<dyn Node + '_>>>,
    pin: &[usize],
    wait: Wait,
) -> Result<(), RunError> {
    seats.retain(|nodes| !nodes.is_empty());
    let count = seats.len();
    let shared = Shared {
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        parker: (wait == Wait::Park && count > 1).then(|| Parker::new(count)),
    };
    let cores = free_cores();
    let idle = || Idle::new(wait, count, cores);
    let own = if seats.is_empty() { Vec::new() } else { seats.remove(0) };
    let core = |seat: usize| (!pin.is_empty()).then(|| pin[seat % pin.len()]);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (seat, nodes) in seats.into_iter().enumerate() {
            let name = nodes.iter().map(|n| n.name()).collect::<Vec<_>>().join(" + ");
            let (shared, core, idle) = (&shared, core(seat + 1), idle());
            let start = std::thread::Builder::new().name(name).spawn_scoped(scope, move || {
                on_core(core, || shared.sit(seat + 1, nodes, idle));
            });
            match start {
                Ok(thread) => threads.push(thread),
                Err(error) => return shared.fail(RunError::Thread(error.to_string())),
            }
        }
        on_core(core(0), || shared.sit(0, own, idle()));
        // ThreadSanitizer sees the end of a thread when it is joined, not when a scope ends.
        threads.into_iter().for_each(|t| t.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
    let failure = shared.failure.into_inner().unwrap_or_else(|poison| poison.into_inner());
    failure.map_or(Ok(()), Err)
}

struct Shared {
    /// Read between steps; it carries no data, so Relaxed will do.
    stop: AtomicBool,
    failure: Mutex<Option<RunError>>,
    /// Only if seats sleep.
    parker: Option<Parker>,
}

impl Shared {
    fn sit(&self, seat: usize, mut nodes: Vec<Box<dyn Node + '_>>, mut idle: Idle) {
        if let Some(parker) = &self.parker {
            parker.here(seat);
        }
        // Whether nodes may have published something since the last wake-up.
        let mut untold = false;
        while !nodes.is_empty() && !self.stop.load(Ordering::Relaxed) {
            if self.round(&mut nodes) {
                idle.reset();
                untold = true;
                continue;
            }
            if std::mem::take(&mut untold) {
                // The idle steps may have published what earlier ones had held back.
                self.moved();
            }
            let polls = nodes.iter().any(|node| node.polls());
            let is_slow = nodes.iter().any(|node| node.is_slow());
            match (idle.next(polls, is_slow), &self.parker) {
                (Pause::Spin, _) => (0..16).for_each(|_| std::hint::spin_loop()),
                (Pause::Park(nap), Some(parker)) => {
                    parker.park(seat);
                    if self.round(&mut nodes) {
                        idle.reset();
                        untold = true;
                        parker.unpark(seat);
                    } else {
                        if !self.stop.load(Ordering::Relaxed) {
                            std::thread::park_timeout(nap);
                        }
                        idle.woken(parker.unpark(seat));
                    }
                }
                // A single seat waits for its source only.
                (Pause::Park(nap), None) => {
                    std::thread::park_timeout(nap);
                    idle.woken(false);
                }
                (Pause::Yield, _) => std::thread::yield_now(),
            }
        }
        // Nodes left by a failed run: their contents may panic when dropped.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(nodes))) {
            self.fail(RunError::panicked("a node, dropped".into(), panic.as_ref()));
        }
    }

    /// Steps every node once; true after progress.
    fn round(&self, nodes: &mut Vec<Box<dyn Node + '_>>) -> bool {
        let mut worked = false;
        let mut at = 0;
        while at < nodes.len() && !self.stop.load(Ordering::Relaxed) {
            let node = &mut nodes[at];
            match catch_unwind(AssertUnwindSafe(|| node.step())) {
                Ok(Step::Idle) => {
                    at += 1;
                    continue;
                }
                Ok(Step::Worked) => at += 1,
                Ok(Step::Done) => {
                    // Dropped before the wake-up, because that closes its rings.
                    let (name, done) = (node.name(), nodes.remove(at));
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(done))) {
                        self.fail(RunError::panicked(name, panic.as_ref()));
                    }
                }
                Ok(Step::Failed(error)) => {
                    self.fail(RunError::Failed { node: node.name(), error });
                    return true;
                }
                Err(panic) => {
                    self.fail(RunError::panicked(node.name(), panic.as_ref()));
                    return true;
                }
            }
            worked = true;
            self.moved();
        }
        worked
    }

    fn moved(&self) {
        if let Some(parker) = &self.parker {
            parker.ring();
        }
    }

    fn fail(&self, error: RunError) {
        let mut failure = self.failure.lock().unwrap_or_else(|poison| poison.into_inner());
        // The first error is the cause; later ones may be consequences.
        failure.get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
        self.moved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_seat_and_no_seat_is_without_a_core() {
        // Source, emitter, two workers, collector, sink.
        let farm = [1, 1, 4, 4, 1, 1];
        assert_eq!(share(&farm, 1), [0, 0, 0, 0, 0, 0]);
        assert_eq!(share(&farm, 2), [0, 0, 0, 1, 1, 1]);
        assert_eq!(share(&farm, 3), [0, 0, 1, 2, 2, 2]);
        assert_eq!(share(&farm, 4), [0, 0, 1, 2, 3, 3]);
        assert_eq!(share(&farm, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(share(&[1, 1, 4, 4, 4, 1], 2), [0, 0, 0, 1, 1, 1]);
        assert_eq!(share(&[], 2), [0; 0]);
        assert_eq!(share(&[4], 0), [0]);
        for nodes in 1..20 {
            for cores in 1..12 {
                let seats = share(&vec![4; nodes], cores);
                assert!(seats.is_sorted() && seats.iter().all(|&seat| seat < cores));
            }
        }
    }

    #[test]
    fn every_role_has_exactly_one_seat() {
        for workers in 1..9 {
            for cores in 1..12 {
                for seating in [Seating::apart(workers, cores), Seating::beside(workers, cores)] {
                    let mut roles: Vec<_> = seating.seats.concat();
                    roles.sort_by_key(|r| format!("{r:?}"));
                    let mut all: Vec<_> = (0..workers).map(Role::Worker).collect();
                    all.extend([Role::Dispatcher(0), Role::Merger]);
                    all.sort_by_key(|r| format!("{r:?}"));
                    assert_eq!(roles, all, "{workers} workers on {cores} cores");
                    assert!(seating.seats.iter().all(|s| !s.is_empty()));
                    assert!(seating.seats.len() <= cores.max(1), "{workers} on {cores}");
                }
            }
        }
    }

    #[test]
    fn queues_sit_apart_or_share_their_workers_threads() {
        use Role::{Dispatcher as D, Merger as M, Queue as Q, Worker as W};
        let seats = |seating: Seating| seating.seats;
        assert_eq!(seats(Seating::queues(2, 1)), [[Q(0), Q(1), M]]);
        assert_eq!(seats(Seating::queues(2, 2)), [[Q(0), M], [Q(1), M]]);
        assert_eq!(seats(Seating::queues(2, 9)), [[Q(0), M], [Q(1), M]]);
        assert_eq!(seats(Seating::queues(3, 2)), [vec![Q(0), Q(2), M], vec![Q(1), M]]);
        let two = [vec![D(0), W(0), W(1), M], vec![D(1), W(2), W(3)]];
        assert_eq!(seats(Seating::side_by_side(2, 2, 2)), two);
        let six = [vec![D(0), M], vec![W(0)], vec![W(1)], vec![D(1)], vec![W(2)], vec![W(3)]];
        assert_eq!(seats(Seating::side_by_side(2, 2, 6)), six);
        let shared = [vec![D(0), M], vec![D(1)], vec![W(0), W(2)], vec![W(1), W(3)]];
        assert_eq!(seats(Seating::shared(2, 2, 4)), shared);
        let folded = [vec![D(0), D(1), M], vec![W(0), W(2), W(1), W(3)]];
        assert_eq!(seats(Seating::shared(2, 2, 2)), folded);
    }
}
