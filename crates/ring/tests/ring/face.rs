//! Guarantees of the interface that need no second thread: drops, panics, limits, names.

use ringtap_ring::{InvalidCapacity, Kind, Producer, ring};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// Counts how often each of its items is dropped; the one at `bomb` panics then.
struct Drops {
    counts: [AtomicU32; 16],
    bomb: usize,
}

impl Drops {
    fn new(bomb: usize) -> Self {
        Self { counts: Default::default(), bomb }
    }

    fn item(&self, number: usize) -> Droppable<'_> {
        Droppable { number, drops: self }
    }

    fn counts(&self, n: usize) -> Vec<u32> {
        self.counts[..n].iter().map(|count| count.load(Relaxed)).collect()
    }
}

struct Droppable<'a> {
    number: usize,
    drops: &'a Drops,
}

impl fmt::Debug for Droppable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}", self.number)
    }
}

impl Drop for Droppable<'_> {
    fn drop(&mut self) {
        self.drops.counts[self.number].fetch_add(1, Relaxed);
        assert!(self.number != self.drops.bomb, "the bomb");
    }
}

const NO_BOMB: usize = usize::MAX;

fn pushed<T: Send>(producer: &mut Producer<T>, item: T) {
    assert!(producer.push(item).is_ok(), "there is room");
}

#[test]
fn items_left_inside_are_dropped_once_by_the_last_end() {
    for kind in Kind::ALL {
        for consumer_first in [false, true] {
            let drops = Drops::new(NO_BOMB);
            let (mut producer, mut consumer) = ring(kind, 5, 3).expect("it fits");
            (0..4).for_each(|number| pushed(&mut producer, drops.item(number)));
            producer.flush();
            (0..3).for_each(|_| drop(consumer.pop()));
            consumer.flush();
            // Around the wrap-around, and the last ones not yet published.
            (4..8).for_each(|number| pushed(&mut producer, drops.item(number)));
            assert_eq!(drops.counts(8), [1, 1, 1, 0, 0, 0, 0, 0], "{kind}");
            if consumer_first {
                drop(consumer);
                drop(producer);
            } else {
                drop(producer);
                drop(consumer);
            }
            assert_eq!(drops.counts(8), [1; 8], "{kind}");
        }
    }
}

#[test]
fn a_refused_item_is_not_dropped() {
    for kind in Kind::ALL {
        let drops = Drops::new(NO_BOMB);
        let (mut producer, _consumer) = ring(kind, 1, 1).expect("it fits");
        pushed(&mut producer, drops.item(0));
        let refused = producer.push(drops.item(1)).expect_err("full");
        producer.close();
        let refused = producer.push(refused).expect_err("closed");
        assert_eq!((refused.number, drops.counts(2)), (1, vec![0, 0]));
        assert_eq!((producer.free(), producer.fill(3, |_| unreachable!())), (0, 0));
    }
}

#[test]
fn a_panic_in_drop_during_release_drops_nothing_twice() {
    for kind in Kind::ALL {
        for bomb in 0..6 {
            let drops = Drops::new(bomb);
            let (mut producer, mut consumer) = ring(kind, 8, 2).expect("it fits");
            // Some in and out first, so that the others cross the wrap-around.
            (10..15).for_each(|number| pushed(&mut producer, drops.item(number)));
            producer.flush();
            while consumer.pop().is_some() {}
            (0..6).for_each(|number| pushed(&mut producer, drops.item(number)));
            producer.flush();
            let mut panics = 0;
            loop {
                let n = consumer.peek(8).len();
                if n == 0 {
                    break;
                }
                panics +=
                    u32::from(catch_unwind(AssertUnwindSafe(|| consumer.release(n))).is_err());
            }
            assert_eq!((panics, drops.counts(6)), (1, vec![1; 6]), "{kind}, bomb {bomb}");
            // The ring stays usable, with all of its slots.
            consumer.flush();
            assert_eq!(producer.free(), 8, "{kind}");
            pushed(&mut producer, drops.item(7));
            producer.flush();
            assert_eq!(consumer.pop().map(|item| item.number), Some(7));
        }
    }
}

#[test]
fn a_panic_in_drop_at_the_end_drops_nothing_twice() {
    for kind in Kind::ALL {
        for bomb in 0..6 {
            let drops = Drops::new(bomb);
            let (mut producer, mut consumer) = ring(kind, 8, 2).expect("it fits");
            (10..15).for_each(|number| pushed(&mut producer, drops.item(number)));
            producer.flush();
            while consumer.pop().is_some() {}
            (0..6).for_each(|number| pushed(&mut producer, drops.item(number)));
            drop(producer);
            assert!(catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err());
            assert_eq!(drops.counts(6), [1; 6], "{kind}, bomb {bomb}");
        }
    }
}

