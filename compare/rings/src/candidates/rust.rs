//! Rivals in Rust, each used in the fastest way that its interface offers.

use crate::{
    ends::{Pair, pair},
    item::Item,
};
use std::mem::MaybeUninit;

/// The ends of a queue of single items.
fn single<T: Item>(
    mut push: impl FnMut(T) -> bool + Send + 'static,
    mut pop: impl FnMut() -> Option<T> + Send + 'static,
) -> Pair {
    pair(
        1,
        move |next, _| usize::from(push(T::new(next))),
        move |next, _, wrong| match pop() {
            Some(item) => {
                *wrong |= item.differs(next);
                1
            }
            None => 0,
        },
    )
}

/// The ends of a queue of slices, copied from and to a buffer.
fn copy<T: Item>(
    burst: usize,
    mut push: impl FnMut(&[T]) -> usize + Send + 'static,
    mut pop: impl FnMut(&mut [T]) -> usize + Send + 'static,
) -> Pair {
    let mut sent = vec![T::new(0); burst];
    let mut received = sent.clone();
    pair(
        burst,
        move |next: u64, wanted: usize| {
            for (value, number) in sent[..wanted].iter_mut().zip(next..) {
                *value = T::new(number);
            }
            push(&sent[..wanted])
        },
        move |next, wanted, wrong| {
            let taken = pop(&mut received[..wanted]);
            check(&received[..taken], next, wrong);
            taken
        },
    )
}

#[inline(always)]
fn check<T: Item>(items: &[T], first: u64, wrong: &mut u64) {
    for (item, number) in items.iter().zip(first..) {
        *wrong |= item.differs(number);
    }
}

/// Creates items in vacant slots.
#[inline(always)]
fn make<T: Item>(slots: &mut [MaybeUninit<T>], first: u64) {
    for (slot, number) in slots.iter_mut().zip(first..) {
        slot.write(T::new(number));
    }
}

pub fn rtrb_single<T: Item>(capacity: usize, _: usize) -> Pair {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(capacity);
    single::<T>(move |item| producer.push(item).is_ok(), move || consumer.pop().ok())
}

pub fn rtrb_copy<T: Item>(capacity: usize, burst: usize) -> Pair {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(capacity);
    copy::<T>(
        burst,
        move |items| producer.push_partial_slice(items).0.len(),
        move |items| consumer.pop_partial_slice(items).0.len(),
    )
}

pub fn rtrb_in_place<T: Item>(capacity: usize, burst: usize) -> Pair {
    use rtrb::chunks::ChunkError::TooFewSlots;
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(capacity);
    pair(
        burst,
        move |next: u64, wanted| {
            let n = match producer.write_chunk_uninit(wanted) {
                Ok(_) => wanted,
                Err(TooFewSlots(n)) => n,
            };
            let Ok(mut chunk) = producer.write_chunk_uninit(n) else { return 0 };
            let (one, two) = chunk.as_mut_slices();
            let straight = one.len() as u64;
            make(one, next);
            make(two, next + straight);
            // SAFETY: every slot of both slices was written.
            unsafe { chunk.commit_all() };
            n
        },
        move |next, wanted, wrong| {
            let n = match consumer.read_chunk(wanted) {
                Ok(_) => wanted,
                Err(TooFewSlots(n)) => n,
            };
            let Ok(chunk) = consumer.read_chunk(n) else { return 0 };
            let (one, two) = chunk.as_slices();
            check(one, next, wrong);
            check(two, next + one.len() as u64, wrong);
            chunk.commit_all();
            n
        },
    )
}

pub fn ringbuf_single<T: Item>(capacity: usize, _: usize) -> Pair {
    use ringbuf::traits::{Consumer, Producer, Split};
    let (mut producer, mut consumer) = ringbuf::HeapRb::<T>::new(capacity).split();
    single::<T>(move |item| producer.try_push(item).is_ok(), move || consumer.try_pop())
}

pub fn ringbuf_copy<T: Item>(capacity: usize, burst: usize) -> Pair {
    use ringbuf::traits::{Consumer, Producer, Split};
    let (mut producer, mut consumer) = ringbuf::HeapRb::<T>::new(capacity).split();
    copy::<T>(
        burst,
        move |items| producer.push_slice(items),
        move |items| consumer.pop_slice(items),
    )
}

