//! A toy application that detects every fault of a skeleton: a lost, doubled or reordered item, a
//! mark at the wrong place, a message after its partial.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringtap_ring::Kind;
use ringtap_skeleton::{RunOptions, Seating, ShardMap, Skeleton};
use ringtap_stage::*;

/// Key and running number.
pub(crate) type Item = (u32, u64);

#[derive(Default)]
pub(crate) struct Toy {
    /// Worker and item number at which it panics.
    pub(crate) panic_at: Option<u64>,
    /// Worker 0 drops this item.
    pub(crate) lose: Option<u64>,
    /// Messages that a worker sends at a mark, a few per call.
    pub(crate) chatter: u64,
    /// Items handled so far by all workers.
    pub(crate) handled: Arc<AtomicU64>,
}

/// For each key a chain over all its items and marks in order, and sums of all messages.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Report {
    pub(crate) chains: BTreeMap<u32, u64>,
    pub(crate) messages: u64,
    pub(crate) message_sum: u64,
    pub(crate) attached: u64,
    pub(crate) ticks: BTreeMap<u64, u64>,
}

pub(crate) struct ToyWorker {
    index: usize,
    chains: BTreeMap<u32, u64>,
    items: u64,
    attached: u64,
    since_mark: u64,
    said: u64,
    panic_at: Option<u64>,
    lose: Option<u64>,
    chatter: u64,
    handled: Arc<AtomicU64>,
}

pub(crate) struct Partial {
    chains: Option<BTreeMap<u32, u64>>,
    items: u64,
    attached: u64,
    /// Messages sent so far by this worker.
    said: u64,
}

#[derive(Default)]
pub(crate) struct ToyMerger {
    report: Report,
    received: BTreeMap<usize, u64>,
}

/// Distributed over 32 bits.
fn key(item: &Item) -> u32 {
    item.0.wrapping_mul(0x9e37_79b9)
}

