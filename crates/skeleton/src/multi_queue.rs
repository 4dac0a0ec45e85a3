//! Several queues, each read and worked off by one node from the packet to its report: run to
//! completion.
//!
//! ```text
//! feed 0 ─▶ queue 0: worker 0 ─ reports ─┐
//! feed 1 ─▶ queue 1: worker 1 ─ reports ─┼─▶ merger ─▶ report
//! feed 2 ─▶ queue 2: worker 2 ─ reports ─┘
//! ```
//!
//! No item passes from one thread to another, so none waits in a ring: what a queue reads is in the
//! cache of the core that works on it. What is shared is the source, if the feeds have one in common.
//!
//! No deadlock: a queue waits for its feed, which waits for no worker, and for the merger, which waits
//! for nobody.

use ringtap_metrics::Counter;
use ringtap_stage::{Application, Fed, Feed};

use crate::books::Books;
use crate::node::{Node, Step};
use crate::owner::{Owner, owners};
use crate::skeleton::Placed;
use crate::{BURST, Role, RunError, RunOptions};

struct QueueNode<'a, A: Application, F> {
    feed: F,
    owner: Owner<'a, A>,
    /// Read from the feed and not yet handled; empty between steps.
    burst: Vec<A::Item>,
    dispatched: &'a Counter,
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for QueueNode<'_, A, F> {
    fn step(&mut self) -> Step {
        if let Some(step) = self.owner.busy() {
            return step;
        }
        match self.feed.next(&mut self.burst) {
            Fed::Items => {
                self.dispatched.add(self.burst.len() as u64);
                self.owner.items(&self.burst);
                self.burst.clear();
            }
            Fed::Mark(mark) => self.owner.mark(mark),
            Fed::Moved => {}
            Fed::Idle => return Step::Idle,
        }
        Step::Worked
    }

    fn name(&self) -> String {
        self.owner.name()
    }
}

/// A node a queue, and the merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    books: &'a Books<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let workers = options.shards.workers();
    if workers != options.shards.queues() {
        return Err(RunError::Queues { queues: options.shards.queues(), most: workers });
    }
    let (owners, merger) = owners(app, options, books)?;
    let mut nodes: Vec<Placed<'a>> = Vec::new();
    for ((queue, feed), owner) in feeds.into_iter().enumerate().zip(owners) {
        let burst = Vec::with_capacity(BURST);
        let node = QueueNode { feed, owner, burst, dispatched: &books.dispatched[queue] };
        nodes.push((Role::Queue(queue), Box::new(node)));
    }
    nodes.push((Role::Merger, Box::new(merger)));
    Ok(nodes)
}
