//! Sync: a master hands a batch to the workers and waits for all of them before it reads the next. The SYNC design of
//! X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links Using Multicore Processors".
//!
//! ```text
//!                  ┌─ part 0 ─▶ worker 0 ─ done ─┐
//! feed ─▶ master ──┼─ part 1 ─▶ worker 1 ─ done ─┼─▶ master: all are done, the next batch
//!                  └─ part 2 ─▶ worker 2 ─ done ─┘
//! ```
//!
//! A part is a buffer with the items of one worker, by shard as in the farm. It returns when they
//! are handled, which signals completion. Workers without items are not waited for. Reports travel
//! as in the farm. A mark is sent when all parts have returned, so it has its exact place.
//!
//! It exists for comparison: each batch takes as long as its slowest worker, and meanwhile the
//! master reads nothing.
//!
//! No deadlock: a worker with a part waits for the merger alone, which never waits, so all parts
//! return. A return ring has room for the only part.

use ringtap_base::Counter;
use ringtap_ring::{Consumer, Producer, ring};
use ringtap_stage::{Application, Burst, Fed, Feed, Mark};

use crate::counters::RunCounters;
use crate::node::{Node, Step};
use crate::owner::{Owner, owners};
use crate::seats::Placed;
use crate::{BURST, Role, RunError, RunOptions, ShardMap};

/// A message to a worker. Marks may wait for it, a part never waits behind another.
enum Work<I> {
    Part(Burst<I>),
    Mark(Mark),
}

/// Slots of a ring to a worker.
const WORK: usize = 4;

struct Master<'a, A: Application, F> {
    app: &'a A,
    feed: F,
    shards: ShardMap,
    queue: usize,
    /// Read from the feed and not yet sorted; empty between steps.
    burst: Burst<A::Item>,
    slaves: Vec<Slave<A::Item>>,
    /// The first worker that may lack its part.
    next: usize,
    /// Parts in use by workers.
    away: usize,
    /// A mark being distributed, and the first worker that lacks it.
    mark: Option<(Mark, usize)>,
    dispatched: &'a Counter,
}

/// The master's view of a worker.
struct Slave<I: Send> {
    to: Producer<Work<I>>,
    back: Consumer<Burst<I>>,
    /// Its part, while it is not in use.
    part: Option<Burst<I>>,
}

impl<I: Send> Slave<I> {
    fn send(&mut self, work: Work<I>) -> Result<(), Work<I>> {
        self.to.push(work)?;
        self.to.flush();
        Ok(())
    }
}

