//! Several queues; one node for each reads and analyses its packets: run to completion.
//!
//! ```text
//! feed 0 ─▶ queue 0: worker 0 ─ reports ─┐              ┌─ merge node on the seat of queue 0
//! feed 1 ─▶ queue 1: worker 1 ─ reports ─┼─▶ merger ◀───┼─ merge node on the seat of queue 1
//! feed 2 ─▶ queue 2: worker 2 ─ reports ─┘      │       └─ merge node on the seat of queue 2
//!                                               └─▶ report
//! ```
//!
//! No item passes between threads, so none waits in a ring: the packets that a queue reads are in
//! the cache of the core that analyses them. Only the source is shared, if the feeds have one in
//! common.
//!
//! The merger has no seat of its own. Each queue's seat has a merge node; the one that takes the
//! lock merges a few reports, and a thread that finds it taken continues with other work. So an
//! idle thread merges, and no queue falls behind because of it.
//!
//! No wake-up is lost: a merge node that holds the lock polls all rings, and its seat polls once
//! more before it sleeps (`idle.rs`); a merge node without the lock leaves them to the holder.
//!
//! No deadlock: a queue waits for its feed, which waits at most for slower queues of its source, and for the merger,
//! which never waits.

use std::sync::{Arc, Mutex};

use ringtap_base::Counter;
use ringtap_stage::{Application, Burst, Fed, Feed};

use crate::counters::RunCounters;
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

    fn is_slow(&self) -> bool {
        self.feed.is_slow()
    }
}

/// A node that merges when it gets the lock.
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

/// Makes a node and a merge node for each queue.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let workers = options.shards.workers();
    if workers != options.shards.queues() {
        return Err(RunError::Queues { queues: options.shards.queues(), most: workers });
    }
    let (owners, merger) = owners(app, options, counters)?;
    let mut nodes: Vec<Placed<'a>> = Vec::new();
    for ((queue, feed), owner) in feeds.into_iter().enumerate().zip(owners) {
        let burst = Burst::with_capacity(BURST);
        let node = QueueNode { feed, owner, burst, dispatched: &counters.dispatched[queue] };
        nodes.push((Role::Queue(queue), Box::new(node)));
    }
    let merger = Arc::new(Mutex::new(Some(merger)));
    for _ in 0..workers {
        nodes.push((Role::Merger, Box::new(Hand(Arc::clone(&merger)))));
    }
    Ok(nodes)
}
