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
//! With several queues each has a dispatcher and workers of its own; the merger hears all.
//!
//! No deadlock: the merger takes from every ring and never waits for anyone, so each worker's
//! reports find room in the end, so each worker goes on taking items, so the dispatcher finds
//! room. The graph has no cycle; `tests/simulation.rs` searches for a counter-example.

mod dispatcher;
mod lane;
mod worker;

use ringtap_stage::{Application, Feed};

use crate::books::Books;
use crate::owner::owners;
use crate::seats::Placed;
use crate::{Role, RunError, RunOptions};

/// Of every queue: dispatcher and workers. And the merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    books: &'a Books<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let each = options.shards.workers_each();
    let (owners, merger) = owners(app, options, books)?;
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
        let (shards, dispatched) = (options.shards.clone(), &books.dispatched[queue]);
        let dispatcher = dispatcher::Dispatcher::new(app, feed, shards, queue, lanes, dispatched);
        nodes.push((Role::Dispatcher(queue), Box::new(dispatcher)));
    }
    nodes.push((Role::Merger, Box::new(merger)));
    Ok(nodes)
}
