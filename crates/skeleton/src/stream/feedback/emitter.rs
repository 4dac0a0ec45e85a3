//! The emitter: gives tasks to idle workers, and passes solutions to their destinations. It
//! receives the feedback, so it is also the collector.

use std::collections::VecDeque;
use std::sync::Arc;

use ringtap_ring::{Consumer, Producer};

use super::frames::Address;
use super::parcel::{Parcel, Solution, Task};
use super::worker::WorkerLoad;
use crate::node::Step;
use crate::stream::counts::Counts;
use crate::stream::ends::{Inlet, Outlet, Taken};
use crate::stream::network::Work;
use crate::stream::pace::Pace;

/// The rings to and from a worker.
pub(super) struct Lane<P: Send, S: Send> {
    inbox: Producer<Parcel<P, S>>,
    solutions: Consumer<Solution<S>>,
    offers: Consumer<Task<P>>,
    load: Arc<WorkerLoad>,
    /// Tasks given to the worker so far, wrapping.
    given: u32,
    /// A solution from this worker without room at its destination. Later ones wait.
    held: Option<Solution<S>>,
}

impl<P: Send, S: Send> Lane<P, S> {
    pub(super) fn new(
        inbox: Producer<Parcel<P, S>>,
        solutions: Consumer<Solution<S>>,
        offers: Consumer<Task<P>>,
        load: Arc<WorkerLoad>,
    ) -> Self {
        Self { inbox, solutions, offers, load, given: 0, held: None }
    }

    /// The worker's remaining tasks, if it is idle now or after its current task.
    /// after the task it is at.
    fn hunger(&self) -> Option<u32> {
        self.load.get(self.given).filter(|&here| here <= 1)
    }
}

pub(super) struct Emitter<P: Send, S: Send> {
    problems: Inlet<P>,
    lanes: Vec<Lane<P, S>>,
    solutions: Outlet<S>,
    /// Problems in progress; written here alone.
    unsolved: u64,
    /// No problem follows.
    ended: bool,
    /// Tasks taken without room to give them. At most one a lane.
    spare: VecDeque<Task<P>>,
}

impl<P: Send, S: Send> Emitter<P, S> {
    pub(super) fn new(problems: Inlet<P>, lanes: Vec<Lane<P, S>>, solutions: Outlet<S>) -> Self {
        Self { problems, lanes, solutions, unsolved: 0, ended: false, spare: VecDeque::new() }
    }

    /// Moves solutions while there is room for them; returns their number.
    fn move_solutions(&mut self) -> u64 {
        let mut moved = 0;
        for from in 0..self.lanes.len() {
            // Roughly bounded by the ring's content at the start of the step.
            for _ in 0..=self.lanes[from].solutions.capacity() {
                let lane = &mut self.lanes[from];
                let Some(solution) = lane.held.take().or_else(|| lane.solutions.pop()) else {
                    break;
                };
                if let Err(solution) = self.deliver(solution) {
                    self.lanes[from].held = Some(solution);
                    break;
                }
                moved += 1;
            }
        }
        moved
    }

    fn deliver(&mut self, Solution { to, solution }: Solution<S>) -> Result<(), Solution<S>> {
        if to == Address::OUT {
            if !self.solutions.clear() {
                return Err(Solution { to, solution });
            }
            self.solutions.send(solution);
            self.unsolved -= 1;
            return Ok(());
        }
        let inbox = &mut self.lanes[to.owner as usize].inbox;
        match inbox.push(Parcel::Solution(Solution { to, solution })) {
            Err(Parcel::Solution(solution)) => Err(solution),
            _ => Ok(()),
        }
    }

    /// Gives a task to each idle worker, and then to those at their last task; returns the number.
    fn feed_the_hungry(&mut self, counts: &Counts) -> u64 {
        let mut moved = 0;
        for here in [0, 1] {
            for lane in 0..self.lanes.len() {
                if self.lanes[lane].hunger() != Some(here) {
                    continue;
                }
                let Some(task) = self.task_for(lane, counts) else { return moved };
                let lane = &mut self.lanes[lane];
                match lane.inbox.push(Parcel::Task(task)) {
                    Err(Parcel::Task(task)) => self.spare.push_back(task),
                    _ => {
                        lane.given = lane.given.wrapping_add(1);
                        moved += 1;
                    }
                }
            }
        }
        moved
    }

    /// A spare task, one that the worker itself offered (its frame is there), one that another
    /// worker offers, or a new problem.
    fn task_for(&mut self, lane: usize, counts: &Counts) -> Option<Task<P>> {
        let count = self.lanes.len();
        let spare = self.spare.pop_front();
        let offered = || (0..count).find_map(|n| self.lanes[(lane + n) % count].offers.pop());
        if let Some(task) = spare.or_else(offered) {
            return Some(task);
        }
        if self.ended || !self.solutions.clear() {
            return None;
        }
        match self.problems.take() {
            Taken::Item(problem) => {
                self.unsolved += 1;
                counts.items(1, 0);
                return Some(Task { problem, to: Address::OUT });
            }
            Taken::Nothing => counts.empty.add(1),
            Taken::End => self.ended = true,
        }
        None
    }
}

impl<P: Send, S: Send> Work for Emitter<P, S> {
    fn work(&mut self, _: &mut Pace, counts: &Counts) -> Step {
        if self.solutions.is_abandoned() {
            return Step::Done;
        }
        let before = self.solutions.moved();
        let moved = self.move_solutions() + self.feed_the_hungry(counts);
        let cleared = self.solutions.clear();
        self.solutions.flush();
        self.problems.flush();
        for lane in &mut self.lanes {
            lane.inbox.flush();
            lane.solutions.flush();
            lane.offers.flush();
        }
        let sent = self.solutions.moved() - before;
        counts.items(0, sent);
        if !cleared {
            counts.full.add(1);
        }
        // The end is seen when a worker is idle, and when all is solved every worker is.
        match () {
            () if self.ended && self.unsolved == 0 && cleared => Step::Done,
            () if moved + sent > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
