//! All interleavings of small scenarios, and all values that relaxed loads may see, over every kind.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringtap-ring --release --test loom
//! ```
//!
//! Slots have trackers (see `slots.rs`), so an unordered access of one slot by two threads is a
//! failure. The last tests weaken one ordering at a time and require that loom finds the race: a
//! check of the checker, and a proof that the ordering is needed.
#![cfg(loom)]

use loom::sync::atomic::Ordering;
use loom::thread;
use ringtap_ring::{Consumer, Edge, Kind, Producer, ring, weaken};
use std::time::Duration;

/// Explores all interleavings with up to three forced switches, which is enough for bugs of two
/// threads, and ends for spinning threads.
fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 5_000;
    model.check(scenario);
}

fn push_all(producer: &mut Producer<usize>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let mut value = number;
        while let Err(refused) = producer.push(value) {
            value = refused;
            thread::yield_now();
        }
    }
}

fn pop_all(consumer: &mut Consumer<usize>, numbers: std::ops::Range<usize>) {
    for number in numbers {
        loop {
            match consumer.pop() {
                Some(popped) => break assert_eq!(popped, number),
                None => thread::yield_now(),
            }
        }
    }
}

/// Takes everything until the ring is closed and drained; the order of checks is the documented one.
fn drain(consumer: &mut Consumer<usize>) -> usize {
    let mut next = 0;
    loop {
        let closed = consumer.is_closed();
        let items = consumer.peek(2);
        let n = items.len();
        for &item in items {
            assert_eq!(item, next);
            next += 1;
        }
        consumer.release(n);
        match (n, closed) {
            (0, true) => return next,
            (0, false) => thread::yield_now(),
            _ => {}
        }
    }
}

/// Push and pop around the ring, for every kind, capacity and batch, without a flush: this also
/// proves that neither side stalls on what the other holds back.
fn push_and_pop(capacity: usize, batch: usize, items: usize) {
    for kind in Kind::ALL {
        check(move || {
            let (mut producer, mut consumer) = ring(kind, capacity, batch).expect("small");
            let thread = thread::spawn(move || {
                push_all(&mut producer, 0..items);
                // It stays open, so closing publishes nothing before the consumer has received what
                // the calls above published.
                producer.flush();
                producer
            });
            pop_all(&mut consumer, 0..items);
            drop(thread.join());
        });
    }
}

#[test]
fn one_slot() {
    push_and_pop(1, 1, 2);
    push_and_pop(1, 9, 2);
}

#[test]
fn two_slots() {
    push_and_pop(2, 1, 3);
    push_and_pop(2, 9, 3);
}

#[test]
fn three_slots() {
    push_and_pop(3, 1, 4);
    push_and_pop(3, 2, 4);
}

/// More items than slots and no flush: the producer holds back less than the ring, so a producer
/// that polls a full ring and a consumer that polls an empty one both proceed.
#[test]
fn no_wedge_without_flush() {
    for kind in Kind::ALL {
        for (capacity, batch) in [(1, 5), (2, 5), (3, 5)] {
            check(move || {
                let (mut producer, mut consumer) = ring(kind, capacity, batch).expect("small");
                let thread = thread::spawn(move || {
                    push_all(&mut producer, 0..capacity + 1);
                    producer
                });
                // All but those that a batch may hold back.
                pop_all(&mut consumer, 0..capacity + 1 - (capacity.div_ceil(2) - 1));
                drop(thread.join());
            });
        }
    }
}

#[test]
fn bursts_wrap_around() {
    for kind in Kind::ALL {
        check(move || {
            let (mut producer, mut consumer) = ring(kind, 3, 2).expect("small");
            // Start in the middle, so that the burst of 2 wraps.
            assert_eq!(producer.push_burst(&[90, 91]), 2);
            assert_eq!((consumer.pop(), consumer.pop()), (Some(90), Some(91)));
            consumer.flush();
            let thread = thread::spawn(move || {
                let mut sent = 0;
                while sent < 3 {
                    let pushed = producer.push_burst(&[0, 1, 2][sent..]);
                    sent += pushed;
                    if pushed == 0 {
                        thread::yield_now();
                    }
                }
            });
            assert_eq!(drain(&mut consumer), 3);
            thread.join().expect("producer");
        });
    }
}

/// Fill and free against release: `fill` gets the slots that `free` returned.
#[test]
fn fill_gets_what_free_promised() {
    for kind in Kind::ALL {
        check(move || {
            let (mut producer, mut consumer) = ring(kind, 2, 1).expect("small");
            let thread = thread::spawn(move || {
                let mut sent = 0;
                while sent < 3 {
                    let free = producer.free().min(3 - sent);
                    let filled = producer.fill(free, |i| sent + i);
                    assert_eq!(filled, free);
                    sent += filled;
                    if free == 0 {
                        thread::yield_now();
                    }
                }
            });
            assert_eq!(drain(&mut consumer), 3);
            thread.join().expect("producer");
        });
    }
}