fn chain(state: u64, value: u64) -> u64 {
    (state ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl Application for Toy {
    type Item = Item;
    type Message = (usize, u64);
    type Partial = Partial;
    type Report = Report;
    type Worker = ToyWorker;
    type Merger = ToyMerger;

    fn shard_key(&self, item: &Item) -> u32 {
        key(item)
    }
    fn worker(&self, shard: Shard) -> Self::Worker {
        ToyWorker {
            index: shard.index,
            chains: BTreeMap::new(),
            items: 0,
            attached: 0,
            since_mark: 0,
            said: 0,
            panic_at: self.panic_at,
            lose: self.lose,
            chatter: self.chatter,
            handled: Arc::clone(&self.handled),
        }
    }
    fn merger(&self) -> ToyMerger {
        ToyMerger::default()
    }
}

impl Worker for ToyWorker {
    type Item = Item;
    type Message = (usize, u64);
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[Item],
        attachments: &Attachments,
        outbox: &mut impl Outbox<(usize, u64)>,
    ) {
        let own = self;
        own.handled.fetch_add(burst.len() as u64, Relaxed);
        let mut attached = attachments.cursor();
        for (at, &(key, number)) in burst.iter().enumerate() {
            assert!(own.panic_at != Some(number), "panic requested at {number}");
            if own.lose == Some(number) {
                continue;
            }
            own.items += 1;
            own.since_mark += 1;
            let state = own.chains.entry(key).or_default();
            *state = chain(*state, number);
            while let Some((kind, bytes)) = attached.take(at) {
                own.attached += 1;
                *state = chain(*state, u64::from(kind) << 32 | bytes.len() as u64);
                bytes.iter().for_each(|&byte| *state = chain(*state, u64::from(byte)));
            }
            if number % 3 == 0 {
                own.said += 1;
                outbox.send((own.index, number));
            }
        }
    }

    fn on_mark(&mut self, mark: &Mark, outbox: &mut impl Outbox<(usize, u64)>) -> Option<Partial> {
        let own = self;
        // A few at a time, as the contract allows.
        if own.chatter > 0 {
            own.chatter -= 1;
            own.said += 1;
            outbox.send((own.index, 0));
            return None;
        }
        for state in own.chains.values_mut() {
            *state = chain(*state, mark.time_ns());
        }
        let items = std::mem::take(&mut own.since_mark);
        let chains = matches!(mark, Mark::End { .. }).then(|| std::mem::take(&mut own.chains));
        let attached = std::mem::take(&mut own.attached);
        Some(Partial { chains, items, attached, said: own.said })
    }
}

impl Merger for ToyMerger {
    type Message = (usize, u64);
    type Partial = Partial;
    type Report = Report;

    fn on_message(&mut self, (worker, value): (usize, u64)) {
        *self.received.entry(worker).or_default() += 1;
        // Messages with value 0 depend on the number of workers; they are counted only per worker.
        if value > 0 {
            self.report.messages += 1;
            self.report.message_sum += value;
        }
    }
    fn on_partial(&mut self, shard: Shard, mark: &Mark, partial: Partial) {
        let received = self.received.get(&shard.index).copied().unwrap_or(0);
        assert_eq!(received, partial.said, "a partial overtook a message");
        *self.report.ticks.entry(mark.time_ns()).or_default() += partial.items;
        self.report.attached += partial.attached;
        for (key, state) in partial.chains.into_iter().flatten() {
            assert!(self.report.chains.insert(key, state).is_none(), "key {key} in two workers");
        }
    }
    fn finish(self) -> Report {
        self.report
    }
}

/// Attaches to every fifth item one to three values of up to some 640 bytes.
fn attach(number: u64, burst: &mut Burst<Item>) {
    if !number.is_multiple_of(5) {
        return;
    }
    let at = burst.len() - 1;
    let (_, attachments) = burst.parts_mut();
    for value in 0..=number % 3 {
        let bytes = vec![number as u8; (number * (value + 1) % 641) as usize];
        assert!(attachments.push(at, value as u8, &bytes));
    }
}

/// `items` items over `keys` keys, a tick every `every` items.
pub(crate) struct List {
    next: u64,
    items: u64,
    keys: u32,
    every: u64,
    marked: u64,
    chunk: usize,
    /// The queue whose items it has, and the map of queues.
    queue: (usize, ShardMap),
}

impl List {
    pub(crate) fn new(items: u64, keys: u32, every: u64, chunk: usize) -> Self {
        let queue = (0, ShardMap::even(1));
        Self { next: 1, items, keys, every, marked: 0, chunk, queue }
    }

    /// The same list, sorted by queues.
    pub(crate) fn queues(self, options: &RunOptions) -> Vec<Self> {
        let of = |queue| Self { queue: (queue, options.shards.clone()), ..self };
        (0..options.shards.queues()).map(of).collect()
    }
}

impl Feed for List {
    type Item = Item;
    fn next(&mut self, burst: &mut Burst<Item>) -> Fed {
        if self.next > self.items {
            return Fed::Mark(Mark::End { time_ns: self.items * 1000 });
        }
        let due = self.next / self.every;
        if due > self.marked {
            self.marked = due;
            return Fed::Mark(Mark::Tick { number: due, time_ns: due });
        }
        let room = (burst.capacity() - burst.len()).min(self.chunk);
        for _ in 0..room {
            if self.next > self.items || self.next / self.every > self.marked {
                break;
            }
            let item = ((self.next.wrapping_mul(7919) % u64::from(self.keys)) as u32, self.next);
            let (queue, shards) = &self.queue;
            if shards.queue(key(&item)) == *queue {
                burst.push(item);
                attach(item.1, burst);
            }
            self.next += 1;
        }
        if burst.is_empty() { Fed::Moved } else { Fed::Items }
    }
}

pub(crate) fn options(workers: usize, ring: Kind, capacity: usize, batch: usize) -> RunOptions {
    RunOptions {
        shards: ShardMap::even(workers),
        ring,
        capacity,
        batch,
        report_capacity: capacity,
        seating: Seating::apart(workers, ringtap_skeleton::free_cores()),
    }
}

/// Options with several queues and `workers` workers each, as far as `skeleton` allows.
pub(crate) fn queued(
    skeleton: Skeleton,
    queues: usize,
    each: usize,
    ring: Kind,
    capacity: usize,
    batch: usize,
) -> RunOptions {
    let queues = if skeleton == Skeleton::Reference { 1 } else { queues };
    let each = if skeleton == Skeleton::MultiQueue { 1 } else { each };
    let cores = ringtap_skeleton::free_cores();
    RunOptions {
        shards: ShardMap::queued(queues, &vec![1; queues * each]),
        seating: match skeleton {
            Skeleton::MultiQueue => Seating::queues(queues, cores),
            Skeleton::SharedPipeline => Seating::shared(queues, each, cores),
            _ => Seating::side_by_side(queues, each, cores),
        },
        ..options(1, ring, capacity, batch)
    }
}

/// All combinations.
pub(crate) fn every_skeleton_and_ring() -> impl Iterator<Item = (Skeleton, Kind)> {
    Skeleton::ALL.into_iter().flat_map(|skeleton| Kind::ALL.map(|ring| (skeleton, ring)))
}
