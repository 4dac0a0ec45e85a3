//! Nodes on one thread, in an order drawn from a seed.
//!
//! The nodes are those that threads would step, so what is found here is true of them: at every
//! turn the dice pick a node, some nodes are made to stall for long stretches, and rings of two
//! or three slots make every full and empty case common. When no node can go on although some
//! are not done, that is a deadlock and is reported as one. The same seed gives the same order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringtap_stage::{Application, Feed};

use crate::books::Books;
use crate::node::{Node, Step};
use crate::skeleton::{self, Skeleton};
use crate::{Run, RunError, RunOptions};

/// Runs `app` over everything `feed` has, as [`run`](crate::run) would, in the order `seed` says.
pub fn run<A: Application>(
    skeleton: Skeleton,
    app: &A,
    feed: impl Feed<Item = A::Item> + Send,
    options: &RunOptions,
    seed: u64,
) -> Result<Run<A::Report>, RunError> {
    let books = Books::new(options.shards.workers());
    nodes(skeleton::nodes(skeleton, app, feed, options, &books)?, seed)?;
    books.close()
}

/// Steps any nodes until each is done, in the order `seed` says.
///
/// # Errors
/// [`RunError::Deadlock`] when none can go on; otherwise as [`seats::run`](crate::seats::run).
pub fn nodes(nodes: Vec<Box<dyn Node + '_>>, seed: u64) -> Result<(), RunError> {
    let stalled = vec![0; nodes.len()];
    Simulation { nodes, stalled, steps: 0 }.run(Dice(seed))
}

struct Simulation<'a> {
    nodes: Vec<Box<dyn Node + 'a>>,
    /// How many turns each node still sits out.
    stalled: Vec<u64>,
    steps: u64,
}

impl Simulation<'_> {
    fn run(mut self, mut dice: Dice) -> Result<(), RunError> {
        while !self.nodes.is_empty() {
            let at = dice.below(self.nodes.len() as u64) as usize;
            if dice.below(64) == 0 {
                self.stalled[at] = dice.below(500);
            }
            if self.stalled[at] > 0 {
                self.stalled[at] -= 1;
            } else if !self.step(at)? && !self.anyone()? && !self.nodes.is_empty() {
                let waiting = self.nodes.iter().map(|n| n.name()).collect::<Vec<_>>().join(", ");
                return Err(RunError::Deadlock { steps: self.steps, waiting });
            }
        }
        Ok(())
    }

    /// Is anyone able to go on? Asks each in turn; a node that can does so. Twice: an idle node
    /// may still publish what it had held back.
    fn anyone(&mut self) -> Result<bool, RunError> {
        for at in (0..self.nodes.len()).chain(0..self.nodes.len()) {
            if self.step(at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if something moved. A node that is done goes.
    fn step(&mut self, at: usize) -> Result<bool, RunError> {
        self.steps += 1;
        let node = &mut self.nodes[at];
        match catch_unwind(AssertUnwindSafe(|| node.step())) {
            Ok(Step::Worked) => Ok(true),
            Ok(Step::Idle) => Ok(false),
            Ok(Step::Done) => {
                self.nodes.remove(at);
                self.stalled.remove(at);
                Ok(true)
            }
            Ok(Step::Failed(error)) => Err(RunError::Failed { node: node.name(), error }),
            Err(panic) => Err(RunError::panicked(node.name(), panic.as_ref())),
        }
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
