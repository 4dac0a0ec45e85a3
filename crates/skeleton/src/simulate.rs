//! The farm on one thread, in an order drawn from a seed.
//!
//! The nodes are the farm's own, so what is proven here is proven of the farm: at every turn the
//! dice pick a node, some nodes are made to stall for long stretches, and rings of two or three
//! slots make every full and empty case common. When no node can go on although some are not
//! done, that is a deadlock and is reported as one.

use ringtap_stage::{Application, Feed};

use crate::farm::{self, Books};
use crate::node::Step;
use crate::{FarmOptions, Run, RunError};

/// Runs `app` over everything `feed` has, as [`farm::run`] would, in the order `seed` says.
pub fn run<A: Application>(
    app: &A,
    feed: impl Feed<Item = A::Item> + Send,
    options: &FarmOptions,
    seed: u64,
) -> Result<Run<A::Report>, RunError> {
    let books = Books::new(options);
    let mut nodes = farm::nodes(app, feed, options, &books)?;
    let mut dice = Dice(seed);
    let mut steps = 0u64;
    // How many turns each node still sits out.
    let mut stalled = vec![0u64; nodes.len()];
    while !nodes.is_empty() {
        let at = dice.below(nodes.len() as u64) as usize;
        if dice.below(64) == 0 {
            stalled[at] = dice.below(500);
        }
        if stalled[at] > 0 {
            stalled[at] -= 1;
            continue;
        }
        steps += 1;
        match nodes[at].step() {
            Step::Worked => {}
            Step::Done => {
                nodes.remove(at);
                stalled.remove(at);
            }
            Step::Idle => {
                // Is anyone able to go on? Ask each in turn; a node that can does so. Twice: an
                // idle node may still publish what it had held back.
                let mut moved = false;
                for other in (0..nodes.len()).chain(0..nodes.len()) {
                    steps += 1;
                    let step = nodes[other].step();
                    if step == Step::Done {
                        nodes.remove(other);
                        stalled.remove(other);
                    }
                    moved = step != Step::Idle;
                    if moved {
                        break;
                    }
                }
                if !moved && !nodes.is_empty() {
                    let waiting = nodes.iter().map(|n| n.name()).collect::<Vec<_>>().join(", ");
                    return Err(RunError::Deadlock { steps, waiting });
                }
            }
        }
    }
    drop(nodes);
    books.close()
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
