//! LockRingBuffer: every call is a critical section of one spin lock (figure 2).
//!
//! ```text
//! lock │ head, len │ slots …      head: next slot to extract from; len: items from there on
//! ```
//!
//! A burst, a peek and a release take the lock once a call, not once an item. Peeked items are read
//! outside the lock: the producer writes vacant slots only.
//!
//! Invariant: `head` and `len` change under the lock only, so their accesses are relaxed. The slots
//! from `head` on, `len` of them, hold items; only the consumer makes them fewer, only the
//! producer makes them more.

use super::{Flavor, RawConsumer, RawProducer, Shape};
use crate::{
    slots::{InvalidCapacity, Slots},
    sync::{Arc, AtomicUsize, Ordering::Relaxed, SpinGuard, SpinLock},
};

pub struct Lock;

pub(crate) struct Shared<T> {
    lock: SpinLock,
    /// Index in `0..2 × capacity`, written by the consumer.
    head: AtomicUsize,
    /// 0 to capacity, written by both.
    len: AtomicUsize,
    slots: Slots<T>,
}

pub struct Producer<T>(Arc<Shared<T>>);

pub struct Consumer<T>(Arc<Shared<T>>);

impl<T: Send> Flavor<T> for Lock {
    type Producer = Producer<T>;
    type Consumer = Consumer<T>;

    fn ring(Shape { capacity, .. }: Shape) -> Result<(Producer<T>, Consumer<T>), InvalidCapacity> {
        let shared = Arc::new(Shared {
            lock: SpinLock::new(),
            head: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            slots: Slots::new(capacity)?,
        });
        Ok((Producer(Arc::clone(&shared)), Consumer(shared)))
    }
}

impl<T> Shared<T> {
    /// Takes the lock and reads what it guards: (guard, head, len).
    #[inline]
    fn enter(&self) -> (SpinGuard<'_>, usize, usize) {
        let guard = self.lock.lock();
        (guard, self.head.load(Relaxed), self.len.load(Relaxed))
    }

    /// Moves the front past `n` items, which were taken or dropped.
    fn give_back(&self, n: usize) {
        let (_guard, head, len) = self.enter();
        self.head.store(self.slots.wheel().forward(head, n), Relaxed);
        self.len.store(len - n, Relaxed);
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.0;
        let wheel = shared.slots.wheel();
        let (_guard, head, len) = shared.enter();
        if len == wheel.capacity {
            return Err(value);
        }
        // SAFETY: len < capacity, so the slot behind the last item is vacant; only this producer
        // fills slots.
        unsafe { shared.slots.write(wheel.slot(wheel.forward(head, len)), value) };
        shared.len.store(len + 1, Relaxed);
        Ok(())
    }

    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let shared = &*self.0;
        let wheel = shared.slots.wheel();
        let (_guard, head, len) = shared.enter();
        let n = values.len().min(wheel.capacity - len);
        let tail = wheel.forward(head, len);
        let straight = wheel.straight(tail, n);
        // SAFETY: the n slots behind the last item are vacant, `straight` of them before the
        // wrap-around and the others from slot 0 on; only this producer fills slots.
        unsafe {
            shared.slots.copy_in(wheel.slot(tail), &values[..straight]);
            shared.slots.copy_in(0, &values[straight..n]);
        }
        shared.len.store(len + n, Relaxed);
        n
    }

    fn free(&mut self, _wanted: usize) -> usize {
        let (_guard, _, len) = self.0.enter();
        self.0.slots.wheel().capacity - len
    }

    fn flush(&mut self) {}
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        let shared = &*self.0;
        let wheel = shared.slots.wheel();
        let (_guard, head, len) = shared.enter();
        if len == 0 {
            return None;
        }
        // SAFETY: the slot at the front holds an item; only this consumer empties slots.
        let value = unsafe { shared.slots.take(wheel.slot(head)) };
        shared.head.store(wheel.forward(head, 1), Relaxed);
        shared.len.store(len - 1, Relaxed);
        Some(value)
    }

    fn peek(&mut self, max: usize) -> &[T] {
        let shared = &*self.0;
        let wheel = shared.slots.wheel();
        let (guard, head, len) = shared.enter();
        drop(guard);
        let n = wheel.straight(head, len.min(max));
        // SAFETY: these slots hold items, and only this consumer, which is borrowed as long as the
        // slice, empties slots.
        unsafe { shared.slots.items(wheel.slot(head), n) }
    }

    fn release(&mut self, n: usize) {
        let shared = &*self.0;
        let wheel = shared.slots.wheel();
        let (guard, head, len) = shared.enter();
        drop(guard);
        assert!(n <= len, "release of {n} items, but the ring holds {len}");
        // The slots are given back even if an item panics when it is dropped.
        let _give_back = GiveBack { shared, n };
        // SAFETY: these slots hold items, only this consumer empties slots, and `GiveBack` counts
        // them as vacant afterwards.
        unsafe { shared.slots.drop_between(head, wheel.forward(head, n)) }
    }

    fn flush(&mut self) {}
}

struct GiveBack<'a, T> {
    shared: &'a Shared<T>,
    n: usize,
}

impl<T> Drop for GiveBack<'_, T> {
    fn drop(&mut self) {
        self.shared.give_back(self.n);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (guard, head, len) = self.enter();
        drop(guard);
        // SAFETY: both handles are gone; these slots hold items.
        unsafe { self.slots.drop_between(head, self.slots.wheel().forward(head, len)) }
    }
}
