//! A worker: divides the newest of its tasks, offers the oldest, combines solutions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringtap_ring::{Consumer, Producer};

use super::frames::{Address, Frames};
use super::parcel::{Divided, Parcel, Solution, Task};
use crate::node::Step;
use crate::stream::counts::Counts;
use crate::stream::network::Work;
use crate::stream::pace::Pace;

/// The number of a worker's tasks, for the emitter. One writer, one word, so that both halves are
/// consistent; a hint that orders no other data, so Relaxed.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WorkerLoad(AtomicU64);

impl WorkerLoad {
    /// Stores the number of tasks received, and the number here, including the current one.
    fn set(&self, came: u32, here: usize) {
        let here = here.min(u32::MAX as usize) as u64;
        self.0.store(u64::from(came) << 32 | here, Relaxed);
    }

    /// Tasks here, if the worker has received all that were `given` to it.
    pub(super) fn get(&self, given: u32) -> Option<u32> {
        let load = self.0.load(Relaxed);
        ((load >> 32) as u32 == given).then_some(load as u32)
    }
}

pub(super) struct Worker<P: Send, S: Send, D, C> {
    /// The functions to divide and combine.
    functions: Arc<(D, C)>,
    inbox: Consumer<Parcel<P, S>>,
    offers: Producer<Task<P>>,
    solutions: Producer<Solution<S>>,
    /// The newest at the back.
    stack: VecDeque<Task<P>>,
    frames: Frames<S>,
    /// Solutions for other workers without room.
    backlog: VecDeque<Solution<S>>,
    load: Arc<WorkerLoad>,
    /// Tasks received through the inbox, wrapping.
    came: u32,
}

impl<P, S, I, D, C> Worker<P, S, D, C>
where
    P: Send,
    S: Send,
    I: IntoIterator<Item = P>,
    D: Fn(P) -> Divided<S, I>,
    C: Fn(&mut dyn Iterator<Item = S>) -> S,
{
    pub(super) fn new(
        number: u32,
        functions: Arc<(D, C)>,
        inbox: Consumer<Parcel<P, S>>,
        offers: Producer<Task<P>>,
        solutions: Producer<Solution<S>>,
        load: Arc<WorkerLoad>,
    ) -> Self {
        Self {
            functions,
            inbox,
            offers,
            solutions,
            stack: VecDeque::new(),
            frames: Frames::new(number),
            backlog: VecDeque::new(),
            load,
            came: 0,
        }
    }

    /// Empties the inbox; returns the number of messages.
    fn receive(&mut self) -> u64 {
        let mut parcels = 0;
        while let Some(parcel) = self.inbox.pop() {
            parcels += 1;
            match parcel {
                Parcel::Task(task) => {
                    self.came = self.came.wrapping_add(1);
                    self.stack.push_back(task);
                }
                Parcel::Solution(Solution { to, solution }) => self.solved(to, solution),
            }
        }
        parcels
    }

    fn solve(&mut self, Task { problem, to }: Task<P>) {
        let parts = match (self.functions.0)(problem) {
            Divided::Solved(solution) => return self.solved(to, solution),
            Divided::Split(parts) => parts,
        };
        // The first part on top: it is the next.
        let below = self.stack.len();
        self.stack.extend(parts.into_iter().map(|problem| Task { problem, to }));
        let parts = self.stack.len() - below;
        if parts == 0 {
            let solution = (self.functions.1)(&mut std::iter::empty());
            return self.solved(to, solution);
        }
        let address = self.frames.open(to, parts);
        let divided = &mut self.stack.make_contiguous()[below..];
        for (part, task) in divided.iter_mut().enumerate() {
            task.to = address(part);
        }
        divided.reverse();
    }

    fn solved(&mut self, to: Address, solution: S) {
        let combine = &self.functions.1;
        if let Some((to, solution)) = self.frames.deliver(to, solution, combine) {
            self.backlog.push_back(Solution { to, solution });
        }
    }

    /// Sends solutions to their destinations, and offers old tasks, while there is room; returns
    /// the number of both.
    fn share(&mut self) -> u64 {
        let mut sent = 0;
        while let Some(solution) = self.backlog.pop_front() {
            if let Err(solution) = self.solutions.push(solution) {
                self.backlog.push_front(solution);
                break;
            }
            sent += 1;
        }
        if sent > 0 {
            self.solutions.flush();
        }
        let mut offered = 0;
        while self.stack.len() > 1
            && let Some(oldest) = self.stack.pop_front()
        {
            if let Err(oldest) = self.offers.push(oldest) {
                self.stack.push_front(oldest);
                break;
            }
            offered += 1;
        }
        if offered > 0 {
            self.offers.flush();
        }
        sent + offered
    }
}

impl<P, S, I, D, C> Work for Worker<P, S, D, C>
where
    P: Send,
    S: Send,
    I: IntoIterator<Item = P>,
    D: Fn(P) -> Divided<S, I> + Send + Sync,
    C: Fn(&mut dyn Iterator<Item = S>) -> S + Send + Sync,
{
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        if self.inbox.is_closed() {
            // All problems are solved, or the receiver is gone.
            return Step::Done;
        }
        let received = self.receive();
        let mut sent = self.share();
        let mut solved = 0;
        while !self.stack.is_empty() && pace.one_more() {
            self.load.set(self.came, self.stack.len());
            if let Some(task) = self.stack.pop_back() {
                self.solve(task);
                solved += 1;
            }
            sent += self.share();
        }
        self.load.set(self.came, self.stack.len());
        self.inbox.flush();
        counts.items(solved, sent);
        if !self.backlog.is_empty() {
            counts.full.add(1);
        }
        if received + solved + sent > 0 {
            return Step::Worked;
        }
        counts.empty.add(1);
        Step::Idle
    }
}
