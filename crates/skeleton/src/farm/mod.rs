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
mod merger;
mod shards;
mod worker;

use std::sync::Mutex;

use ringtap_metrics::Counter;
use ringtap_ring::{Kind, ring};
use ringtap_stage::{Application, Feed, Shard};

pub use shards::ShardMap;

use crate::node::Node;
use crate::seats::{self, Role, Seating};
use crate::{Run, RunError, Wait};

/// More workers than any machine has cores for.
const MOST_WORKERS: usize = 1024;

/// How a farm is built.
#[derive(Clone, Debug)]
pub struct FarmOptions {
    /// Which worker owns which keys; its number of workers is the farm's.
    pub shards: ShardMap,
    /// The flavour of all rings.
    pub ring: Kind,
    /// Items a lane holds.
    pub capacity: usize,
    /// Items after which a lane's index is published; only some flavours use it.
    pub batch: usize,
    /// State reports a worker's ring to the merger holds.
    pub report_capacity: usize,
    /// Who sits where.
    pub seating: Seating,
}

/// Runs `app` over everything `feed` has.
pub fn run<A: Application>(
    app: &A,
    feed: impl Feed<Item = A::Item> + Send,
    options: &FarmOptions,
) -> Result<Run<A::Report>, RunError> {
    let books = Books::new(options);
    let mut nodes: Vec<_> = nodes(app, feed, options, &books)?.into_iter().map(Some).collect();
    let seats = options
        .seating
        .seats
        .iter()
        .map(|roles| roles.iter().filter_map(|&role| nodes[index(role, options)].take()).collect())
        .collect();
    seats::run(seats, &options.seating.pin, Wait::Park)?;
    drop(nodes);
    books.close()
}

/// Where the nodes leave their results.
pub(crate) struct Books<R> {
    dispatched: Counter,
    handled: Vec<Counter>,
    report: Mutex<Option<R>>,
}

impl<R> Books<R> {
    pub(crate) fn new(options: &FarmOptions) -> Self {
        Self {
            dispatched: Counter::new(),
            handled: (0..options.shards.workers()).map(|_| Counter::new()).collect(),
            report: Mutex::new(None),
        }
    }

    pub(crate) fn close(self) -> Result<Run<R>, RunError> {
        let report = self.report.into_inner().unwrap_or_else(|poison| poison.into_inner());
        Ok(Run {
            report: report.ok_or_else(|| RunError::Panicked {
                node: "merger".into(),
                message: "ended without a report".into(),
            })?,
            dispatched: self.dispatched.get(),
            handled: self.handled.iter().map(Counter::get).collect(),
        })
    }
}

fn index(role: Role, options: &FarmOptions) -> usize {
    match role {
        Role::Dispatcher => 0,
        Role::Worker(worker) => 1 + worker,
        Role::Merger => 1 + options.shards.workers(),
    }
}

/// Dispatcher, workers in order, merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feed: impl Feed<Item = A::Item> + Send + 'a,
    options: &FarmOptions,
    books: &'a Books<A::Report>,
) -> Result<Vec<Box<dyn Node + 'a>>, RunError> {
    let count = options.shards.workers();
    if count == 0 || count > MOST_WORKERS {
        return Err(RunError::Workers { workers: count, most: MOST_WORKERS });
    }
    let refused = |error: ringtap_ring::InvalidCapacity| RunError::Ring(error.to_string());
    let mut lanes = Vec::new();
    let mut reports = Vec::new();
    let mut nodes: Vec<Box<dyn Node + 'a>> = Vec::new();
    for index in 0..count {
        let (to, from) =
            lane::lane(options.ring, options.capacity, options.batch).map_err(refused)?;
        let (tell, hear) = ring(options.ring, options.report_capacity, 1).map_err(refused)?;
        lanes.push(to);
        reports.push(hear);
        let shard = Shard { index, count };
        let handled = &books.handled[index];
        nodes.push(Box::new(worker::WorkerNode::<A>::new(app, shard, from, tell, handled)));
    }
    let dispatcher =
        dispatcher::Dispatcher::new(app, feed, options.shards.clone(), lanes, &books.dispatched);
    nodes.insert(0, Box::new(dispatcher));
    nodes.push(Box::new(merger::MergerNode::<A>::new(app, reports, &books.report)));
    Ok(nodes)
}
