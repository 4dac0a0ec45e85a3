//! The pipeline: reader → worker 0 → … → worker n−1, and the messages back to the reader. ffProbe's
//! (Danelutto, Deri, De Sensi, *Network Monitoring on Multi cores with Algorithmic Skeletons*).
//!
//! ```text
//!        ┌────────────────── empty messages ──────────────────┐
//!        ▼                                                     │
//! feed ─▶ reader ─▶ worker 0 ─▶ worker 1 ─▶ … ─▶ worker n−1 ───┘
//!                      │           │                  │
//!                      └─ reports ─┴────── ⋯ ─────────┴──▶ merger ─▶ report
//!
//! message  │ part 0 │ part 1 │ … │ part n−1 │ mark │      a part: the items of one worker, in order
//! ```
//!
//! The reader sorts a burst into the parts of a message, by shard as in the farm. A message passes
//! through all workers: each takes out its own part, leaves an empty one, and passes the message on
//! *before* it works, so that no worker waits for the work of another. The mark follows all items
//! of its message. Messages are allocated once and circulate.
//!
//! With several queues there is such a pipeline for each. Worker i of one may share a seat with
//! worker i of the others (ffProbe's "2 PF_RING, 1 pipeline": several readers before one row of
//! threads) or not ("2 PF_RING, 2 pipelines"). Either way each owns its own shard.
//!
//! No deadlock, although the graph has a cycle. Every ring of the cycle has room for *all*
//! messages, and a node frees the slot of a message before it passes the message on. So a ring
//! always has a free slot for a message, and no node of the cycle waits for room. A worker waits
//! only for the merger, which never waits, and for a message; the reader only for a message. No
//! message gets stuck: the node that holds one passes it on in the same step.

mod message;
mod reader;
mod worker;

use ringtap_ring::ring;
use ringtap_stage::{Application, Burst, Feed};

use self::message::{Inbox, Message, Outlet};
use crate::counters::RunCounters;
use crate::owner::owners;
use crate::seats::Placed;
use crate::{BURST, Role, RunError, RunOptions};

/// Most parts of all messages together: bounds the memory with many workers.
const MOST_PARTS: usize = 1 << 14;

/// Number of messages, and items that each can hold: enough messages that every node can have one,
/// if the capacity allows. No messages if the capacity is 0.
fn split(capacity: usize, workers: usize) -> (usize, usize) {
    let items = (capacity / (workers + 2)).clamp(1, BURST);
    ((capacity / items).min((MOST_PARTS / workers).max(1)), items)
}

/// Makes the reader and workers of every queue in order, and the merger.
pub(crate) fn nodes<'a, A: Application>(
    app: &'a A,
    feeds: Vec<impl Feed<Item = A::Item> + Send + 'a>,
    options: &RunOptions,
    counters: &'a RunCounters<A::Report>,
) -> Result<Vec<Placed<'a>>, RunError> {
    let each = options.shards.workers_each();
    let (messages, items) = split(options.capacity, each);
    let (owners, merger) = owners(app, options, counters)?;
    let mut owners = owners.into_iter();
    let mut nodes: Vec<Placed<'a>> = Vec::new();
    for (queue, feed) in feeds.into_iter().enumerate() {
        let (outlet, mut inbox) = ring(options.ring, messages, 1)?;
        for (place, owner) in owners.by_ref().take(each).enumerate() {
            let (tx, rx) = ring(options.ring, messages, 1)?;
            let (inbox, outlet) = (Inbox(std::mem::replace(&mut inbox, rx)), Outlet(tx));
            let worker = worker::WorkerNode::new(owner, place, inbox, outlet, items);
            nodes.push((Role::Worker(queue * each + place), Box::new(worker)));
        }
        let reader = reader::Reader {
            app,
            feed,
            shards: options.shards.clone(),
            queue,
            burst: Burst::with_capacity(items),
            spare: (0..messages).map(|_| Message::new(each, items)).collect(),
            returned: Inbox(inbox),
            outlet: Outlet(outlet),
            dispatched: &counters.dispatched[queue],
        };
        nodes.push((Role::Dispatcher(queue), Box::new(reader)));
    }
    nodes.push((Role::Merger, Box::new(merger)));
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_the_capacity_and_every_node_can_have_one() {
        for workers in [1, 2, 3, 7, 60, 1024] {
            for capacity in [1, 2, 3, 64, 4096, 1 << 24] {
                let (messages, items) = split(capacity, workers);
                assert!(messages >= 1 && (1..=BURST).contains(&items));
                assert!(messages * items <= capacity && messages * workers <= MOST_PARTS);
                if capacity >= workers + 2 && workers <= 60 {
                    assert!(messages >= workers + 2, "{messages} for {workers}, {capacity}");
                }
            }
        }
    }
}