/// A last batch that is not complete reaches the consumer by flush, by close and by drop.
#[test]
fn a_stalled_last_batch_arrives() {
    let ways: [fn(&mut Producer<usize>); 3] = [|p| p.flush(), |p| p.close(), |_| ()];
    for kind in Kind::ALL {
        for (way, publish) in ways.into_iter().enumerate() {
            check(move || {
                let (mut producer, mut consumer) = ring(kind, 7, 4).expect("small");
                let thread = thread::spawn(move || {
                    push_all(&mut producer, 0..2);
                    publish(&mut producer);
                    // By drop, at the end of this closure.
                    (way == 0).then_some(producer)
                });
                pop_all(&mut consumer, 0..2);
                drop(thread.join());
                assert!(consumer.is_closed() && consumer.pop().is_none());
            });
        }
    }
}

/// Close races with the consumer: it never ends before it has seen every item.
#[test]
fn close_hides_nothing() {
    for kind in Kind::ALL {
        for items in 0..3 {
            check(move || {
                let (mut producer, mut consumer) = ring(kind, 2, 2).expect("small");
                let thread = thread::spawn(move || {
                    push_all(&mut producer, 0..items);
                    producer.close();
                    assert_eq!(producer.push(9), Err(9));
                });
                assert_eq!(drain(&mut consumer), items);
                thread.join().expect("producer");
            });
        }
    }
}

/// Either end may be dropped first, with items inside; each item is dropped once (loom's `Arc` also
/// detects leaks).
#[test]
fn either_end_may_go_first() {
    for kind in Kind::ALL {
        check(move || {
            let item = loom::sync::Arc::new(());
            let (mut producer, mut consumer) = ring(kind, 3, 2).expect("small");
            let thread = thread::spawn({
                let item = item.clone();
                move || {
                    for _ in 0..3 {
                        if producer.push(item.clone()).is_err() {
                            panic!("three fit");
                        }
                    }
                }
            });
            drop(consumer.pop());
            drop(consumer);
            thread.join().expect("producer");
            assert_eq!(loom::sync::Arc::strong_count(&item), 1);
        });
    }
}

/// A consumer that sleeps whenever it finds nothing, and a producer that sleeps whenever it finds no
/// room, always wake each other: loom's park has no time limit, so a lost wake-up is a deadlock.
#[test]
fn no_wake_up_is_lost() {
    for kind in Kind::ALL {
        check(move || {
            let (mut producer, mut consumer) = ring(kind, 1, 1).expect("small");
            let thread = thread::spawn(move || {
                for number in 0..2 {
                    while producer.push(number).is_err() {
                        producer.park(Duration::MAX);
                    }
                    producer.wake();
                }
            });
            for number in 0..2 {
                loop {
                    match consumer.pop() {
                        Some(popped) => break assert_eq!(popped, number),
                        None => consumer.park(Duration::MAX),
                    }
                }
                consumer.wake();
            }
            // Closing wakes, too.
            while !consumer.is_closed() {
                consumer.park(Duration::MAX);
            }
            // Not joined: a late wake-up would find this thread in loom's join, which reports it as
            // a fault.
            drop(thread);
        });
    }
}

/// Loom's report on a scenario with one ordering relaxed; empty if it finds no fault.
fn verdict(edge: Edge, order: Ordering, scenario: impl Fn() + Send + Sync + 'static) -> String {
    // A thread of its own, whose end also ends the weakening.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            weaken(edge, order);
            check(scenario);
        });
        match thread.join() {
            Ok(()) => String::new(),
            Err(panic) => match panic.downcast::<String>() {
                Ok(message) => *message,
                Err(panic) => panic.downcast_ref::<&str>().expect("a message").to_string(),
            },
        }
    })
}

fn around(kind: Kind) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (mut producer, mut consumer) = ring(kind, 1, 1).expect("small");
        let thread = thread::spawn(move || push_all(&mut producer, 0..2));
        pop_all(&mut consumer, 0..2);
        drop(thread.join());
    }
}

#[test]
fn loom_finds_every_weakened_edge() {
    for kind in Kind::ALL {
        for order in [Ordering::Release, Ordering::Acquire] {
            let edges: &[Edge] = match kind {
                Kind::Lock => &[Edge::Lock],
                _ => &[Edge::Items, Edge::Slots],
            };
            for &edge in edges {
                let verdict = verdict(edge, order, around(kind));
                let case = format!("{kind}: {edge:?} without {order:?}: {verdict:?}");
                assert!(verdict.contains("Causality violation"), "{case}");
                println!("{case}");
            }
        }
    }
}

#[test]
fn loom_finds_a_weakened_close() {
    for order in [Ordering::Release, Ordering::Acquire] {
        // In the lock ring the lock provides the order that the close lacks.
        for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Lock) {
            let scenario = move || {
                let (mut producer, mut consumer) = ring(kind, 2, 2).expect("small");
                let thread = thread::spawn(move || push_all(&mut producer, 0..1));
                assert_eq!(drain(&mut consumer), 1, "an item was missed");
                thread.join().expect("producer");
            };
            let verdict = verdict(Edge::Close, order, scenario);
            assert!(verdict.contains("an item was missed"), "{kind}: {order:?}: {verdict:?}");
        }
    }
}

/// The unmodified ring passes the scenario in which the weakened ones fail.
#[test]
fn loom_finds_nothing_in_the_whole_ring() {
    for kind in Kind::ALL {
        check(around(kind));
    }
}
