//! The contract between what is computed and how threads run it.
//!
//! ```text
//! feed ──items, marks──▶ shard_key ──▶ Worker × n ──messages, partials──▶ Merger ──▶ report
//! ```
//!
//! An [`Application`] says what is computed: its [`Worker`]s each own one shard of the key space,
//! its [`Merger`] joins what they found. A *skeleton* decides which threads run them. Both sides
//! see only this crate, so every application runs under every skeleton, and the single-threaded
//! reference run defines the right answer for all of them.
//!
//! Invariants: there are no threads, rings, packets or clocks here. A [`Mark`] is seen by every
//! worker at the same place of the stream, whatever the arrangement.
#![forbid(unsafe_code)]

mod burst;

use std::fmt::Debug;

pub use burst::{Attachments, Burst, Cursor};

/// An in-band message to all workers, in stream order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// All packets that follow were read when packet time had reached `time_ns`. Marks come at
    /// places of the stream that depend on the stream alone, never on threads.
    Tick {
        /// Running number, from 0.
        number: u64,
        /// Packet time now, nanoseconds since 1970. Less than at the mark before only where time was
        /// set back.
        time_ns: u64,
    },
    /// Nothing follows.
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

/// Which part of the key space a worker owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// 0 ≤ index < count.
    pub index: usize,
    /// How many workers there are.
    pub count: usize,
}

impl Shard {
    /// The only shard of a single-threaded run.
    pub const WHOLE: Self = Self { index: 0, count: 1 };
}

/// What is computed. Pure description: it holds configuration, no state of a run.
pub trait Application: Sync {
    /// What a ring slot carries: for packets, one cache line.
    type Item: Copy + Send + 'static;
    /// A state report that a worker sends to the merger during the run.
    type Message: Send + 'static;
    /// What a worker hands over at a mark.
    type Partial: Send + 'static;
    /// The answer: canonical order, integers only.
    type Report: Debug + Send;
    /// Owner of one shard.
    type Worker: Worker<Item = Self::Item, Message = Self::Message, Partial = Self::Partial> + Send;
    /// The one who joins.
    type Merger: Merger<Message = Self::Message, Partial = Self::Partial, Report = Self::Report>
        + Send;

    /// Where an item belongs. Pure, and well spread over all 32 bits: items with equal keys meet
    /// in one worker.
    fn shard_key(&self, item: &Self::Item) -> u32;

    /// Makes the worker of a shard, with all the memory it will need.
    fn worker(&self, shard: Shard) -> Self::Worker;

    /// Makes the merger.
    fn merger(&self) -> Self::Merger;
}

/// Owns one shard. It never blocks, never fails, never logs.
pub trait Worker {
    /// See [`Application::Item`].
    type Item;
    /// See [`Application::Message`].
    type Message;
    /// See [`Application::Partial`].
    type Partial;

    /// Takes items in stream order, and what is attached to them.
    fn on_burst(
        &mut self,
        burst: &[Self::Item],
        attachments: &Attachments,
        outbox: &mut impl Outbox<Self::Message>,
    );

    /// Goes on with items that wait for what another worker does with earlier ones. While something
    /// waits, the worker is given nothing. An item may wait only for items before it in the stream, so
    /// the earliest of all that wait can go on, and a lone worker never waits.
    fn resume(&mut self, _outbox: &mut impl Outbox<Self::Message>) -> Resumed {
        Resumed::Done
    }

    /// Takes a mark. What it returns reaches the merger after every message sent before it.
    /// `None` says that there is more to send than the outbox should hold at once: the skeleton
    /// empties the outbox and calls again with the same mark.
    fn on_mark(
        &mut self,
        mark: &Mark,
        outbox: &mut impl Outbox<Self::Message>,
    ) -> Option<Self::Partial>;
}

/// What a worker did about items that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Nothing waited.
    Done,
    /// It handled at least one of them; ask again.
    Moved,
    /// They still wait, all of them.
    Waiting,
}

/// Where a worker leaves its messages to the merger. It never loses one and never blocks: what
/// finds no room waits in the outbox, and the skeleton gives the worker no further items until
/// the outbox is empty.
pub trait Outbox<M> {
    /// Sends one message. Messages of one worker arrive in the order sent.
    fn send(&mut self, message: M);
}

/// Joins what the workers found.
pub trait Merger {
    /// See [`Application::Message`].
    type Message;
    /// See [`Application::Partial`].
    type Partial;
    /// See [`Application::Report`].
    type Report;

    /// Takes one message. Messages of different workers arrive interleaved in any order, so the
    /// final report must not depend on it.
    fn on_message(&mut self, message: Self::Message);

    /// Takes what a worker handed over at a mark.
    fn on_partial(&mut self, shard: Shard, mark: &Mark, partial: Self::Partial);

    /// The answer, after every worker's `End`.
    fn finish(self) -> Self::Report;
}

/// What a feed has to offer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// At least one item was appended to the burst.
    Items,
    /// A mark for all workers; the burst is untouched. After [`Mark::End`] the feed is not asked
    /// again.
    Mark(Mark),
    /// Nothing for this feed, but its neighbours (other queues of the same source) got something: ask
    /// again.
    Moved,
    /// Nothing at the moment (a quiet interface); ask again.
    Idle,
}

/// Where items come from: a queue of a source of packets with its decoder, or a test's list.
pub trait Feed {
    /// What it delivers.
    type Item;

    /// Appends up to `burst.capacity() - burst.len()` items and what is attached to them, or delivers a mark. Items and
    /// marks come in an order that depends on the input alone.
    fn next(&mut self, burst: &mut Burst<Self::Item>) -> Fed;
}

impl<F: Feed + ?Sized> Feed for &mut F {
    type Item = F::Item;

    fn next(&mut self, burst: &mut Burst<F::Item>) -> Fed {
        (**self).next(burst)
    }
}
