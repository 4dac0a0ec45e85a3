//! The rings of ringtap-ring, of any kind.

use crate::{
    ends::{Pair, Put, pair},
    item::Item,
};
use ringtap_ring::{Consumer, Flavor, Producer};
use std::time::Duration;

/// Polls of an empty ring before a parking consumer sleeps: a few microseconds.
const SPINS: u32 = 100;

/// One item per call.
pub fn single<T, F>((producer, mut consumer): Ends<T, F>, burst: usize) -> Pair
where
    T: Item,
    F: Flavor<T> + 'static,
    Producer<T, F>: Send,
    Consumer<T, F>: Send,
{
    let put =
        |producer: &mut Producer<T, F>, next, _| usize::from(producer.push(T::new(next)).is_ok());
    pair(burst, Ours { producer, put }, move |next, _, wrong| match consumer.pop() {
        Some(item) => {
            *wrong |= item.differs(next);
            1
        }
        None => 0,
    })
}

/// `push_burst` of items from a buffer; peek and release.
pub fn copy<T, F>((producer, consumer): Ends<T, F>, burst: usize) -> Pair
where
    T: Item,
    F: Flavor<T> + 'static,
    Producer<T, F>: Send,
    Consumer<T, F>: Send,
{
    let mut values = vec![T::new(0); burst];
    let put = move |producer: &mut Producer<T, F>, next: u64, wanted: usize| {
        for (value, number) in values[..wanted].iter_mut().zip(next..) {
            *value = T::new(number);
        }
        producer.push_burst(&values[..wanted])
    };
    pair(burst, Ours { producer, put }, peek(consumer))
}

/// Items created in their slots; peek and release.
pub fn in_place<T, F>((producer, consumer): Ends<T, F>, burst: usize) -> Pair
where
    T: Item,
    F: Flavor<T> + 'static,
    Producer<T, F>: Send,
    Consumer<T, F>: Send,
{
    let put = |producer: &mut Producer<T, F>, next: u64, wanted| {
        producer.fill(wanted, |i| T::new(next + i as u64))
    };
    pair(burst, Ours { producer, put }, peek(consumer))
}

/// One item per call; after several polls without an item the consumer sleeps until it is woken.
pub fn parking<T, F>((producer, mut consumer): Ends<T, F>, burst: usize) -> Pair
where
    T: Item,
    F: Flavor<T> + 'static,
    Producer<T, F>: Send,
    Consumer<T, F>: Send,
{
    let put = |producer: &mut Producer<T, F>, next, _| {
        let put = producer.push(T::new(next)).is_ok();
        producer.wake();
        usize::from(put)
    };
    let mut empty = 0;
    pair(burst, Ours { producer, put }, move |next, _, wrong| match consumer.pop() {
        Some(item) => {
            *wrong |= item.differs(next);
            empty = 0;
            1
        }
        None => {
            empty += 1;
            if empty > SPINS {
                consumer.park(Duration::from_secs(1));
            }
            0
        }
    })
}

type Ends<T, F> = (Producer<T, F>, Consumer<T, F>);

fn peek<T, F>(mut consumer: Consumer<T, F>) -> impl FnMut(u64, usize, &mut u64) -> usize + Send
where
    T: Item,
    F: Flavor<T>,
    Consumer<T, F>: Send,
{
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

/// A producer that is flushed at the end of a run.
struct Ours<T: Send, F: Flavor<T>, P> {
    producer: Producer<T, F>,
    put: P,
}

impl<T, F, P> Put for Ours<T, F, P>
where
    T: Item,
    F: Flavor<T> + 'static,
    P: FnMut(&mut Producer<T, F>, u64, usize) -> usize + Send + 'static,
    Producer<T, F>: Send,
{
    #[inline(always)]
    fn put(&mut self, next: u64, wanted: usize) -> usize {
        (self.put)(&mut self.producer, next, wanted)
    }

    fn flush(&mut self) {
        self.producer.flush();
    }
}
