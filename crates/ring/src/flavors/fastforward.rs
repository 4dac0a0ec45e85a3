//! FastForward: a flag in each slot says whether it is full; there is no shared index (figure 4).
//!
//! ```text
//! │ item, full │ item, full │ …      data and control travel in the same cache line
//! ```
//!
//! The paper's ring marks an empty slot by a null item, which restricts the items to pointers; here
//! the flag is beside the item, so that any type is allowed (and an item of 64 aligned bytes takes
//! 128). Items are therefore not contiguous: a peek shows one item at a time.
//!
//! Invariant: a full slot is the consumer's, an empty one the producer's. The full slots are those
//! from the consumer's `read` up to the producer's `write`, and neither is ever shared.

use alloc::boxed::Box;

use super::flavor::{Flavor, Make, RawConsumer, RawProducer, Shape};
use crate::{
    slots::{IndexSpace, InvalidCapacity, Slot, allocate},
    sync::{Arc, AtomicBool, Edge, Ordering::Relaxed, observe, publish},
};

pub struct FastForward;

pub(crate) struct Flagged<T> {
    item: Slot<T>,
    /// Set by the producer, cleared by the consumer.
    full: AtomicBool,
}

pub(crate) struct Shared<T>(Box<[Flagged<T>]>);

pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// Next slot to fill.
    write: usize,
    /// Number of slots from `write` on that were seen empty.
    seen_free: usize,
}

pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Next slot to empty.
    read: usize,
}

impl<T: Send> Flavor<T> for FastForward {
    type Producer = Producer<T>;
    type Consumer = Consumer<T>;
}

impl<T: Send> Make<T> for FastForward {
    fn ring(Shape { capacity, .. }: Shape) -> Result<(Producer<T>, Consumer<T>), InvalidCapacity> {
        let slots =
            allocate(capacity, || Flagged { item: Slot::new(), full: AtomicBool::new(false) })?;
        let shared = Arc::new(Shared(slots));
        let producer = Producer { shared: Arc::clone(&shared), write: 0, seen_free: 0 };
        Ok((producer, Consumer { shared, read: 0 }))
    }
}

impl<T> Shared<T> {
    /// NEXT of the paper.
    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.0.len() { 0 } else { slot + 1 }
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        let slot = &self.shared.0[self.write];
        // Pairs with the publication in `Consumer::pop`.
        if observe(Edge::Slots, &slot.full) {
            return Err(value);
        }
        // SAFETY: an empty slot is the producer's.
        unsafe { slot.item.write(value) };
        // Pairs with the observations in `Consumer::pop` and `Consumer::peek`.
        publish(Edge::Items, &slot.full, true);
        self.write = self.shared.next(self.write);
        self.seen_free = self.seen_free.saturating_sub(1);
        Ok(())
    }

    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        values.iter().take_while(|&&value| self.push(value).is_ok()).count()
    }

    fn free(&mut self, wanted: usize) -> usize {
        let slots = &self.shared.0;
        let space = IndexSpace { capacity: slots.len() };
        while self.seen_free < wanted.min(slots.len()) {
            // Relaxed: no slot is accessed, and `push` observes itself.
            let slot = space.slot(self.write + self.seen_free);
            if slots[slot].full.load(Relaxed) {
                break;
            }
            self.seen_free += 1;
        }
        self.seen_free
    }

    fn flush(&mut self) {}
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        let slot = &self.shared.0[self.read];
        // Pairs with the publication in `Producer::push`.
        if !observe(Edge::Items, &slot.full) {
            return None;
        }
        // SAFETY: a full slot is the consumer's and holds an item.
        let value = unsafe { slot.item.take() };
        // Pairs with the observation in `Producer::push`.
        publish(Edge::Slots, &slot.full, false);
        self.read = self.shared.next(self.read);
        Some(value)
    }

    fn peek(&mut self, max: usize) -> &[T] {
        let slot = &self.shared.0[self.read];
        // Pairs with the publication in `Producer::push`.
        if max == 0 || !observe(Edge::Items, &slot.full) {
            return &[];
        }
        // SAFETY: a full slot is the consumer's, which is borrowed as long as the slice.
        core::slice::from_ref(unsafe { slot.item.get() })
    }

    fn release(&mut self, n: usize) {
        for released in 0..n {
            // Taken out, published, then dropped: an item that panics has left the ring already.
            assert!(self.pop().is_some(), "release of {n} items, but the ring held {released}");
        }
    }

    fn flush(&mut self) {}
}

impl<T> Drop for Flagged<T> {
    fn drop(&mut self) {
        // Pairs with the publication in `Producer::push`.
        if observe(Edge::Items, &self.full) {
            // SAFETY: the handles are gone; a full slot holds an item.
            drop(unsafe { self.item.take() });
        }
    }
}
