//! Seats: which threads there are, which nodes each of them steps, and on which core.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::RunError;
use crate::idle::{Bell, Idle, Pause, Wait};
use crate::node::{Node, Step};

/// A node's part in a run.
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

/// A node, and its place among the seats.
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

/// Which nodes share a thread, and where the threads are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    /// The roles on each seat; every role of the run stands in exactly one, but the merger of several
    /// queues may sit with each.
    pub seats: Vec<Vec<Role>>,
    /// The core of each seat (taken in turn if there are fewer); empty: left to the kernel.
    pub pin: Vec<usize>,
}

impl Seating {
    /// One dispatcher and its workers apart as far as `cores` allow. The merger has little to do: it
    /// gets a seat of its own only when a core is left for it.
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

    /// For several queues that are read and worked off by one node each. The merger sits with all of
    /// them: whoever has time merges.
    pub fn queues(queues: usize, cores: usize) -> Self {
        let seats = queues.min(cores).max(1);
        let of_seat = |seat| (seat..queues).step_by(seats).map(Role::Queue);
        let with_merger = |seat| of_seat(seat).chain([Role::Merger]).collect();
        Self { seats: (0..seats).map(with_merger).collect(), pin: Vec::new() }
    }

    /// For several queues with a dispatcher and `each` workers: whoever belongs to a queue sits
    /// together, if not all can sit apart.
    pub fn side_by_side(queues: usize, each: usize, cores: usize) -> Self {
        let queue = |queue: usize| {
            let workers = queue * each..(queue + 1) * each;
            std::iter::once(vec![Role::Dispatcher(queue)])
                .chain(workers.map(|worker| vec![Role::Worker(worker)]))
        };
        Self::folded((0..queues).flat_map(queue).collect(), cores)
    }

    /// For several queues whose workers share threads: worker i of each sits with worker i of the
    /// others.
    pub fn shared(queues: usize, each: usize, cores: usize) -> Self {
        let readers = (0..queues).map(|queue| vec![Role::Dispatcher(queue)]);
        let of_all = |place| (0..queues).map(|queue| Role::Worker(queue * each + place)).collect();
        Self::folded(readers.chain((0..each).map(of_all)).collect(), cores)
    }

    /// These threads in no more seats than there are cores, neighbours together. The merger has
    /// little to do: it gets a seat of its own only when a core is left for it.
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

/// Cores this process may run on.
pub fn free_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Numbers of the cores that threads of this process may be pinned to, ascending; empty if the kernel does not say. There
/// may be more of them than [`free_cores`]: that heeds a limit of CPU time (cgroups) as well.
pub fn allowed_cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..=HIGHEST_CORE).filter(|&core| set.is_set(core)).collect()
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

/// Shares out nodes of these weights, in the order items pass them, over at most `cores` seats:
/// the seat of each. With as many cores as nodes each has its own; with fewer, neighbours sit
/// together, and each seat has about the same weight.
pub(crate) fn share(weights: &[u32], cores: usize) -> Vec<usize> {
    if weights.len() <= cores {
        return (0..weights.len()).collect();
    }
    let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
    let mut before = 0;
    let mut seat = |&weight: &u32| {
        // Where the node's middle lies.
        let middle = 2 * before + u64::from(weight);
        before += u64::from(weight);
        (middle * cores.max(1) as u64 / (2 * total).max(1)) as usize
    };
    weights.iter().map(&mut seat).collect()
}

/// Steps all nodes until each is done: a thread for each seat, but seat 0 is the calling thread,
/// which works too. Seat *s* is pinned to core `pin[s % pin.len()]`, if any is given.
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
        bell: (wait == Wait::Park && count > 1).then(|| Bell::new(count)),
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
        // ThreadSanitizer sees that a thread has ended when it is joined, not when a scope ends.
        threads.into_iter().for_each(|t| t.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
    let failure = shared.failure.into_inner().unwrap_or_else(|poison| poison.into_inner());
    failure.map_or(Ok(()), Err)
}

struct Shared {
    /// Read between steps; it carries no data, so Relaxed will do.
    stop: AtomicBool,
    failure: Mutex<Option<RunError>>,
    /// Only where seats sleep.
    bell: Option<Bell>,
}

impl Shared {
    fn sit(&self, seat: usize, mut nodes: Vec<Box<dyn Node + '_>>, mut idle: Idle) {
        if let Some(bell) = &self.bell {
            bell.here(seat);
        }
        // Whether nodes may have published something since the bell was rung.
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
            match (idle.next(polls), &self.bell) {
                (Pause::Spin, _) => (0..16).for_each(|_| std::hint::spin_loop()),
                (Pause::Park(nap), Some(bell)) => {
                    bell.lie_down(seat);
                    if self.round(&mut nodes) {
                        idle.reset();
                        untold = true;
                        bell.get_up(seat);
                    } else {
                        if !self.stop.load(Ordering::Relaxed) {
                            std::thread::park_timeout(nap);
                        }
                        idle.awake(bell.get_up(seat));
                    }
                }
                // A single seat that waits, waits for the world.
                (Pause::Park(nap), None) => {
                    std::thread::park_timeout(nap);
                    idle.awake(false);
                }
                (Pause::Yield, _) => std::thread::yield_now(),
            }
        }
        // Nodes left by a run that failed: what they hold may panic when dropped.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(nodes))) {
            self.fail(RunError::panicked("a node, dropped".into(), panic.as_ref()));
        }
    }

    /// Steps every node once; true if something moved.
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
                    // Dropped before the bell: that closes its rings.
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
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    fn fail(&self, error: RunError) {
        let mut failure = self.failure.lock().unwrap_or_else(|poison| poison.into_inner());
        // The first one is the cause, later ones may be its consequence.
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
