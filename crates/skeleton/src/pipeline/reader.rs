//! The reader: fills messages from the feed of its queue. The paper's RDR.

use ringtap_base::Counter;
use ringtap_stage::{Application, Burst, Fed, Feed, Mark};

use super::message::{Inbox, Message, Outlet};
use crate::ShardMap;
use crate::node::{Node, Step};

pub(super) struct Reader<'a, A: Application, F> {
    pub(super) app: &'a A,
    pub(super) feed: F,
    pub(super) shards: ShardMap,
    pub(super) queue: usize,
    /// Read from the feed and not yet sorted; empty between steps.
    pub(super) burst: Burst<A::Item>,
    /// Free messages.
    pub(super) spare: Vec<Message<A::Item>>,
    pub(super) returned: Inbox<A::Item>,
    pub(super) outlet: Outlet<A::Item>,
    pub(super) dispatched: &'a Counter,
}

impl<A: Application, F: Feed<Item = A::Item>> Reader<'_, A, F> {
    /// Fills a message with the next items of the feed.
    fn read(&mut self, message: &mut Message<A::Item>) -> Fed {
        if let [only] = &mut *message.parts {
            let fed = self.feed.next(only);
            self.dispatched.add(only.len() as u64);
            return fed;
        }
        let fed = self.feed.next(&mut self.burst);
        let first = self.queue * message.parts.len();
        let (app, shards, queue) = (self.app, &self.shards, self.queue);
        let owner = |item: &A::Item| shards.owner_in(queue, app.shard_key(item)) - first;
        self.burst.share_out(&mut message.parts, owner, |part| part);
        self.dispatched.add(self.burst.len() as u64);
        self.burst.clear();
        fed
    }
}

impl<A: Application, F: Feed<Item = A::Item> + Send> Node for Reader<'_, A, F> {
    fn step(&mut self) -> Step {
        let Some(mut message) = self.spare.pop().or_else(|| self.returned.take()) else {
            return Step::Idle;
        };
        match self.read(&mut message) {
            Fed::Items => message.mark = None,
            Fed::Mark(mark) => message.mark = Some(mark),
            fed @ (Fed::Moved | Fed::Idle) => {
                self.spare.push(message);
                return if fed == Fed::Idle { Step::Idle } else { Step::Worked };
            }
        }
        let ended = matches!(message.mark, Some(Mark::End { .. }));
        self.outlet.pass_on(message);
        if ended { Step::Done } else { Step::Worked }
    }

    fn name(&self) -> String {
        format!("reader {}", self.queue)
    }

    fn is_slow(&self) -> bool {
        self.feed.is_slow()
    }
}
