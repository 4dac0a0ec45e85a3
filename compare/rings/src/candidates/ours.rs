//! The rings of ringtap-ring, any kind.

use crate::{
    ends::{Pair, Put, pair},
    item::Item,
};
use ringtap_ring::{Consumer, Kind, Producer, ring};

/// The paper's batch.
const BATCH: usize = 50;

pub fn single<T: Item>(kind: Kind, capacity: usize, burst: usize) -> Pair {
    let (producer, mut consumer) = make::<T>(kind, capacity);
    let put =
        |producer: &mut Producer<T>, next, _| usize::from(producer.push(T::new(next)).is_ok());
    pair(burst, Ours { producer, put }, move |next, _, wrong| match consumer.pop() {
        Some(item) => {
            *wrong |= item.differs(next);
            1
        }
        None => 0,
    })
}

/// `push_burst` of ready items; peek and release.
pub fn copy<T: Item>(kind: Kind, capacity: usize, burst: usize) -> Pair {
    let (producer, consumer) = make::<T>(kind, capacity);
    let mut values = vec![T::new(0); burst];
    let put = move |producer: &mut Producer<T>, next: u64, wanted: usize| {
        for (value, number) in values[..wanted].iter_mut().zip(next..) {
            *value = T::new(number);
        }
        producer.push_burst(&values[..wanted])
    };
    pair(burst, Ours { producer, put }, peek(consumer))
}

/// Items made in their slots; peek and release.
pub fn in_place<T: Item>(kind: Kind, capacity: usize, burst: usize) -> Pair {
    let (producer, consumer) = make::<T>(kind, capacity);
    let put = |producer: &mut Producer<T>, next: u64, wanted| {
        producer.fill(wanted, |i| T::new(next + i as u64))
    };
    pair(burst, Ours { producer, put }, peek(consumer))
}

fn make<T: Item>(kind: Kind, capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring(kind, capacity, BATCH).expect("a few megabytes at most")
}

fn peek<T: Item>(mut consumer: Consumer<T>) -> impl FnMut(u64, usize, &mut u64) -> usize + Send {
    move |next, wanted, wrong| {
        let items = consumer.peek(wanted);
        for (item, number) in items.iter().zip(next..) {
            *wrong |= item.differs(number);
        }
        let taken = items.len();
        consumer.release(taken);
        taken
    }
}

/// A producer that is flushed when there is nothing more to send for now.
struct Ours<T: Send, F> {
    producer: Producer<T>,
    put: F,
}

impl<T, F> Put for Ours<T, F>
where
    T: Item,
    F: FnMut(&mut Producer<T>, u64, usize) -> usize + Send + 'static,
{
    #[inline(always)]
    fn put(&mut self, next: u64, wanted: usize) -> usize {
        (self.put)(&mut self.producer, next, wanted)
    }

    fn settle(&mut self) {
        self.producer.flush();
    }
}
