//! A script of operations on one ring, checked step by step against an oracle.
//!
//! ```text
//! byte 0: kind │ 1: item type │ 2: capacity │ 3: batch │ then (operation, argument) pairs
//! ```
//!
//! Every byte string is a script, so property tests and fuzz targets can generate them. One thread
//! runs both ends, so the oracle is exact: it knows which items are visible and which slots are
//! free at every step. Kinds other than MCRingBuffer behave as with a batch of 1, except vernier:
//! it may show single pushes at once or only after 64 polls, and may hold back a part of the
//! emptied slots; there the oracle has lower and upper bounds.

use crate::{Consumer, Kind, Producer, ring};
use std::{
    collections::VecDeque,
    fmt::Debug,
    sync::{Arc, Mutex},
};

/// Runs the script in `bytes`; missing bytes are zero.
///
/// # Panics
/// If the ring and the oracle disagree.
pub fn run_script(bytes: &[u8]) {
    let mut script = Script(bytes.iter());
    let kind = Kind::ALL[script.next() % Kind::ALL.len()];
    match script.next() % 4 {
        0 => run::<u64>(kind, script),
        1 => run::<Line>(kind, script),
        2 => run::<String>(kind, script),
        _ => run::<Counted>(kind, script),
    }
}

struct Script<'a>(std::slice::Iter<'a, u8>);

impl Script<'_> {
    fn next(&mut self) -> usize {
        self.0.next().copied().map_or(0, usize::from)
    }
}

/// An item that carries a number.
trait Item: Send + Debug {
    /// The ledger counts the live items.
    const COUNTED: bool = false;

    fn new(number: u64, ledger: &Ledger) -> Self;
    fn number(&self) -> u64;

    /// Pushes items from `first` on; rings take bursts of `Copy` items only.
    fn push_burst(producer: &mut Producer<Self>, first: u64, n: usize, ledger: &Ledger) -> usize
    where
        Self: Sized,
    {
        producer.fill(n, |i| Self::new(first + i as u64, ledger))
    }
}

impl Item for u64 {
    fn new(number: u64, _: &Ledger) -> Self {
        number
    }
    fn number(&self) -> u64 {
        *self
    }
    fn push_burst(producer: &mut Producer<Self>, first: u64, n: usize, _: &Ledger) -> usize {
        let values: Vec<u64> = (first..first + n as u64).collect();
        producer.push_burst(&values)
    }
}

/// A cache line, as packet records are.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; 8]);

impl Item for Line {
    fn new(number: u64, _: &Ledger) -> Self {
        Self([number; 8])
    }
    fn number(&self) -> u64 {
        assert_eq!(self.0, [self.0[0]; 8], "a torn item");
        assert!((&raw const *self).is_aligned());
        self.0[0]
    }
    fn push_burst(producer: &mut Producer<Self>, first: u64, n: usize, ledger: &Ledger) -> usize {
        let values: Vec<Self> = (0..n as u64).map(|i| Self::new(first + i, ledger)).collect();
        producer.push_burst(&values)
    }
}

impl Item for String {
    fn new(number: u64, _: &Ledger) -> Self {
        number.to_string()
    }
    fn number(&self) -> u64 {
        self.parse().expect("a number")
    }
}

/// An item whose life is recorded.
#[derive(Debug)]
struct Counted {
    number: Box<u64>,
    ledger: Ledger,
}

/// The live items, by number.
type Ledger = Arc<Mutex<Vec<bool>>>;

impl Item for Counted {
    const COUNTED: bool = true;

    fn new(number: u64, ledger: &Ledger) -> Self {
        let mut alive = ledger.lock().expect("no panic before");
        let at = number as usize;
        let len = alive.len().max(at + 1);
        alive.resize(len, false);
        assert!(!alive[at], "item {number} made twice");
        alive[at] = true;
        Self { number: Box::new(number), ledger: Arc::clone(ledger) }
    }
    fn number(&self) -> u64 {
        *self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut alive = self.ledger.lock().expect("no panic before");
        assert!(std::mem::take(&mut alive[*self.number as usize]), "item dropped twice");
    }
}

