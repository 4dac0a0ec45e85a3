//! A script of operations on one ring, checked step by step against an oracle.
//!
//! ```text
//! byte 0: kind │ 1: item type │ 2: capacity │ 3: batch │ then (operation, argument) pairs
//! ```
//!
//! Every byte string is a script, so that a property test and a fuzz target can both make them.
//! One thread runs both ends, so the oracle is exact: it knows which items are visible and which
//! slots are free at every step. Kinds other than MCRingBuffer behave as with a batch of 1.

use crate::{Consumer, Kind, Producer, ring};
use std::{
    collections::VecDeque,
    fmt::Debug,
    sync::{Arc, Mutex},
};

/// Runs the script that `bytes` say; what they do not say is zero.
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
    /// The ledger tells how many are alive.
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

/// An item whose life is written down.
#[derive(Debug)]
struct Counted {
    number: Box<u64>,
    ledger: Ledger,
}

/// Which items, by number, are alive.
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

/// What the ring must hold.
struct Oracle {
    /// Numbers of the items in the ring.
    items: VecDeque<u64>,
    capacity: usize,
    batch: usize,
    /// So many of the last items are not yet published.
    hidden_items: usize,
    /// So many slots are empty but not yet given back.
    hidden_slots: usize,
    /// So many items at the front may be released.
    peeked: usize,
    next_number: u64,
    closed: bool,
}

impl Oracle {
    fn free(&self) -> usize {
        if self.closed { 0 } else { self.capacity - self.items.len() - self.hidden_slots }
    }

    fn visible(&self) -> usize {
        self.items.len() - self.hidden_items
    }

    /// `n` of `wanted` items were pushed.
    fn pushed(&mut self, n: usize, wanted: usize) {
        assert_eq!(n, wanted.min(self.free()), "items accepted");
        self.items.extend(self.next_number..self.next_number + n as u64);
        self.next_number += n as u64;
        self.hidden_items += n;
        if self.hidden_items >= self.batch || (n < wanted && !self.closed) {
            self.hidden_items = 0;
        }
    }

    /// `n` items were taken.
    fn emptied(&mut self, n: usize) {
        self.items.drain(..n);
        self.hidden_slots += n;
        if self.hidden_slots >= self.batch {
            self.hidden_slots = 0;
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
            Ok(()) => oracle.pushed(1, 1),
            Err(value) => {
                assert_eq!(value.number(), first, "the refused item comes back");
                oracle.pushed(0, 1);
            }
        },
        3 | 4 => {
            let wanted = argument % (oracle.capacity + 3);
            let n = T::push_burst(producer, first, wanted, ledger);
            oracle.pushed(n, wanted);
        }
        5 => {
            let wanted = argument % (oracle.capacity + 3);
            let mut made = 0;
            let n = producer.fill(wanted, |i| {
                assert_eq!(i, made);
                made += 1;
                T::new(first + i as u64, ledger)
            });
            assert_eq!(n, made, "all that was made went in");
            oracle.pushed(n, wanted);
        }
        6 => {
            assert_eq!(producer.free(), oracle.free());
            if oracle.free() == 0 {
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
            if oracle.visible() == 0 {
                assert_eq!(popped, None);
                oracle.hidden_slots = 0;
            } else {
                assert_eq!(popped, oracle.items.front().copied());
                oracle.emptied(1);
            }
            oracle.peeked = oracle.peeked.saturating_sub(1);
        }
        11 | 12 => {
            let max = argument % (oracle.capacity + 3);
            let items = consumer.peek(max);
            assert!(items.len() <= max.min(oracle.visible()));
            assert_eq!(items.is_empty(), max.min(oracle.visible()) == 0);
            for (item, &number) in items.iter().zip(&oracle.items) {
                assert_eq!(item.number(), number);
            }
            oracle.peeked = items.len();
            if oracle.visible() == 0 {
                oracle.hidden_slots = 0;
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

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
