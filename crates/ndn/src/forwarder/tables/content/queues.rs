//! The order of eviction: S3-FIFO (J. Yang, Y. Zhang, Z. Qiu, Y. Yue, R. Vinayak, *FIFO Queues are
//! All You Need for Cache Eviction*, SOSP 2023), with sizes in blocks.
//!
//! ```text
//!  new Data ─▶ small queue, a tenth ─┬─ used again ─▶ main queue ─┬─ used ─▶ again from its start
//!                                    └─ else: evicted,            └─ else: evicted
//!                                       its name is a ghost ─▶ main queue, if it is stored again
//! ```
//!
//! A scan of names that are used once passes through the small queue only. A look-up changes only
//! the counter of uses.
//!
//! Invariant: an eviction moves at most [`CHANCES_MAX`] Data, so the time for a packet is bounded.

use crate::forwarder::tables::NONE;

use super::blocks::{Blocks, Queue};

/// Maximum value of the counter of uses.
const USES_MAX: u8 = 3;

/// Number of uses with which a Data moves from the small to the main queue.
const USES_TO_MAIN: u8 = 1;

/// The share of the small queue is one part in this number.
const SMALL_PART: usize = 10;

/// Maximum number of Data that one eviction moves instead.
const CHANCES_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Queues {
    small: List,
    main: List,
}

/// Data in order of insertion.
#[derive(Debug)]
struct List {
    newest: u32,
    oldest: u32,
    /// Number of blocks of its Data.
    blocks: usize,
}

impl Queues {
    pub(super) fn new() -> Self {
        let empty = || List { newest: NONE, oldest: NONE, blocks: 0 };
        Self { small: empty(), main: empty() }
    }

    fn list(&mut self, queue: Queue) -> &mut List {
        match queue {
            Queue::Small => &mut self.small,
            Queue::Main => &mut self.main,
        }
    }

    /// Adds a stored Data to its queue.
    pub(super) fn add(&mut self, blocks: &mut Blocks, at: u32) {
        let (queue, weight) = (blocks[at].queue, blocks[at].blocks());
        let list = self.list(queue);
        list.blocks += weight;
        let older = std::mem::replace(&mut list.newest, at);
        match older {
            NONE => list.oldest = at,
            older => blocks[older].newer = at,
        }
        (blocks[at].newer, blocks[at].older) = (NONE, older);
    }

    /// Removes a stored Data from its queue.
    pub(super) fn remove(&mut self, blocks: &mut Blocks, at: u32) {
        let node = &blocks[at];
        let (newer, older, queue, weight) = (node.newer, node.older, node.queue, node.blocks());
        let list = self.list(queue);
        list.blocks -= weight;
        match newer {
            NONE => list.newest = older,
            newer => blocks[newer].older = older,
        }
        match older {
            NONE => list.oldest = newer,
            older => blocks[older].newer = newer,
        }
    }

    /// Counts a use of a Data.
    #[inline]
    pub(super) fn use_data(blocks: &mut Blocks, at: u32) {
        let uses = &mut blocks[at].uses;
        *uses = (*uses + 1).min(USES_MAX);
    }

    /// The oldest Data of the small queue, which is probably evicted next.
    pub(super) fn oldest(&self) -> u32 {
        self.small.oldest
    }

    /// The Data to evict; `None` if there is none. Moves Data that were used.
    pub(super) fn victim(&mut self, blocks: &mut Blocks) -> Option<u32> {
        for chance in 0..=CHANCES_MAX {
            let share = (self.small.blocks + self.main.blocks) / SMALL_PART;
            let from_small = self.small.blocks > share || self.main.oldest == NONE;
            let oldest = if from_small { self.small.oldest } else { self.main.oldest };
            let node = blocks.get(oldest)?;
            let Some(uses) = left_uses(node.queue, node.uses).filter(|_| chance < CHANCES_MAX)
            else {
                return Some(oldest);
            };
            self.remove(blocks, oldest);
            (blocks[oldest].queue, blocks[oldest].uses) = (Queue::Main, uses);
            self.add(blocks, oldest);
        }
        None
    }
}

/// The counter of a Data after its move to the newest of the main queue; `None` if it is evicted.
fn left_uses(queue: Queue, uses: u8) -> Option<u8> {
    match queue {
        Queue::Small => (uses >= USES_TO_MAIN).then_some(0),
        Queue::Main => uses.checked_sub(1),
    }
}

#[cfg(test)]
impl Queues {
    /// Checks both queues; returns the number of their Data.
    pub(super) fn check(&self, blocks: &Blocks) -> usize {
        let mut count = 0;
        for (list, queue) in [(&self.small, Queue::Small), (&self.main, Queue::Main)] {
            let (mut at, mut newer, mut weight) = (list.newest, NONE, 0);
            while let Some(node) = blocks.get(at) {
                assert!(node.has_data() && node.queue == queue && node.newer == newer);
                (count, weight) = (count + 1, weight + node.blocks());
                (newer, at) = (at, node.older);
            }
            assert_eq!((list.oldest, list.blocks), (newer, weight));
        }
        count
    }
}