pub fn ringbuf_in_place<T: Item>(capacity: usize, burst: usize) -> Pair {
    use ringbuf::traits::{Consumer, Producer, Raw, Split};
    let (mut producer, consumer) = ringbuf::HeapRb::<T>::new(capacity).split();
    pair(
        burst,
        move |next: u64, wanted: usize| {
            let (one, two) = producer.vacant_slices_mut();
            let straight = one.len().min(wanted);
            let n = straight + two.len().min(wanted - straight);
            make(&mut one[..straight], next);
            make(&mut two[..n - straight], next + straight as u64);
            // SAFETY: the first n vacant slots were written.
            unsafe { producer.advance_write_index(n) };
            n
        },
        move |next, wanted: usize, wrong| {
            let (one, two) = consumer.as_slices();
            let straight = one.len().min(wanted);
            let n = straight + two.len().min(wanted - straight);
            check(&one[..straight], next, wrong);
            check(&two[..n - straight], next + straight as u64, wrong);
            // SAFETY: the first n occupied slots were read; items are Copy and need no drop.
            unsafe { consumer.advance_read_index(n) };
            n
        },
    )
}

pub fn disruptor_single<T: Item>(capacity: usize, _: usize) -> Pair {
    use disruptor::Producer;
    let builder = disruptor::build_single_producer(capacity, || T::new(0), disruptor::BusySpin);
    let (mut poller, builder) = builder.new_event_poller();
    let mut producer = builder.build();
    pair(
        1,
        move |next, _| usize::from(producer.try_publish(|slot| *slot = T::new(next)).is_ok()),
        move |next, _, wrong| match poller.take(1) {
            Ok(mut items) => (&mut items).map(|item| *wrong |= item.differs(next)).count(),
            Err(_) => 0,
        },
    )
}

pub fn disruptor_in_place<T: Item>(capacity: usize, burst: usize) -> Pair {
    use disruptor::Producer;
    let builder = disruptor::build_single_producer(capacity, || T::new(0), disruptor::BusySpin);
    let (mut poller, builder) = builder.new_event_poller();
    let mut producer = builder.build();
    pair(
        burst,
        move |next: u64, wanted: usize| {
            let mut publish = |n| {
                producer.try_batch_publish(n, |slots| {
                    for (slot, number) in slots.zip(next..) {
                        *slot = T::new(number);
                    }
                })
            };
            match publish(wanted) {
                Ok(_) => wanted,
                Err(disruptor::MissingFreeSlots(missing)) => {
                    let n = wanted.saturating_sub(missing as usize);
                    if n > 0 && publish(n).is_ok() { n } else { 0 }
                }
            }
        },
        move |next, wanted, wrong| match poller.take(wanted as u64) {
            Ok(mut items) => {
                let mut number = next;
                for item in &mut items {
                    *wrong |= item.differs(number);
                    number += 1;
                }
                (number - next) as usize
            }
            Err(_) => 0,
        },
    )
}

pub fn array_queue<T: Item>(capacity: usize, _: usize) -> Pair {
    let producer = std::sync::Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
    let consumer = producer.clone();
    single::<T>(move |item| producer.push(item).is_ok(), move || consumer.pop())
}

pub fn crossbeam_channel<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = crossbeam_channel::bounded(capacity);
    single::<T>(move |item| sender.try_send(item).is_ok(), move || receiver.try_recv().ok())
}

pub fn crossbeam_channel_blocking<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = crossbeam_channel::bounded(capacity);
    single::<T>(move |item| sender.send(item).is_ok(), move || receiver.recv().ok())
}

pub fn kanal<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = kanal::bounded(capacity);
    single::<T>(
        move |item| sender.try_send(item) == Ok(true),
        move || receiver.try_recv().ok().flatten(),
    )
}

pub fn kanal_blocking<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = kanal::bounded(capacity);
    single::<T>(move |item| sender.send(item).is_ok(), move || receiver.recv().ok())
}

pub fn sync_channel<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = std::sync::mpsc::sync_channel(capacity);
    single::<T>(move |item| sender.try_send(item).is_ok(), move || receiver.try_recv().ok())
}

pub fn sync_channel_blocking<T: Item>(capacity: usize, _: usize) -> Pair {
    let (sender, receiver) = std::sync::mpsc::sync_channel(capacity);
    single::<T>(move |item| sender.send(item).is_ok(), move || receiver.recv().ok())
}
