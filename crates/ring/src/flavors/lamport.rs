//! BasicRingBuffer, Lamport's ring: two shared indices only (figure 3).
//!
//! ```text
//! read │ write      adjacent, usually on one cache line: both threads write to it
//! ```
//!
//! This is the baseline for MCRingBuffer, so it equals the paper's: no cache-line protection, no
//! copy of the other side's index, no batches. The index is published after *every* item, also
//! within a burst and within a release: bursts here save calls, not synchronisation.
//!
//! Invariant: the slots from `read` up to `write` hold items. Indices run to twice the capacity,
//! which distinguishes full from empty, so no slot stays unused as it does in figure 3.

use super::flavor::{Flavor, Make, RawConsumer, RawProducer, Shape};
use crate::{
    slots::{Indexed, InvalidCapacity, Layout},
    sync::{Arc, AtomicUsize, Edge, Ordering::Relaxed, observe, publish},
};

pub struct Lamport;

/// The two shared control variables, side by side.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Adjacent {
    read: AtomicUsize,
    write: AtomicUsize,
}

impl Layout for Adjacent {
    #[inline(always)]
    fn read(&self) -> &AtomicUsize {
        &self.read
    }

    #[inline(always)]
    fn write(&self) -> &AtomicUsize {
        &self.write
    }
}

pub struct Producer<T>(Arc<Indexed<T, Adjacent>>);

pub struct Consumer<T>(Arc<Indexed<T, Adjacent>>);

impl<T: Send> Flavor<T> for Lamport {
    type Producer = Producer<T>;
    type Consumer = Consumer<T>;
}

impl<T: Send> Make<T> for Lamport {
    fn ring(Shape { capacity, .. }: Shape) -> Result<(Producer<T>, Consumer<T>), InvalidCapacity> {
        let shared = Indexed::new(capacity)?;
        Ok((Producer(Arc::clone(&shared)), Consumer(shared)))
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        let Indexed { index, slots } = &*self.0;
        let space = slots.space();
        let write = index.write.load(Relaxed);
        // Pairs with the publication in `Consumer::pop`.
        let read = observe(Edge::Slots, &index.read);
        if space.distance(read, write) == space.capacity {
            return Err(value);
        }
        // SAFETY: not full, so the slot at `write` is vacant, and was given back by the consumer
        // before the observed `read`; only this producer fills slots.
        unsafe { slots.write(space.slot(write), value) };
        // Pairs with the observations in `Consumer::pop` and `Consumer::peek`.
        publish(Edge::Items, &index.write, space.forward(write, 1));
        Ok(())
    }

    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        values.iter().take_while(|&&value| self.push(value).is_ok()).count()
    }

    fn free(&mut self, _wanted: usize) -> usize {
        let Indexed { index, slots } = &*self.0;
        // Relaxed for both: no slot is accessed, and `push` observes itself.
        let (read, write) = (index.read.load(Relaxed), index.write.load(Relaxed));
        slots.space().capacity - slots.space().distance(read, write)
    }

    fn flush(&mut self) {}
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        let Indexed { index, slots } = &*self.0;
        let space = slots.space();
        let read = index.read.load(Relaxed);
        // Pairs with the publication in `Producer::push`.
        if read == observe(Edge::Items, &index.write) {
            return None;
        }
        // SAFETY: not empty, so the slot at `read` holds an item, filled before the observed
        // `write`; only this consumer empties slots.
        let value = unsafe { slots.take(space.slot(read)) };
        // Pairs with the observation in `Producer::push`.
        publish(Edge::Slots, &index.read, space.forward(read, 1));
        Some(value)
    }

    fn peek(&mut self, max: usize) -> &[T] {
        let Indexed { index, slots } = &*self.0;
        let space = slots.space();
        let read = index.read.load(Relaxed);
        let contiguous = space.contiguous(read, max.min(space.capacity));
        // Each item is checked by a load of the shared `write`, as in figure 3: this is the
        // baseline. Pairs with the publication in `Producer::push`.
        let holds = |n: &usize| space.distance(read, observe(Edge::Items, &index.write)) > *n;
        let n = (0..contiguous).take_while(holds).count();
        // SAFETY: these slots hold items, and only this consumer, which is borrowed as long as the
        // slice, empties slots.
        unsafe { slots.items(space.slot(read), n) }
    }

    fn release(&mut self, n: usize) {
        for released in 0..n {
            // Taken out, published, then dropped: an item that panics has left the ring already.
            assert!(self.pop().is_some(), "release of {n} items, but the ring held {released}");
        }
    }

    fn flush(&mut self) {}
}
