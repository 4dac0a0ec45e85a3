//! The emitter: hands each item to one of the workers.

use std::fmt;
use std::sync::Arc;

use ringtap_ring::Producer;

use crate::node::Step;
use crate::stream::counts::Counts;
use crate::stream::ends::{Inlet, Taken};
use crate::stream::network::Work;
use crate::stream::pace::Pace;

/// The policy by which a worker gets an item.
pub enum Policy<'a, T> {
    /// Workers in turn. For items of equal cost.
    RoundRobin,
    /// The worker with the fewest items. For items of different cost, and for workers that share
    /// cores. A worker gets at most two steps' worth of items in advance, so coarse items do not
    /// queue behind a slow one.
    OnDemand,
    /// The owner of the item's key: equal keys meet the same worker, in order. See
    /// [`Policy::by_key`].
    ByKey(Box<dyn FnMut(&T) -> u64 + Send + 'a>),
}

impl<'a, T> Policy<'a, T> {
    /// Equal keys meet the same worker. Keys are hashed here.
    pub fn by_key(key: impl FnMut(&T) -> u64 + Send + 'a) -> Self {
        Self::ByKey(Box::new(key))
    }
}

impl<T> fmt::Debug for Policy<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundRobin => "RoundRobin",
            Self::OnDemand => "OnDemand",
            Self::ByKey(_) => "ByKey",
        })
    }
}

/// The ring to a worker.
struct Lane<T: Send> {
    ring: Producer<T>,
    /// Items pushed so far.
    given: u64,
    /// The counters of the worker's first node: items it has handled. `None`: unknown.
    worker: Option<Arc<Counts>>,
    /// Items given and not handled, and their limit, at the beginning of the step.
    load: u64,
    window: u64,
}

impl<T: Send> Lane<T> {
    /// Reads the worker's progress.
    fn look(&mut self) {
        let capacity = self.ring.capacity() as u64;
        (self.load, self.window) = match &self.worker {
            // Twice the items of its last step: a step's worth in work, and another waiting.
            Some(worker) => {
                (self.given.saturating_sub(worker.items_in.get()), (2 * worker.last()).max(2))
            }
            None => (capacity - self.ring.free() as u64, capacity),
        };
    }

    fn push(&mut self, item: T) -> Result<(), T> {
        self.ring.push(item)?;
        self.given += 1;
        self.load += 1;
        Ok(())
    }
}

pub(super) struct Emitter<'a, T: Send> {
    items: Inlet<T>,
    lanes: Vec<Lane<T>>,
    policy: Policy<'a, T>,
    /// The next worker in turn.
    turn: usize,
    /// An item without room, and its key's owner.
    held: Option<(T, Option<usize>)>,
    /// The worker of each item, for a collector that keeps the order.
    order: Option<Producer<u32>>,
}

/// The result of handing over an item.
enum Given<T> {
    Yes,
    /// There is no room now.
    No(T),
    /// All workers ended early.
    NoWorker,
}

impl<'a, T: Send> Emitter<'a, T> {
    pub(super) fn new(
        items: Inlet<T>,
        policy: Policy<'a, T>,
        order: Option<Producer<u32>>,
    ) -> Self {
        Self { items, lanes: Vec::new(), policy, turn: 0, held: None, order }
    }

    pub(super) fn add_lane(&mut self, ring: Producer<T>, worker: Option<Arc<Counts>>) {
        self.lanes.push(Lane { ring, given: 0, worker, load: 0, window: 0 });
    }

    /// The owner of the item's key, if keys matter.
    fn owner(&mut self, item: &T) -> Option<usize> {
        let Policy::ByKey(key) = &mut self.policy else { return None };
        // Fibonacci hashing; the upper half of the product with the number of lanes scales it.
        let mixed = (key(item) ^ 0x6a09_e667_f3bc_c909).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(((u128::from(mixed) * self.lanes.len() as u128) >> 64) as usize)
    }

    fn give(&mut self, item: T, owner: Option<usize>) -> Given<T> {
        if self.order.as_mut().is_some_and(|order| order.free() == 0) {
            return Given::No(item);
        }
        let lane = match (&self.policy, owner) {
            (Policy::ByKey(_), Some(owner)) => {
                if self.lanes[owner].ring.is_abandoned() {
                    // Its worker has ended: its items are dropped.
                    return if self.all_gone() { Given::NoWorker } else { Given::Yes };
                }
                owner
            }
            (Policy::OnDemand, _) => match self.least_loaded() {
                Some(lane) => lane,
                None if self.all_gone() => return Given::NoWorker,
                None => return Given::No(item),
            },
            _ => {
                let count = self.lanes.len();
                let mut turns = (0..count).map(|n| (self.turn + n) % count);
                match turns.find(|&lane| !self.lanes[lane].ring.is_abandoned()) {
                    Some(lane) => lane,
                    None => return Given::NoWorker,
                }
            }
        };
        if let Err(item) = self.lanes[lane].push(item) {
            // It is full: not before the next step.
            self.lanes[lane].window = 0;
            return Given::No(item);
        }
        self.turn = if lane + 1 == self.lanes.len() { 0 } else { lane + 1 };
        if let Some(order) = &mut self.order {
            // There was room, and only the collector could change that, to more.
            let noted = order.push(lane as u32);
            debug_assert!(noted.is_ok());
        }
        Given::Yes
    }

    /// Of the workers that may have more, one with the least to do.
    fn least_loaded(&self) -> Option<usize> {
        let open = |&lane: &usize| {
            let lane = &self.lanes[lane];
            lane.load < lane.window && !lane.ring.is_abandoned()
        };
        let count = self.lanes.len();
        (0..count)
            .map(|n| (self.turn + n) % count)
            .filter(open)
            .min_by_key(|&lane| self.lanes[lane].load)
    }

    fn all_gone(&self) -> bool {
        self.lanes.iter().all(|lane| lane.ring.is_abandoned())
    }
}

impl<T: Send> Work for Emitter<'_, T> {
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        if self.all_gone() {
            return Step::Done;
        }
        if matches!(self.policy, Policy::OnDemand) {
            self.lanes.iter_mut().for_each(Lane::look);
        }
        let (mut taken, mut given, mut ended) = (0, 0, false);
        while pace.more() {
            let (item, owner) = match self.held.take() {
                Some(held) => held,
                None => match self.items.take() {
                    Taken::Item(item) => {
                        taken += 1;
                        let owner = self.owner(&item);
                        (item, owner)
                    }
                    Taken::Nothing => {
                        counts.empty.add(1);
                        break;
                    }
                    Taken::End => {
                        ended = true;
                        break;
                    }
                },
            };
            match self.give(item, owner) {
                Given::Yes => given += 1,
                Given::No(item) => {
                    self.held = Some((item, owner));
                    counts.full.add(1);
                    break;
                }
                Given::NoWorker => return Step::Done,
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.ring.flush());
        self.order.iter_mut().for_each(Producer::flush);
        self.items.flush();
        counts.items(taken, given);
        match () {
            () if ended => Step::Done,
            () if taken + given > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
