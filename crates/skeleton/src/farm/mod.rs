//! The farm: Dispatcher → N workers → merger.
//!
//! ```text
//!                 ┌─ lane ─▶ worker 0 ─ reports ─┐
//! feed ─▶ dispatcher ─ lane ─▶ worker 1 ─ reports ─┼─▶ merger ─▶ report
//!                 └─ lane ─▶ worker 2 ─ reports ─┘
//! ```
//!
//! A *lane* is the ring of items to a worker with the marks between them. *Reports* is the ring
//! of state reports and partials from a worker, with batch 1 as in the paper, so that each is
//! seen at once. All rings are bounded, and who finds one full waits: nothing is dropped.
//!
//! No deadlock: the merger takes from every ring and never waits for anyone, so each worker's
//! reports find room in the end, so each worker goes on taking items, so the dispatcher finds
//! room. The graph has no cycle; `tests/simulation.rs` searches for a counter-example.

mod dispatcher;
mod lane;
mod worker;

use ringtap_stage::{Application, Feed};

use crate::books::Books;
use crate::node::Node;
use crate::owner::owners;
use crate::{RunError, RunOptions};

/// Dispatcher, workers in order, merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feed: impl Feed<Item = A::Item> + Send + 'a,
    options: &RunOptions,
    books: &'a Books<A::Report>,
) -> Result<Vec<Box<dyn Node + 'a>>, RunError> {
    let (owners, merger) = owners(app, options, books)?;
    let mut lanes = Vec::new();
    let mut workers: Vec<Box<dyn Node + 'a>> = Vec::new();
    for owner in owners {
        let (to, from) = lane::lane(options.ring, options.capacity, options.batch)?;
        lanes.push(to);
        workers.push(Box::new(worker::WorkerNode { owner, lane: from }));
    }
    let shards = options.shards.clone();
    let dispatcher = dispatcher::Dispatcher::new(app, feed, shards, lanes, &books.dispatched);
    let mut nodes: Vec<Box<dyn Node + 'a>> = vec![Box::new(dispatcher)];
    nodes.append(&mut workers);
    nodes.push(Box::new(merger));
    Ok(nodes)
}
