//! Several queues, each read and worked off by one node from the packet to its report: run to
//! completion.
//!
//! ```text
//! feed 0 ─▶ queue 0: worker 0 ─ reports ─┐              ┌─ hand on the seat of queue 0
//! feed 1 ─▶ queue 1: worker 1 ─ reports ─┼─▶ merger ◀───┼─ hand on the seat of queue 1
//! feed 2 ─▶ queue 2: worker 2 ─ reports ─┘      │       └─ hand on the seat of queue 2
//!                                               └─▶ report
//! ```
//!
//! No item passes from one thread to another, so none waits in a ring: what a queue reads is in the
//! cache of the core that works on it. What is shared is the source, if the feeds have one in common.
//!
//! The merger has no seat. A *hand* sits with every queue, and whose turn it is takes the lock and merges a
//! little; who finds it taken goes on with something else. So merging falls to whoever has time, and no
//! queue is behind because of it.
//!
//! No wake-up is lost by that: a hand that holds the lock looks at all rings, and its seat looks once more
//! before it sleeps (`idle.rs`); a hand that does not, leaves them to the one that does.
//!
//! No deadlock: a queue waits for its feed, which waits for no worker, and for the merger, which waits
//! for nobody.

use std::sync::{Arc, Mutex};

use ringtap_base::Counter;
use ringtap_stage::{Application, Burst, Fed, Feed};

use crate::books::Books;
use crate::merger::MergerNode;
use crate::node::{Node, Step};
use crate::owner::{Owner, owners};
use crate::seats::Placed;
use crate::{BURST, Role, RunError, RunOptions};

struct QueueNode<'a, A: Application, F> {
    feed: F,
    owner: Owner<'a, A>,
    /// Read from the feed and not yet handled; empty between steps.
    burst: Burst<A::Item>,
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
                self.owner.items(&self.burst, self.burst.attachments());
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

/// One of those who merge.
struct Hand<'a, A: Application>(Arc<Mutex<Option<MergerNode<'a, A>>>>);

impl<A: Application> Node for Hand<'_, A> {
    fn step(&mut self) -> Step {
        let Ok(mut merger) = self.0.try_lock() else { return Step::Idle };
        let Some(node) = merger.as_mut() else { return Step::Done };
        let step = node.step();
        if matches!(step, Step::Done) {
            *merger = None;
        }
        step
    }

    fn name(&self) -> String {
        "merger".into()
    }

    fn polls(&self) -> bool {
        false
    }
}

/// For each queue a node, and a hand of the merger.
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
        let burst = Burst::with_capacity(BURST);
        let node = QueueNode { feed, owner, burst, dispatched: &books.dispatched[queue] };
        nodes.push((Role::Queue(queue), Box::new(node)));
    }
    let merger = Arc::new(Mutex::new(Some(merger)));
    for _ in 0..workers {
        nodes.push((Role::Merger, Box::new(Hand(Arc::clone(&merger)))));
    }
    Ok(nodes)
}