impl<A: Application, F: Feed<Item = A::Item>> Master<'_, A, F> {
    /// Sorts the batch into the parts, none of which is in use.
    fn sort(&mut self) {
        self.dispatched.add(self.burst.len() as u64);
        let first = self.queue * self.slaves.len();
        let (app, shards, queue) = (self.app, &self.shards, self.queue);
        let owner = |item: &A::Item| shards.owner_in(queue, app.shard_key(item)) - first;
        self.burst.share_out(&mut self.slaves, owner, |slave| slave.part.get_or_insert_default());
        self.burst.clear();
        self.next = 0;
    }

    /// Sends parts as far as there is room; true if one was sent.
    fn send(&mut self) -> bool {
        let before = self.away;
        for slave in &mut self.slaves[self.next..] {
            if let Some(part) = slave.part.take_if(|part| !part.is_empty()) {
                if let Err(Work::Part(part)) = slave.send(Work::Part(part)) {
                    slave.part = Some(part);
                    break;
                }
                self.away += 1;
            }
            self.next += 1;
        }
        self.away > before
    }

    /// Takes back finished parts; true if there was one.
    fn gather(&mut self) -> bool {
        let before = self.away;
        for slave in &mut self.slaves {
            if let Some(part) = slave.back.pop() {
                slave.back.flush();
                slave.part = Some(part);
                self.away -= 1;
            }
        }
        self.away < before
    }

    /// Sends the mark to every worker that has room; true if one got it.
    fn spread(&mut self, mark: Mark, from: usize) -> bool {
        let mut to = from;
        while to < self.slaves.len() && self.slaves[to].send(Work::Mark(mark)).is_ok() {
            to += 1;
        }
        self.mark = (to < self.slaves.len()).then_some((mark, to));
        to > from
    }
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for Master<'_, A, F> {
    fn step(&mut self) -> Step {
        let worked = |moved| if moved { Step::Worked } else { Step::Idle };
        if self.away > 0 || self.next < self.slaves.len() {
            let moved = self.gather();
            return worked(self.send() | moved);
        }
        if self.mark.is_none() {
            match self.feed.next(&mut self.burst) {
                Fed::Items => {
                    self.sort();
                    self.send();
                    return Step::Worked;
                }
                Fed::Moved => return Step::Worked,
                Fed::Idle => return Step::Idle,
                Fed::Mark(mark) => self.mark = Some((mark, 0)),
            }
        }
        let Some((mark, from)) = self.mark else { return Step::Idle };
        let moved = self.spread(mark, from);
        match (self.mark, mark) {
            (None, Mark::End { .. }) => Step::Done,
            _ => worked(moved),
        }
    }

    fn name(&self) -> String {
        format!("master {}", self.queue)
    }

    fn is_slow(&self) -> bool {
        self.feed.is_slow()
    }
}

struct WorkerNode<'a, A: Application> {
    owner: Owner<'a, A>,
    inbox: Consumer<Work<A::Item>>,
    back: Producer<Burst<A::Item>>,
    /// Its part, after its items were taken.
    done: Option<Burst<A::Item>>,
}

impl<A: Application> Node for WorkerNode<'_, A> {
    fn step(&mut self) -> Step {
        // Items may wait for another worker: then they are not handled yet.
        if let Some(step) = self.owner.busy() {
            return step;
        }
        if let Some(part) = self.done.take() {
            assert!(self.back.push(part).is_ok(), "a ring with room for the only part was full");
            self.back.flush();
            return Step::Worked;
        }
        let Some(work) = self.inbox.pop() else { return Step::Idle };
        self.inbox.flush();
        match work {
            Work::Part(mut part) => {
                self.owner.items(&part, part.attachments());
                part.clear();
                self.done = Some(part);
            }
            Work::Mark(mark) => self.owner.mark(mark),
        }
        Step::Worked
    }

    fn name(&self) -> String {
        self.owner.name()
    }

    fn polls(&self) -> bool {
        false
    }
}

/// Makes the master and workers of every queue, and the merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let each = options.shards.workers_each();
    let batch = options.capacity.min(BURST);
    let (owners, merger) = owners(app, options, counters)?;
    let mut owners = owners.into_iter();
    let mut nodes: Vec<Placed<'a>> = Vec::new();
    for (queue, feed) in feeds.into_iter().enumerate() {
        let mut slaves = Vec::new();
        for (place, owner) in owners.by_ref().take(each).enumerate() {
            let (to, inbox) = ring(options.ring, options.capacity.min(WORK), 1)?;
            let (done, back) = ring(options.ring, options.capacity.min(1), 1)?;
            slaves.push(Slave { to, back, part: Some(Burst::with_capacity(batch)) });
            let worker = WorkerNode { owner, inbox, back: done, done: None };
            nodes.push((Role::Worker(queue * each + place), Box::new(worker)));
        }
        let master = Master {
            app,
            feed,
            shards: options.shards.clone(),
            queue,
            burst: Burst::with_capacity(batch),
            next: slaves.len(),
            slaves,
            away: 0,
            mark: None,
            dispatched: &counters.dispatched[queue],
        };
        nodes.push((Role::Dispatcher(queue), Box::new(master)));
    }
    nodes.push((Role::Merger, Box::new(merger)));
    Ok(nodes)
}