#[test]
fn a_panic_while_filling_keeps_what_was_made() {
    for kind in Kind::ALL {
        let drops = Drops::new(NO_BOMB);
        let (mut producer, mut consumer) = ring(kind, 8, 4).expect("it fits");
        let fill = AssertUnwindSafe(|| {
            producer.fill(6, |i| if i == 3 { panic!("no fourth item") } else { drops.item(i) })
        });
        assert!(catch_unwind(fill).is_err());
        pushed(&mut producer, drops.item(3));
        producer.flush();
        for number in 0..4 {
            assert_eq!(consumer.pop().map(|item| item.number), Some(number), "{kind}");
        }
        assert!(consumer.pop().is_none());
        assert_eq!(drops.counts(5), [1, 1, 1, 1, 0]);
    }
}

#[test]
fn more_than_was_peeked_cannot_be_released() {
    for kind in Kind::ALL {
        let (mut producer, mut consumer) = ring(kind, 8, 1).expect("it fits");
        assert_eq!(producer.push_burst(&[1, 2, 3]), 3);
        assert!(catch_unwind(AssertUnwindSafe(|| consumer.release(1))).is_err(), "no peek");
        let n = consumer.peek(2).len();
        assert!(catch_unwind(AssertUnwindSafe(|| consumer.release(n + 1))).is_err());
        assert_eq!(consumer.peek(1), [1], "{kind}: a refused release releases nothing");
        consumer.release(1);
        assert!(catch_unwind(AssertUnwindSafe(|| consumer.release(1))).is_err(), "released before");
        assert_eq!(consumer.pop(), Some(2), "{kind}");
    }
}

#[test]
fn a_peek_shows_at_most_max_and_stops_at_the_wrap_around() {
    for kind in Kind::ALL {
        let (mut producer, mut consumer) = ring(kind, 8, 1).expect("it fits");
        producer.push_burst(&[90, 91, 92]);
        while consumer.pop().is_some() {}
        assert_eq!(producer.push_burst(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), 8);
        let mut next = 0;
        for max in [3, 2, 9, 1, 9, 9, 9, 9] {
            let items = consumer.peek(max);
            assert!(
                items.len() <= max && items.iter().copied().eq((next..).take(items.len())),
                "{kind}"
            );
            let corner = if next < 5 { 5 } else { 8 };
            assert!(next + items.len() as i32 <= corner, "{kind}: slots in one piece");
            next += items.len() as i32;
            let n = items.len();
            consumer.release(n);
        }
        assert_eq!(next, 8, "{kind}: at least one a peek");
        assert!(consumer.peek(8).is_empty());
    }
}

/// Without a flush, for every ring except the paper's with batches.
#[test]
fn a_lone_item_is_seen_after_64_polls() {
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::McRing) {
        let (mut producer, mut consumer) = ring(kind, 2048, 50).expect("it fits");
        for round in 0..300 {
            // A busy ring first, from which a consumer adapts to rare reads of the fine index.
            for item in 0..round {
                pushed(&mut producer, item);
                if item % 3 != 0 {
                    consumer.pop();
                }
            }
            while (0..64).any(|_| consumer.pop().is_some()) {}
            pushed(&mut producer, -1);
            let polls = (1..=64).find(|_| consumer.pop() == Some(-1));
            assert!(polls.is_some(), "{kind}, round {round}: still unseen");
        }
    }
}

#[test]
fn items_of_no_size_are_counted() {
    for kind in Kind::ALL {
        let (mut producer, mut consumer) = ring(kind, 5, 2).expect("it fits");
        for _ in 0..3 {
            assert_eq!(producer.push_burst(&[(); 9]), 5, "{kind}");
            assert_eq!(std::iter::from_fn(|| consumer.pop()).count(), 5, "{kind}");
        }
    }
}

#[test]
fn impossible_capacities_are_errors() {
    for kind in Kind::ALL {
        for capacity in [0, usize::MAX, usize::MAX / 2, isize::MAX as usize / 64] {
            let error = ring::<[u64; 64]>(kind, capacity, 1).err();
            assert_eq!(error, Some(InvalidCapacity { capacity }), "{kind}");
        }
        assert!(ring::<()>(kind, usize::MAX, 1).is_err(), "{kind}");
    }
    assert_eq!(
        InvalidCapacity { capacity: 0 }.to_string(),
        "a ring needs a capacity of at least 1 item"
    );
}

#[test]
fn names_are_read_as_they_are_written() {
    let names = Kind::ALL.map(|kind| kind.to_string());
    assert_eq!(names.each_ref().map(|name| name.parse()), Kind::ALL.map(Ok));
    let error = "disruptor".parse::<Kind>().expect_err("none of ours").to_string();
    assert_eq!(
        error,
        "unknown ring \"disruptor\": use lock, lamport, fastforward, mcring or vernier"
    );
}
