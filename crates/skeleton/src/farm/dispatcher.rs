//! The dispatcher: reads the feed of its queue and hands each item to the owner of its key.

use ringtap_base::Counter;
use ringtap_stage::{Application, Burst, Fed, Feed, Mark};

use super::lane::LaneTx;
use crate::counters::RunCounters;
use crate::node::{Node, Step};
use crate::{BURST, MARKS_AHEAD, ShardMap};

pub(super) struct Dispatcher<'a, A: Application, F> {
    app: &'a A,
    feed: F,
    shards: ShardMap,
    queue: usize,
    /// The lanes to the workers of this queue.
    lanes: Vec<LaneTx<A::Item>>,
    /// Items of the feed; those before `at` are on their lanes.
    burst: Burst<A::Item>,
    at: usize,
    /// A mark being distributed, and the first lane that lacks it.
    mark: Option<(Mark, usize)>,
    /// Marks that all lanes have, and those that each worker has finished.
    marks: u64,
    finished: &'a [Counter],
    dispatched: &'a Counter,
}

impl<'a, A: Application, F: Feed<Item = A::Item>> Dispatcher<'a, A, F> {
    pub(super) fn new(
        app: &'a A,
        feed: F,
        shards: ShardMap,
        queue: usize,
        lanes: Vec<LaneTx<A::Item>>,
        counters: &'a RunCounters<A::Report>,
    ) -> Self {
        let burst = Burst::with_capacity(BURST);
        let finished = &counters.marks[queue * lanes.len()..][..lanes.len()];
        let dispatched = &counters.dispatched[queue];
        let (at, mark, marks) = (0, None, 0);
        Self { app, feed, shards, queue, lanes, burst, at, mark, marks, finished, dispatched }
    }

    /// Whether the slowest worker is too many marks behind to give another mark to any.
    fn is_ahead(&self) -> bool {
        let slowest = self.finished.iter().map(Counter::get).min();
        self.lanes.len() > 1 && slowest.is_some_and(|slowest| self.marks >= slowest + MARKS_AHEAD)
    }

    /// Hands over as much of the burst as has room, and publishes it to the workers, because the
    /// next call of the feed may wait for its source.
    fn hand_over(&mut self) -> usize {
        let done = if self.burst.attachments().is_empty() {
            self.push()
        } else {
            self.push_with_attachments()
        };
        self.flush();
        self.at += done;
        self.dispatched.add(done as u64);
        done
    }

    /// Pushes items without attachments; returns their number.
    fn push(&mut self) -> usize {
        let rest = &self.burst[self.at..];
        if let [only] = self.lanes.as_mut_slice() {
            return only.push_burst(rest);
        }
        let (app, shards, lanes) = (self.app, &self.shards, &mut self.lanes);
        let (queue, first) = (self.queue, self.queue * lanes.len());
        let push = |item: &&A::Item| {
            lanes[shards.owner_in(queue, app.shard_key(item)) - first].push(**item)
        };
        rest.iter().take_while(push).count()
    }

    /// Pushes items of which some have attachments; returns their number.
    fn push_with_attachments(&mut self) -> usize {
        let (app, shards, lanes) = (self.app, &self.shards, &mut self.lanes);
        let (queue, first) = (self.queue, self.queue * lanes.len());
        let mut cursor = self.burst.attachments().cursor();
        cursor.skip_to(self.at);
        let push = |&(at, item): &(usize, &A::Item)| {
            let lane = &mut lanes[shards.owner_in(queue, app.shard_key(item)) - first];
            lane.push_with(*item, at, &mut cursor)
        };
        self.burst.iter().enumerate().skip(self.at).take_while(push).count()
    }

    /// Pushes the mark into every lane that has room; true when all have it.
    fn spread(&mut self, mark: Mark, from: usize) -> bool {
        for lane in from..self.lanes.len() {
            if !self.lanes[lane].mark(mark) {
                self.mark = Some((mark, lane));
                return false;
            }
        }
        self.mark = None;
        self.marks += 1;
        true
    }

    fn flush(&mut self) {
        self.lanes.iter_mut().for_each(LaneTx::flush);
    }
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for Dispatcher<'_, A, F> {
    fn step(&mut self) -> Step {
        if self.at < self.burst.len() {
            // The rest of an earlier burst comes first.
            let done = self.hand_over();
            if self.at < self.burst.len() {
                return if done > 0 { Step::Worked } else { Step::Idle };
            }
        }
        if self.mark.is_none() {
            self.burst.clear();
            self.at = 0;
            match self.feed.next(&mut self.burst) {
                Fed::Items => {
                    self.hand_over();
                    return Step::Worked;
                }
                Fed::Moved => return Step::Worked,
                Fed::Idle => return Step::Idle,
                Fed::Mark(mark) => self.mark = Some((mark, 0)),
            }
        }
        let Some((mark, from)) = self.mark else { return Step::Idle };
        if from == 0 && self.is_ahead() {
            self.flush();
            return Step::Idle;
        }
        if !self.spread(mark, from) {
            let further = self.mark.is_some_and(|(_, lane)| lane > from);
            return if further { Step::Worked } else { Step::Idle };
        }
        match mark {
            Mark::End { .. } => Step::Done,
            Mark::Tick { .. } => Step::Worked,
        }
    }

    fn name(&self) -> String {
        format!("dispatcher {}", self.queue)
    }

    fn is_slow(&self) -> bool {
        self.feed.is_slow()
    }
}
