//! The collector: joins the workers' results, as they arrive or in the order of the items.

use ringtap_ring::Producer;

use crate::node::Step;
use crate::stream::counts::Counts;
use crate::stream::ends::{Inlet, Outlet, Taken};
use crate::stream::network::Work;
use crate::stream::pace::Pace;

/// Most results taken from one worker before the next has its turn.
const TURN: usize = 32;

/// The emitter's record of the order.
pub(super) struct InOrder {
    order: Inlet<u32>,
    /// The worker of the next result; `None`: read the order ring.
    next: Option<usize>,
}

impl InOrder {
    pub(super) fn new(order: Inlet<u32>) -> Self {
        Self { order, next: None }
    }
}

pub(super) struct Collector<U: Send> {
    results: Vec<Inlet<U>>,
    outlet: Outlet<U>,
    in_order: Option<InOrder>,
    /// Where the next turn begins; only without order.
    turn: usize,
}

impl<U: Send> Collector<U> {
    pub(super) fn new(
        results: Vec<Inlet<U>>,
        output: Producer<U>,
        in_order: Option<InOrder>,
    ) -> Self {
        Self { results, outlet: Outlet::new(output), in_order, turn: 0 }
    }

    /// Takes results as they arrive; returns their number, and whether none will follow.
    fn as_they_come(&mut self, pace: &mut Pace) -> (u64, bool) {
        let mut taken = 0;
        // Rings found empty in a row. Only results count for the pace, so a step that finds nothing
        // has polled every ring.
        let mut left = 0;
        pace.more();
        while left < self.results.len() {
            let at = self.turn % self.results.len();
            let mut ended = false;
            for _ in 0..TURN {
                if !self.outlet.clear() {
                    return (taken, false);
                }
                match self.results[at].take() {
                    Taken::Item(result) => {
                        taken += 1;
                        self.outlet.send(result);
                        if !pace.more() {
                            self.turn = at + 1;
                            return (taken, false);
                        }
                        continue;
                    }
                    Taken::Nothing => left += 1,
                    Taken::End => ended = true,
                }
                break;
            }
            if ended {
                self.results.remove(at);
                (self.turn, left) = (at, 0);
            } else {
                self.turn = at + 1;
            }
        }
        (taken, self.results.is_empty())
    }

    /// Takes results in the order of the items.
    fn in_order(&mut self, pace: &mut Pace) -> (u64, bool) {
        let mut taken = 0;
        let Some(InOrder { order, next }) = &mut self.in_order else { return (0, true) };
        while self.outlet.clear() && pace.more() {
            let worker = match *next {
                Some(worker) => worker,
                None => match order.take() {
                    Taken::Item(worker) => worker as usize,
                    Taken::Nothing => return (taken, false),
                    Taken::End => return (taken, true),
                },
            };
            *next = Some(worker);
            match self.results[worker].take() {
                Taken::Item(result) => {
                    taken += 1;
                    self.outlet.send(result);
                    *next = None;
                }
                // A worker makes one result of each item and ends after its last.
                Taken::Nothing | Taken::End => return (taken, false),
            }
        }
        (taken, false)
    }
}

impl<U: Send> Work for Collector<U> {
    fn work(&mut self, pace: &mut Pace, counts: &Counts) -> Step {
        if self.outlet.is_abandoned() {
            return Step::Done;
        }
        let before = self.outlet.moved();
        let (taken, ended) =
            if self.in_order.is_some() { self.in_order(pace) } else { self.as_they_come(pace) };
        let cleared = self.outlet.clear();
        self.outlet.flush();
        self.results.iter_mut().for_each(Inlet::flush);
        self.in_order.iter_mut().for_each(|in_order| in_order.order.flush());
        let sent = self.outlet.moved() - before;
        counts.items(taken, sent);
        if !cleared {
            counts.full.add(1);
        } else if taken == 0 {
            counts.empty.add(1);
        }
        match () {
            () if ended && cleared => Step::Done,
            () if taken + sent > 0 => Step::Worked,
            () => Step::Idle,
        }
    }
}