/// The expected content of the ring.
struct Oracle {
    /// Numbers of the items in the ring.
    items: VecDeque<u64>,
    capacity: usize,
    batch: usize,
    /// Number of the last items that are not yet published; for vernier an upper bound.
    hidden_items: usize,
    /// Number of empty slots that are not yet freed; for vernier an upper bound.
    hidden_slots: usize,
    /// Vernier: hidden items may become visible at any time.
    early: bool,
    /// Consecutive polls that found nothing.
    empty_polls: u32,
    /// Number of items at the front that may be released.
    peeked: usize,
    next_number: u64,
    closed: bool,
}

impl Oracle {
    /// Lower and upper bound of the free slots.
    fn free(&self) -> (usize, usize) {
        let most = if self.closed { 0 } else { self.capacity - self.items.len() };
        let least = if self.closed { 0 } else { most - self.hidden_slots };
        (least, if self.early { most } else { least })
    }

    /// Lower and upper bound of the visible items.
    fn visible(&self) -> (usize, usize) {
        let least = self.items.len() - self.hidden_items;
        (least, if self.early { self.items.len() } else { least })
    }

    /// `n` of `wanted` items were pushed; a burst is published at its end.
    fn pushed(&mut self, n: usize, wanted: usize, burst: bool) {
        let (least, most) = self.free();
        assert!((wanted.min(least)..=wanted.min(most)).contains(&n), "{n} items accepted");
        self.items.extend(self.next_number..self.next_number + n as u64);
        self.next_number += n as u64;
        self.hidden_items += n;
        // A slot that was filled had been freed.
        self.hidden_slots = self.hidden_slots.min(self.capacity - self.items.len());
        let full = n < wanted && !self.closed;
        if full || if self.early { burst && n > 0 } else { self.hidden_items >= self.batch } {
            self.hidden_items = 0;
        }
    }

    /// `n` items were taken.
    fn emptied(&mut self, n: usize) {
        self.items.drain(..n);
        self.hidden_items = self.hidden_items.min(self.items.len());
        self.hidden_slots += n;
        if self.early {
            self.hidden_slots = self.hidden_slots.min(self.capacity.div_ceil(2));
        } else if self.hidden_slots >= self.batch {
            self.hidden_slots = 0;
        }
    }

    /// A poll that found something or not.
    fn polled(&mut self, found: bool) {
        self.empty_polls = if found { 0 } else { self.empty_polls + 1 };
        if self.empty_polls >= 64 {
            assert!(!self.early || self.items.is_empty(), "an item is still unseen");
        }
    }
}

fn run<T: Item>(kind: Kind, mut script: Script<'_>) {
    let capacity = match script.next() {
        large @ 200.. => large * 5,
        small => 1 + small % 24,
    };
    let batch = script.next();
    let (producer, consumer) = ring::<T>(kind, capacity, batch).expect("a small ring");
    let (mut producer, mut consumer) = (Some(producer), Some(consumer));
    let ledger = Ledger::default();
    let mut oracle = Oracle {
        items: VecDeque::new(),
        capacity,
        batch: if kind == Kind::McRing { batch.min(capacity.div_ceil(2)).max(1) } else { 1 },
        hidden_items: 0,
        hidden_slots: 0,
        early: kind == Kind::Vernier,
        empty_polls: 0,
        peeked: 0,
        next_number: 0,
        closed: false,
    };

    while !script.0.as_slice().is_empty() {
        let (operation, argument) = (script.next(), script.next());
        match operation % 16 {
            0..=7 => {
                if let Some(producer) = &mut producer {
                    produce(producer, &mut oracle, operation % 16, argument, &ledger);
                }
            }
            15 if argument.is_multiple_of(8) => {
                if argument.is_multiple_of(16) {
                    producer = None;
                    (oracle.closed, oracle.hidden_items) = (true, 0);
                } else {
                    consumer = None;
                    (oracle.peeked, oracle.hidden_slots) = (0, 0);
                }
            }
            operation => {
                if let Some(consumer) = &mut consumer {
                    consume(consumer, &mut oracle, operation, argument);
                }
            }
        }
        if let Some(producer) = &producer {
            assert_eq!(producer.is_abandoned(), consumer.is_none());
            assert_eq!(producer.capacity(), capacity);
        }
        if let Some(consumer) = &consumer {
            assert_eq!(consumer.is_closed(), oracle.closed);
            assert_eq!(consumer.capacity(), capacity);
        }
    }

    let alive = || ledger.lock().expect("no panic").iter().filter(|&&alive| alive).count();
    if T::COUNTED {
        let held = if producer.is_some() || consumer.is_some() { oracle.items.len() } else { 0 };
        assert_eq!(alive(), held, "items alive");
    }
    drop((producer, consumer));
    assert_eq!(alive(), 0, "items left alive");
}

