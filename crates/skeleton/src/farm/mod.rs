//! The farm: Dispatcher → N workers → merger.
//!
//! ```text
//!                 ┌─ lane ─▶ worker 0 ─ reports ─┐
//! feed ─▶ dispatcher ─ lane ─▶ worker 1 ─ reports ─┼─▶ merger ─▶ report
//!                 └─ lane ─▶ worker 2 ─ reports ─┘
//! ```
//!
//! A *lane* is the ring of items to a worker with the marks between them. *Reports* is the ring of
//! messages and partials from a worker, with batch 1 as in the paper, so that each is visible at
//! once. All rings are bounded, and a producer that finds one full waits: nothing is dropped.
//!
//! With several queues each has its own dispatcher and workers; the merger receives from all.
//!
//! No deadlock: the merger polls every ring and never waits, so each worker's reports find room, so
//! each worker takes further items, so the dispatcher finds room, and marks are finished. The graph has no cycle;
//! `tests/simulation.rs` searches for a counter-example.

mod dispatcher;
mod lane;
mod worker;

use ringtap_stage::{Application, Feed};

use crate::counters::RunCounters;
use crate::owner::owners;
use crate::seats::Placed;
use crate::{Role, RunError, RunOptions};

/// Makes the dispatchers and workers of every queue, and the merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let each = options.shards.workers_each();
    let (owners, merger) = owners(app, options, counters)?;
    let mut owners = owners.into_iter();
    let mut nodes: Vec<Placed<'a>> = Vec::new();
    for (queue, feed) in feeds.into_iter().enumerate() {
        let mut lanes = Vec::new();
        for (place, owner) in owners.by_ref().take(each).enumerate() {
            let (to, from) = lane::lane(options.ring, options.capacity, options.batch)?;
            lanes.push(to);
            let worker = worker::WorkerNode { owner, lane: from };
            nodes.push((Role::Worker(queue * each + place), Box::new(worker)));
        }
        let shards = options.shards.clone();
        let dispatcher = dispatcher::Dispatcher::new(app, feed, shards, queue, lanes, counters);
        nodes.push((Role::Dispatcher(queue), Box::new(dispatcher)));
    }
    nodes.push((Role::Merger, Box::new(merger)));
    Ok(nodes)
}
