//! MCRingBuffer: cached copies of the indices and batched publication (figures 5 and 7).
//!
//! ```text
//!  shared   │ read  │                written by the consumer, once a batch
//!           │ write │                written by the producer, once a batch
//!  consumer │ localWrite, nextRead, rBatch │
//!  producer │ localRead, nextWrite, wBatch │      each group on cache lines of its own
//!  constant │ max, batchSize, element      │
//! ```
//!
//! *Cache-line protection*: a thread reads the other's index only when its own copy indicates that
//! the ring might be full (or empty). *Batch updates*: a thread publishes its index only when
//! `batchSize` slots have accumulated, on [`RawProducer::flush`], or when it finds the ring full
//! (or empty), so that neither side waits for slots that the other has not published.
//!
//! Differences from the paper: no sequential consistency (release and acquire are enough), no
//! unused slot (indices run to twice the capacity), `read` and `write` not on the same line. The
//! constants are copied into both handles.
//!
//! Invariant (theorem 1), for indices without wrap-around: localRead ≤ read ≤ nextRead ≤
//! localWrite ≤ write ≤ nextWrite ≤ localRead + max. Hence slots from nextRead up to localWrite
//! belong to the consumer and hold items, and those from nextWrite up to localRead + max belong to
//! the producer and are vacant.

use super::flavor::{Flavor, Make, RawConsumer, RawProducer, Shape};
use crate::{
    slots::{IndexSpace, Indexed, InvalidCapacity, Layout},
    sync::{Arc, AtomicUsize, CacheLine, Edge, observe, publish},
};

pub struct McRing;

/// The shared control variables, each on cache lines of its own.
#[derive(Default)]
pub(crate) struct SeparateLines {
    read: CacheLine<AtomicUsize>,
    write: CacheLine<AtomicUsize>,
}

impl Layout for SeparateLines {
    #[inline(always)]
    fn read(&self) -> &AtomicUsize {
        &self.read.0
    }

    #[inline(always)]
    fn write(&self) -> &AtomicUsize {
        &self.write.0
    }
}

/// The producer's local variables; aligned so that nothing else shares their lines.
#[repr(align(128))]
pub struct Producer<T> {
    shared: Arc<Indexed<T, SeparateLines>>,
    /// The last `read` seen.
    local_read: usize,
    /// Next slot to fill; ahead of the published `write` by `w_batch`.
    next_write: usize,
    /// Items not yet published, less than `batch` between calls.
    w_batch: usize,
    /// Items pending at which the index is published.
    batch: usize,
}

/// The consumer's local variables; aligned so that nothing else shares their lines.
#[repr(align(128))]
pub struct Consumer<T> {
    shared: Arc<Indexed<T, SeparateLines>>,
    /// The last `write` seen.
    local_write: usize,
    /// Next slot to empty; ahead of the published `read` by `r_batch`.
    next_read: usize,
    /// Slots not yet freed, less than `batch` between calls.
    r_batch: usize,
    /// Slots pending at which the index is published.
    batch: usize,
}

impl<T: Send> Flavor<T> for McRing {
    type Producer = Producer<T>;
    type Consumer = Consumer<T>;
}

impl<T: Send> Make<T> for McRing {
    fn ring(
        Shape { capacity, batch, .. }: Shape,
    ) -> Result<(Producer<T>, Consumer<T>), InvalidCapacity> {
        let shared = Indexed::new(capacity)?;
        let producer = Producer {
            shared: Arc::clone(&shared),
            local_read: 0,
            next_write: 0,
            w_batch: 0,
            batch,
        };
        Ok((producer, Consumer { shared, local_write: 0, next_read: 0, r_batch: 0, batch }))
    }
}

impl<T> Producer<T> {
    /// Slots known to be vacant; reads `read` if they are fewer than `wanted`.
    #[inline(always)]
    fn vacant(&mut self, wanted: usize) -> usize {
        let space = self.shared.slots.space();
        let known = space.capacity - space.distance(self.local_read, self.next_write);
        if known >= wanted {
            return known;
        }
        // Pairs with the publication in `Consumer::publish_read`.
        self.local_read = observe(Edge::Slots, self.shared.index.read());
        space.capacity - space.distance(self.local_read, self.next_write)
    }

    /// Counts `n` slots as filled, without publishing them.
    #[inline(always)]
    fn advance(&mut self, space: IndexSpace, n: usize) {
        self.next_write = space.forward(self.next_write, n);
        self.w_batch += n;
    }

    /// Publishes if a batch is complete.
    #[inline(always)]
    fn publish_batch(&mut self) {
        if self.w_batch >= self.batch {
            self.publish_write();
        }
    }

    #[inline(always)]
    fn publish_write(&mut self) {
        // Pairs with the observation in `Consumer::available`.
        publish(Edge::Items, self.shared.index.write(), self.next_write);
        self.w_batch = 0;
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        if self.vacant(1) == 0 {
            self.flush();
            return Err(value);
        }
        let space = self.shared.slots.space();
        // SAFETY: the slot at nextWrite is vacant, as `vacant` found.
        unsafe { self.shared.slots.write(space.slot(self.next_write), value) };
        self.advance(space, 1);
        self.publish_batch();
        Ok(())
    }

