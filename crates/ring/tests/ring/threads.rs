//! Two real threads: order and conservation of items, over every kind, capacity, batch and mode.
//!
//! `tsan.sh` runs this file under ThreadSanitizer. A waiting thread yields: there may be
//! fewer cores than threads.

use ringtap_ring::{Consumer, Kind, Producer, ring};
use std::thread;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Single,
    Burst,
    Fill,
}

/// A cache line whose words all depend on its number, so that a torn item is detected.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
struct Line([u64; 8]);

impl Line {
    fn new(number: u64) -> Self {
        Self(std::array::from_fn(|word| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word as u64))
    }
}

fn produce(producer: &mut Producer<Line>, mode: Mode, n: u64) {
    let mut next = 0;
    while next < n {
        // Bursts of changing length, 1 to 40.
        let wanted = (n - next).min(1 + next * 7 % 40) as usize;
        let pushed = match mode {
            Mode::Single => usize::from(producer.push(Line::new(next)).is_ok()),
            Mode::Burst => {
                let values: Vec<Line> = (next..).take(wanted).map(Line::new).collect();
                producer.push_burst(&values)
            }
            Mode::Fill => producer.fill(wanted, |i| Line::new(next + i as u64)),
        };
        next += pushed as u64;
        if pushed == 0 {
            thread::yield_now();
        }
    }
}

/// Takes everything until the ring is drained for ever; returns the number of items.
fn consume(consumer: &mut Consumer<Line>, mode: Mode) -> u64 {
    let mut next = 0;
    loop {
        let closed = consumer.is_closed();
        let before = next;
        match mode {
            Mode::Single => {
                if let Some(item) = consumer.pop() {
                    assert_eq!(item, Line::new(next));
                    next += 1;
                }
            }
            Mode::Burst | Mode::Fill => {
                let items = consumer.peek(1 + next as usize % 50);
                let n = items.len();
                for item in items {
                    assert_eq!(*item, Line::new(next));
                    next += 1;
                }
                // In two steps: a part may be released.
                consumer.release(n / 2);
                consumer.release(n - n / 2);
            }
        }
        if next == before {
            if closed {
                return next;
            }
            thread::yield_now();
        }
    }
}

#[test]
fn items_arrive_once_and_in_order() {
    for kind in Kind::ALL {
        for (capacity, n) in
            [(1, 1_000), (2, 1_000), (3, 2_000), (7, 4_000), (64, 20_000), (1_000, 40_000)]
        {
            for batch in [1, 50] {
                for mode in [Mode::Single, Mode::Burst, Mode::Fill] {
                    let (mut producer, mut consumer) =
                        ring(kind, capacity, batch).expect("it fits");
                    let arrived = thread::scope(|scope| {
                        scope.spawn(move || produce(&mut producer, mode, n));
                        let thread = scope.spawn(move || consume(&mut consumer, mode));
                        thread.join().expect("in order")
                    });
                    assert_eq!(arrived, n, "{kind} {capacity} {batch} {mode:?}");
                }
            }
        }
    }
}

/// Round trips: each side waits for the other's last item, so an item held back for ever is a hang.
#[test]
fn a_lone_item_is_not_held_back_after_a_flush() {
    for kind in Kind::ALL {
        let (mut there, mut inbox) = ring(kind, 1_000, 500).expect("it fits");
        let (mut back, mut answers) = ring(kind, 1_000, 500).expect("it fits");
        thread::scope(|scope| {
            scope.spawn(move || {
                loop {
                    let closed = inbox.is_closed();
                    match inbox.pop() {
                        Some(number) => {
                            back.push(number).expect("room for one");
                            back.flush();
                        }
                        None if closed => return,
                        None => thread::yield_now(),
                    }
                }
            });
            for number in 0..500u64 {
                there.push(number).expect("room for one");
                there.flush();
                loop {
                    match answers.pop() {
                        Some(answer) => break assert_eq!(answer, number),
                        None => thread::yield_now(),
                    }
                }
            }
            drop(there);
        });
    }
}

/// A producer that waits for room detects that the consumer is gone.
#[test]
fn an_abandoned_ring_is_noticed() {
    for kind in Kind::ALL {
        let (mut producer, consumer) = ring(kind, 4, 2).expect("it fits");
        thread::scope(|scope| {
            scope.spawn(move || {
                while !producer.is_abandoned() {
                    let _ = producer.push(0u8);
                    thread::yield_now();
                }
            });
            scope.spawn(move || drop(consumer));
        });
    }
}

/// Items that own memory, left inside by both ends in turn.
#[test]
fn owned_items_cross_and_the_rest_is_dropped() {
    // Miri is slow.
    let step = if cfg!(miri) { 9 } else { 1 };
    for kind in Kind::ALL {
        for left in (0..20).step_by(step) {
            let (mut producer, mut consumer) = ring(kind, 16, 4).expect("it fits");
            thread::scope(|scope| {
                scope.spawn(move || {
                    for number in 0..100 {
                        let mut item = format!("item {number}");
                        while let Err(refused) = producer.push(item) {
                            if producer.is_abandoned() {
                                return;
                            }
                            item = refused;
                            thread::yield_now();
                        }
                    }
                });
                scope.spawn(move || {
                    for number in 0..100 - left {
                        loop {
                            match consumer.pop() {
                                Some(item) => break assert_eq!(item, format!("item {number}")),
                                None => thread::yield_now(),
                            }
                        }
                    }
                });
            });
        }
    }
}