fn produce<T: Item>(
    producer: &mut Producer<T>,
    oracle: &mut Oracle,
    operation: usize,
    argument: usize,
    ledger: &Ledger,
) {
    let first = oracle.next_number;
    match operation {
        0..=2 => match producer.push(T::new(first, ledger)) {
            Ok(()) => oracle.pushed(1, 1, false),
            Err(value) => {
                assert_eq!(value.number(), first, "the refused item comes back");
                oracle.pushed(0, 1, false);
            }
        },
        3 | 4 => {
            let wanted = argument % (oracle.capacity + 3);
            let n = T::push_burst(producer, first, wanted, ledger);
            oracle.pushed(n, wanted, true);
        }
        5 => {
            let wanted = argument % (oracle.capacity + 3);
            let mut made = 0;
            let n = producer.fill(wanted, |i| {
                assert_eq!(i, made);
                made += 1;
                T::new(first + i as u64, ledger)
            });
            assert_eq!(n, made, "all items made are in the ring");
            oracle.pushed(n, wanted, true);
        }
        6 => {
            let (least, most) = oracle.free();
            let free = producer.free();
            assert!((least..=most).contains(&free), "{free} slots free");
            if free == 0 {
                oracle.hidden_items = 0;
            }
        }
        _ if argument.is_multiple_of(32) => {
            producer.close();
            (oracle.closed, oracle.hidden_items) = (true, 0);
        }
        _ => {
            producer.flush();
            oracle.hidden_items = 0;
        }
    }
}

fn consume<T: Item>(
    consumer: &mut Consumer<T>,
    oracle: &mut Oracle,
    operation: usize,
    argument: usize,
) {
    match operation {
        8..=10 => {
            let popped = consumer.pop().map(|item| item.number());
            let (least, most) = oracle.visible();
            match popped {
                None => {
                    assert_eq!(least, 0, "nothing was popped");
                    oracle.hidden_slots = 0;
                }
                Some(_) => {
                    assert!(most > 0, "something was popped");
                    assert_eq!(popped, oracle.items.front().copied());
                    oracle.emptied(1);
                }
            }
            oracle.polled(popped.is_some());
            oracle.peeked = oracle.peeked.saturating_sub(1);
        }
        11 | 12 => {
            let max = argument % (oracle.capacity + 3);
            let items = consumer.peek(max);
            let (least, most) = oracle.visible();
            assert!(items.len() <= max.min(most));
            assert!(!items.is_empty() || max.min(least) == 0);
            for (item, &number) in items.iter().zip(&oracle.items) {
                assert_eq!(item.number(), number);
            }
            oracle.peeked = items.len();
            let found = !items.is_empty();
            if least == 0 && !found && (max > 0 || !oracle.early) {
                oracle.hidden_slots = 0;
            }
            if max > 0 {
                oracle.polled(found);
            }
        }
        13 | 14 => {
            let n = if operation == 13 { oracle.peeked } else { argument.min(oracle.peeked) };
            consumer.release(n);
            oracle.peeked -= n;
            oracle.emptied(n);
        }
        _ => {
            consumer.flush();
            oracle.hidden_slots = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Miri is slow.
    const CASES: u32 = if cfg!(miri) { 2 } else { 600 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_kind_behaves_as_the_oracle(
            capacity in prop_oneof![0u8..9, any::<u8>()],
            batch in 0u8..65,
            operations in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            for kind in 0..Kind::ALL.len() as u8 {
                for item in 0..4 {
                    let mut script = vec![kind, item, capacity, batch];
                    script.extend(&operations);
                    run_script(&script);
                }
            }
        }
    }

    #[test]
    fn short_scripts_are_scripts() {
        for length in 0..8 {
            for byte in 0..=255 {
                run_script(&vec![byte; length]);
            }
        }
    }
}