    #[inline]
    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        let n = self.vacant(values.len()).min(values.len());
        let slots = &self.shared.slots;
        let space = slots.space();
        let contiguous = space.contiguous(self.next_write, n);
        // SAFETY: the n slots from nextWrite on are vacant, `contiguous` of them before the
        // wrap-around and the others from slot 0 on.
        unsafe {
            slots.copy_in(space.slot(self.next_write), &values[..contiguous]);
            slots.copy_in(0, &values[contiguous..n]);
        }
        self.advance(space, n);
        if n < values.len() {
            self.flush()
        } else {
            self.publish_batch()
        }
        n
    }

    fn free(&mut self, wanted: usize) -> usize {
        let free = self.vacant(wanted);
        if free == 0 {
            self.flush();
        }
        free
    }

    #[inline]
    fn fill(&mut self, max: usize, mut make: impl FnMut(usize) -> T) -> usize {
        let n = self.vacant(max).min(max);
        let mut made = 0;
        while made < n {
            let space = self.shared.slots.space();
            let first = space.slot(self.next_write);
            let contiguous = space.contiguous(self.next_write, n - made);
            // Counts on drop, also after a panic in `make`: the items made before it stay in the ring.
            let mut filled = Filled { producer: self, n: 0 };
            let slots = &filled.producer.shared.slots;
            // SAFETY: the n slots from nextWrite on are vacant; these are before the wrap-around.
            unsafe { slots.fill(first, contiguous, &mut filled.n, |i| make(made + i)) };
            drop(filled);
            made += contiguous;
        }
        if n < max {
            self.flush()
        } else {
            self.publish_batch()
        }
        n
    }

    #[inline]
    fn flush(&mut self) {
        if self.w_batch > 0 {
            self.publish_write();
        }
    }
}

/// Counts the slots that were filled, however the filling ended.
struct Filled<'a, T> {
    producer: &'a mut Producer<T>,
    n: usize,
}

impl<T> Drop for Filled<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.producer.advance(self.producer.shared.slots.space(), self.n);
    }
}

impl<T> Consumer<T> {
    /// Items known to be published; reads `write` if there are none, and if there are still none,
    /// publishes the freed slots.
    #[inline(always)]
    fn available(&mut self) -> usize {
        if self.next_read == self.local_write {
            // Pairs with the publication in `Producer::publish_write`.
            self.local_write = observe(Edge::Items, self.shared.index.write());
            if self.next_read == self.local_write {
                self.publish_freed();
                return 0;
            }
        }
        self.known()
    }

    /// Items from nextRead up to localWrite.
    #[inline(always)]
    fn known(&self) -> usize {
        self.shared.slots.space().distance(self.next_read, self.local_write)
    }

    /// Publishes if a batch is complete.
    #[inline(always)]
    fn publish_batch(&mut self) {
        if self.r_batch >= self.batch {
            self.publish_read();
        }
    }

    #[inline(always)]
    fn publish_freed(&mut self) {
        if self.r_batch > 0 {
            self.publish_read();
        }
    }

    #[inline(always)]
    fn publish_read(&mut self) {
        // Pairs with the observation in `Producer::vacant`.
        publish(Edge::Slots, self.shared.index.read(), self.next_read);
        self.r_batch = 0;
    }
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        if self.available() == 0 {
            return None;
        }
        let space = self.shared.slots.space();
        // SAFETY: the slot at nextRead holds an item, as `available` found.
        let value = unsafe { self.shared.slots.take(space.slot(self.next_read)) };
        self.next_read = space.forward(self.next_read, 1);
        self.r_batch += 1;
        self.publish_batch();
        Some(value)
    }

    #[inline]
    fn peek(&mut self, max: usize) -> &[T] {
        let n = self.available().min(max);
        let slots = &self.shared.slots;
        let space = slots.space();
        // SAFETY: these slots hold items, as `available` found, and are the consumer's, which is
        // borrowed as long as the slice.
        unsafe { slots.items(space.slot(self.next_read), space.contiguous(self.next_read, n)) }
    }

    #[inline]
    fn release(&mut self, n: usize) {
        let known = self.known();
        assert!(n <= known, "release of {n} items, but {known} are known");
        let first = self.next_read;
        // Counted before the drops, so an item whose drop panics is not dropped again. The slots are
        // published after the drops.
        self.next_read = self.shared.slots.space().forward(first, n);
        self.r_batch += n;
        // SAFETY: these slots hold items, are the consumer's, and are counted as vacant.
        unsafe { self.shared.slots.drop_between(first, self.next_read) };
        self.publish_batch();
    }

    #[inline]
    fn flush(&mut self) {
        self.publish_freed();
    }
}
