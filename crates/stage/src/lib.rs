//! The contract between applications and the threads that run them.
//!
//! ```text
//! feed ──items, marks──▶ shard_key ──▶ Worker × n ──messages, partials──▶ Merger ──▶ report
//! ```
//!
//! An [`Application`] defines the computation: its [`Worker`]s each own one shard of the key space,
//! its [`Merger`] joins their results. A *skeleton* decides which threads run them. Both sides
//! depend only on this crate, so every application runs under every skeleton, and the
//! single-threaded reference run defines the right answer for all of them.
//!
//! Invariants: there are no threads, rings, packets or clocks here. Every worker sees a [`Mark`] at
//! the same place of the stream, in every arrangement.
#![forbid(unsafe_code)]

mod burst;

use std::fmt::Debug;

pub use burst::{Attachments, Burst, Cursor};

/// An in-band message to all workers, in stream order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Packet time had reached `time_ns` before the packets that follow. The places of marks depend
    /// on the stream alone, never on threads.
    Tick {
        /// Running number, from 0.
        number: u64,
        /// Packet time, nanoseconds since 1970. Lower than at the mark before only where time was
        /// set back.
        time_ns: u64,
    },
    /// The stream ends.
    End {
        /// Packet time at the end of the stream, nanoseconds since 1970.
        time_ns: u64,
    },
}

impl Mark {
    /// Packet time at the mark, nanoseconds since 1970.
    pub const fn time_ns(&self) -> u64 {
        match *self {
            Mark::Tick { time_ns, .. } | Mark::End { time_ns } => time_ns,
        }
    }
}

/// A worker's part of the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// 0 ≤ index < count.
    pub index: usize,
    /// Number of workers.
    pub count: usize,
}

impl Shard {
    /// The only shard of a single-threaded run.
    pub const WHOLE: Self = Self { index: 0, count: 1 };
}

/// The computation. A pure description: it holds configuration, no state of a run.
pub trait Application: Sync {
    /// The content of a ring slot: for packets, one cache line.
    type Item: Copy + Send + 'static;
    /// A state report that a worker sends to the merger during the run.
    type Message: Send + 'static;
    /// What a worker hands over at a mark.
    type Partial: Send + 'static;
    /// The result: canonical order, integers only.
    type Report: Debug + Send;
    /// Owner of one shard.
    type Worker: Worker<Item = Self::Item, Message = Self::Message, Partial = Self::Partial> + Send;
    /// Joins the workers' results.
    type Merger: Merger<Message = Self::Message, Partial = Self::Partial, Report = Self::Report>
        + Send;

    /// The shard key of an item. Pure, and well distributed over all 32 bits: items with equal keys
    /// go to one worker.
    fn shard_key(&self, item: &Self::Item) -> u32;

    /// Makes the worker of a shard, with all its memory.
    fn worker(&self, shard: Shard) -> Self::Worker;

    /// Makes the merger.
    fn merger(&self) -> Self::Merger;
}

/// Owns one shard. It never blocks, never fails, never logs.
pub trait Worker {
    /// The type of items, as in [`Application::Item`].
    type Item;
    /// The type of messages, as in [`Application::Message`].
    type Message;
    /// The type of partial results, as in [`Application::Partial`].
    type Partial;

    /// Handles items in stream order, with their attachments.
    fn on_burst(
        &mut self,
        burst: &[Self::Item],
        attachments: &Attachments,
        outbox: &mut impl Outbox<Self::Message>,
    );

    /// Continues with items that wait for another worker's earlier items. While an item waits, the
    /// worker receives no others. An item may wait only for items before it in the stream, so the
    /// earliest of all that wait can continue, and a lone worker never waits.
    fn resume(&mut self, _outbox: &mut impl Outbox<Self::Message>) -> Resumed {
        Resumed::Done
    }

    /// Handles a mark. The result reaches the merger after every message sent before it. `None`
    /// means that there is more to send than the outbox should hold at once: the skeleton empties
    /// the outbox and calls again with the same mark.
    fn on_mark(
        &mut self,
        mark: &Mark,
        outbox: &mut impl Outbox<Self::Message>,
    ) -> Option<Self::Partial>;
}

/// The result of [`Worker::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// No item waited.
    Done,
    /// At least one of the items was handled; call again.
    Moved,
    /// All of them still wait.
    Waiting,
}

/// A worker's messages to the merger. It never loses one and never blocks: messages without room
/// wait in the outbox, and the skeleton gives the worker no further items until the outbox is
/// empty.
pub trait Outbox<M> {
    /// Sends one message. Messages of one worker arrive in the order sent.
    fn send(&mut self, message: M);
}

/// Joins the workers' results.
pub trait Merger {
    /// The type of messages, as in [`Application::Message`].
    type Message;
    /// The type of partial results, as in [`Application::Partial`].
    type Partial;
    /// The type of the report, as in [`Application::Report`].
    type Report;

    /// Receives one message. Messages of different workers arrive interleaved in any order, so the
    /// final report must not depend on it.
    fn on_message(&mut self, message: Self::Message);

    /// Receives a worker's partial result at a mark.
    fn on_partial(&mut self, shard: Shard, mark: &Mark, partial: Self::Partial);

    /// Returns the report, after every worker's `End`.
    fn finish(self) -> Self::Report;
}

/// The result of [`Feed::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// At least one item was appended to the burst.
    Items,
    /// A mark for all workers; the burst is unchanged. After [`Mark::End`] the feed is not called
    /// again.
    Mark(Mark),
    /// Nothing for this feed, but other queues of the same source received items: call again.
    Moved,
    /// Nothing at the moment (an idle interface): call again.
    Idle,
}

/// Where items come from: a queue of a source of packets with its decoder, or a test's list.
pub trait Feed {
    /// The type of items.
    type Item;

    /// Appends up to `burst.capacity() - burst.len()` items and their attachments, or returns a
    /// mark. The order of items and marks depends on the input alone.
    fn next(&mut self, burst: &mut Burst<Self::Item>) -> Fed;

    /// Whether items arrive so slowly that an idle reader can sleep for a few tens of microseconds
    /// at no cost but that delay.
    fn is_slow(&self) -> bool {
        false
    }
}

impl<F: Feed + ?Sized> Feed for &mut F {
    type Item = F::Item;

    fn next(&mut self, burst: &mut Burst<F::Item>) -> Fed {
        (**self).next(burst)
    }

    fn is_slow(&self) -> bool {
        (**self).is_slow()
    }
}
