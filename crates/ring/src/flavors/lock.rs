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

use super::flavor::{Flavor, Make, RawConsumer, RawProducer, Shape};
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
}

impl<T: Send> Make<T> for Lock {
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

    /// Frees the slots of the first `n` items, which were taken or dropped.
    fn free_slots(&self, n: usize) {
        let (_guard, head, len) = self.enter();
        self.head.store(self.slots.space().forward(head, n), Relaxed);
        self.len.store(len - n, Relaxed);
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.0;
        let space = shared.slots.space();
        let (_guard, head, len) = shared.enter();
        if len == space.capacity {
            return Err(value);
        }
        // SAFETY: len < capacity, so the slot after the last item is vacant; only this producer
        // fills slots.
        unsafe { shared.slots.write(space.slot(space.forward(head, len)), value) };
        shared.len.store(len + 1, Relaxed);
        Ok(())
    }

    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let shared = &*self.0;
        let space = shared.slots.space();
        let (_guard, head, len) = shared.enter();
        let n = values.len().min(space.capacity - len);
        let tail = space.forward(head, len);
        let contiguous = space.contiguous(tail, n);
        // SAFETY: the n slots after the last item are vacant, `contiguous` of them before the
        // wrap-around and the others from slot 0 on; only this producer fills slots.
        unsafe {
            shared.slots.copy_in(space.slot(tail), &values[..contiguous]);
            shared.slots.copy_in(0, &values[contiguous..n]);
        }
        shared.len.store(len + n, Relaxed);
        n
    }

    fn free(&mut self, _wanted: usize) -> usize {
        let (_guard, _, len) = self.0.enter();
        self.0.slots.space().capacity - len
    }

    fn flush(&mut self) {}
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        let shared = &*self.0;
        let space = shared.slots.space();
        let (_guard, head, len) = shared.enter();
        if len == 0 {
            return None;
        }
        // SAFETY: the slot at the front holds an item; only this consumer empties slots.
        let value = unsafe { shared.slots.take(space.slot(head)) };
        shared.head.store(space.forward(head, 1), Relaxed);
        shared.len.store(len - 1, Relaxed);
        Some(value)
    }

    fn peek(&mut self, max: usize) -> &[T] {
        let shared = &*self.0;
        let space = shared.slots.space();
        let (guard, head, len) = shared.enter();
        drop(guard);
        let n = space.contiguous(head, len.min(max));
        // SAFETY: these slots hold items, and only this consumer, which is borrowed as long as the
        // slice, empties slots.
        unsafe { shared.slots.items(space.slot(head), n) }
    }

    fn release(&mut self, n: usize) {
        let shared = &*self.0;
        let space = shared.slots.space();
        let (guard, head, len) = shared.enter();
        drop(guard);
        assert!(n <= len, "release of {n} items, but the ring holds {len}");
        // Frees the slots even if the drop of an item panics.
        let _free_on_drop = FreeOnDrop { shared, n };
        // SAFETY: these slots hold items, only this consumer empties slots, and `FreeOnDrop` counts
        // them as vacant afterwards.
        unsafe { shared.slots.drop_between(head, space.forward(head, n)) }
    }

    fn flush(&mut self) {}
}

struct FreeOnDrop<'a, T> {
    shared: &'a Shared<T>,
    n: usize,
}

impl<T> Drop for FreeOnDrop<'_, T> {
    fn drop(&mut self) {
        self.shared.free_slots(self.n);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (guard, head, len) = self.enter();
        drop(guard);
        // SAFETY: both handles are gone; these slots hold items.
        unsafe { self.slots.drop_between(head, self.slots.space().forward(head, len)) }
    }
}
