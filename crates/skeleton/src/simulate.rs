//! Nodes on one thread, in an order drawn from a seed.
//!
//! The nodes are those that threads would step, so the findings hold for threads: at every turn a
//! random generator picks the node, some nodes stall for long stretches, and rings of two or three
//! slots make full and empty cases common. When no node can proceed although some are not done,
//! that is a deadlock and is reported. The same seed gives the same order.
//!
//! Nodes also sleep as seats do: one that was idle twice in a row is not stepped before another
//! made progress. If all sleep and one could proceed, a node has broken its contract ([`Node`]): on
//! threads a seat would have slept on. That is reported, too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringtap_stage::{Application, Feed};

use crate::counters::RunCounters;
use crate::node::{Node, Step};
use crate::skeleton::{self, Skeleton};
use crate::{Run, RunError, RunOptions};

/// Runs `app` over everything in `feeds`, as [`run`](crate::run) would, in the order of `seed`.
pub fn run<A: Application>(
    skeleton: Skeleton,
    app: &A,
    feeds: Vec<impl Feed<Item = A::Item> + Send>,
    options: &RunOptions,
    seed: u64,
) -> Result<Run<A::Report>, RunError> {
    let counters = RunCounters::new(&options.shards);
    let placed = skeleton::nodes(skeleton, app, feeds, options, &counters)?;
    nodes(placed.into_iter().map(|(_, node)| node).collect(), seed)?;
    counters.close()
}

/// Steps any nodes until each is done, in the order of `seed`.
///
/// # Errors
/// [`RunError::Deadlock`] when none can proceed; otherwise as [`seats::run`](crate::seats::run).
pub fn nodes(nodes: Vec<Box<dyn Node + '_>>, seed: u64) -> Result<(), RunError> {
    let seats = nodes
        .into_iter()
        .map(|node| Seat { node, stalled_until: 0, idle: 0, untold: false })
        .collect();
    Simulation { seats, steps: 0 }.run(Dice(seed))
}

struct Seat<'a> {
    node: Box<dyn Node + 'a>,
    /// The node is not stepped before this step number.
    stalled_until: u64,
    /// Consecutive idle steps since a node made progress.
    idle: u32,
    /// The node's last step made progress; it may have held back a part of that.
    untold: bool,
}

struct Simulation<'a> {
    seats: Vec<Seat<'a>>,
    steps: u64,
}

impl Simulation<'_> {
    fn run(mut self, mut dice: Dice) -> Result<(), RunError> {
        while !self.seats.is_empty() {
            let count = self.seats.len();
            let first = dice.below(count as u64) as usize;
            if dice.below(64) == 0 {
                self.seats[first].stalled_until = self.steps + dice.below(500);
            }
            let steps = self.steps;
            let ready =
                |at: &usize| self.seats[*at].awake() && self.seats[*at].stalled_until <= steps;
            let mut turns = (0..count).map(|n| (first + n) % count);
            if let Some(at) = turns.find(ready) {
                self.step(at)?;
            } else if self.seats.iter().any(Seat::awake) {
                // No other node can proceed: end the stall.
                self.seats.iter_mut().for_each(|seat| seat.stalled_until = 0);
            } else if !self.wake_someone()? {
                let waiting: Vec<_> = self.seats.iter().map(|seat| seat.node.name()).collect();
                let waiting = waiting.join(", ");
                return Err(RunError::Deadlock { steps, waiting });
            }
        }
        Ok(())
    }

    /// All sleep. Nodes that do not poll must have nothing to do; then those that poll are stepped.
    /// True after progress.
    fn wake_someone(&mut self) -> Result<bool, RunError> {
        for polls in [false, true] {
            for at in 0..self.seats.len() {
                if self.seats[at].node.polls() == polls {
                    let name = self.seats[at].node.name();
                    if self.step(at)? {
                        return if polls { Ok(true) } else { Err(RunError::Overslept { name }) };
                    }
                }
            }
        }
        Ok(false)
    }

    /// True after progress. A node that is done is removed.
    fn step(&mut self, at: usize) -> Result<bool, RunError> {
        self.steps += 1;
        let seat = &mut self.seats[at];
        let node = &mut seat.node;
        match catch_unwind(AssertUnwindSafe(|| node.step())) {
            Ok(Step::Worked) => {
                seat.untold = true;
                self.seats.iter_mut().for_each(|seat| seat.idle = 0);
                Ok(true)
            }
            Ok(Step::Idle) => {
                seat.idle += 1;
                if std::mem::take(&mut seat.untold) {
                    // It may have published that now.
                    let others = self.seats.iter_mut().enumerate().filter(|(n, _)| *n != at);
                    others.for_each(|(_, seat)| seat.idle = seat.idle.min(1));
                }
                Ok(false)
            }
            Ok(Step::Done) => {
                self.seats.remove(at);
                self.seats.iter_mut().for_each(|seat| seat.idle = 0);
                Ok(true)
            }
            Ok(Step::Failed(error)) => Err(RunError::Failed { node: node.name(), error }),
            Err(panic) => Err(RunError::panicked(node.name(), panic.as_ref())),
        }
    }
}

impl Seat<'_> {
    fn awake(&self) -> bool {
        self.idle < 2
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
