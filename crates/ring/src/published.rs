//! The rings of the MCRingBuffer paper as it prints them, without the changes of this crate's kinds: what comparisons
//! measure.
//!
//! ```text
//!  figure 2  LockRingBuffer   │ lock, read, write, max, element │
//!  figure 3  BasicRingBuffer  │ read, write, max, element │
//!  figure 4  FastForward      │ read, write, max, element │        element: pointers, 0 is NULL
//!  figure 5  MCRingBuffer     │ read, write │ localWrite, nextRead, rBatch │ localRead, nextWrite, wBatch
//!                             │ max, batchSize, element │
//! ```
//!
//! Each │ begins a cache line. Indices have 32 bits and wrap around at `max`; one slot stays empty, except in
//! FastForward. Nothing is published early: the last elements of MCRingBuffer stay invisible until their batch is full,
//! and with `batchSize` at `max` or above it stalls (models/mcring.pml). All variables are in memory of both threads, as
//! in C++. On x86, relaxed, acquire and release are plain moves, like `volatile int`.
//!
//! Invariant: only the producer's end inserts, only the consumer's extracts. A slot passes to the consumer with the
//! release store of `write` (in FastForward, of the element), and back with that of `read` (of NULL).

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use alloc::{boxed::Box, sync::Arc};

use crate::slots::{InvalidCapacity, Slots, allocate};
use crate::sync::SpinLock;

/// The two functions of each figure.
pub trait Ring: Send + Sync {
    /// What the slots hold.
    type Element: Copy + Send;

    /// Inserts an element; false if the ring is full.
    ///
    /// # Safety
    /// No two threads insert at the same time.
    unsafe fn insert(&self, element: Self::Element) -> bool;

    /// Extracts an element; `None` if the ring is empty.
    ///
    /// # Safety
    /// No two threads extract at the same time.
    unsafe fn extract(&self) -> Option<Self::Element>;
}

/// The end that inserts.
pub struct Producer<R>(Arc<R>);

/// The end that extracts.
pub struct Consumer<R>(Arc<R>);

/// The two ends of a ring.
pub fn ends<R: Ring>(ring: R) -> (Producer<R>, Consumer<R>) {
    let ring = Arc::new(ring);
    (Producer(Arc::clone(&ring)), Consumer(ring))
}

impl<R: Ring> Producer<R> {
    /// Inserts an element; false if the ring is full.
    #[inline(always)]
    pub fn insert(&mut self, element: R::Element) -> bool {
        // SAFETY: this is the only producer, and it is borrowed exclusively.
        unsafe { self.0.insert(element) }
    }
}

impl<R: Ring> Consumer<R> {
    /// Extracts an element; `None` if the ring is empty.
    #[inline(always)]
    pub fn extract(&mut self) -> Option<R::Element> {
        // SAFETY: this is the only consumer, and it is borrowed exclusively.
        unsafe { self.0.extract() }
    }
}

#[inline(always)]
fn next(index: u32, max: u32) -> u32 {
    if index + 1 == max { 0 } else { index + 1 }
}

/// Figure 2, with a spin lock as in section II-D.
#[repr(C, align(64))]
pub struct LockRingBuffer<T> {
    lock: SpinLock,
    read: AtomicU32,
    write: AtomicU32,
    max: u32,
    element: Slots<T>,
}

impl<T: Copy + Send> LockRingBuffer<T> {
    /// A ring of `max` slots.
    pub fn new(max: u32) -> Result<Self, InvalidCapacity> {
        let [read, write] = [const { AtomicU32::new(0) }; 2];
        Ok(Self { lock: SpinLock::new(), read, write, max, element: Slots::new(max as usize)? })
    }
}

impl<T: Copy + Send> Ring for LockRingBuffer<T> {
    type Element = T;

    #[inline(always)]
    unsafe fn insert(&self, element: T) -> bool {
        let _held = self.lock.lock();
        let write = self.write.load(Relaxed);
        let after = next(write, self.max);
        if after == self.read.load(Relaxed) {
            return false;
        }
        // SAFETY: `write` < `max`; the slot is vacant, and the lock is held.
        unsafe { self.element.write(write as usize, element) };
        self.write.store(after, Relaxed);
        true
    }

    #[inline(always)]
    unsafe fn extract(&self) -> Option<T> {
        let _held = self.lock.lock();
        let read = self.read.load(Relaxed);
        if read == self.write.load(Relaxed) {
            return None;
        }
        // SAFETY: `read` < `max`; the slot holds an element, and the lock is held.
        let element = unsafe { self.element.take(read as usize) };
        self.read.store(next(read, self.max), Relaxed);
        Some(element)
    }
}

/// Figure 3, Lamport's ring.
#[repr(C, align(64))]
pub struct BasicRingBuffer<T> {
    read: AtomicU32,
    write: AtomicU32,
    max: u32,
    element: Slots<T>,
}

impl<T: Copy + Send> BasicRingBuffer<T> {
    /// A ring of `max` slots.
    pub fn new(max: u32) -> Result<Self, InvalidCapacity> {
        let [read, write] = [const { AtomicU32::new(0) }; 2];
        Ok(Self { read, write, max, element: Slots::new(max as usize)? })
    }
}

impl<T: Copy + Send> Ring for BasicRingBuffer<T> {
    type Element = T;

    #[inline(always)]
    unsafe fn insert(&self, element: T) -> bool {
        let write = self.write.load(Relaxed);
        let after = next(write, self.max);
        // Pairs with the store of `read` in `extract`.
        if after == self.read.load(Acquire) {
            return false;
        }
        // SAFETY: `write` < `max`; the slot is not among those before `write`, so it is vacant.
        unsafe { self.element.write(write as usize, element) };
        // Pairs with the load of `write` in `extract`.
        self.write.store(after, Release);
        true
    }

    #[inline(always)]
    unsafe fn extract(&self) -> Option<T> {
        let read = self.read.load(Relaxed);
        // Pairs with the store of `write` in `insert`.
        if read == self.write.load(Acquire) {
            return None;
        }
        // SAFETY: `read` < `max`; the slot is before `write`, so it holds an element.
        let element = unsafe { self.element.take(read as usize) };
        // Pairs with the load of `read` in `insert`.
        self.read.store(next(read, self.max), Release);
        Some(element)
    }
}

/// Figure 4, for pointers: an element is one word and not 0.
#[repr(C, align(64))]
pub struct FastForward {
    read: AtomicU32,
    write: AtomicU32,
    max: u32,
    element: Box<[AtomicU64]>,
}

/// An empty slot.
const NULL: u64 = 0;

impl FastForward {
    /// A ring of `max` slots.
    pub fn new(max: u32) -> Result<Self, InvalidCapacity> {
        let [read, write] = [const { AtomicU32::new(0) }; 2];
        let element = allocate(max as usize, || AtomicU64::new(NULL))?;
        Ok(Self { read, write, max, element })
    }
}

impl Ring for FastForward {
    type Element = u64;

    #[inline(always)]
    unsafe fn insert(&self, element: u64) -> bool {
        let write = self.write.load(Relaxed);
        let slot = &self.element[write as usize];
        // Pairs with the store of NULL in `extract`.
        if slot.load(Acquire) != NULL {
            return false;
        }
        // Pairs with the load in `extract`.
        slot.store(element, Release);
        self.write.store(next(write, self.max), Relaxed);
        true
    }

    #[inline(always)]
    unsafe fn extract(&self) -> Option<u64> {
        let read = self.read.load(Relaxed);
        let slot = &self.element[read as usize];
        // Pairs with the store of an element in `insert`.
        let element = slot.load(Acquire);
        if element == NULL {
            return None;
        }
        // Pairs with the load in `insert`.
        slot.store(NULL, Release);
        self.read.store(next(read, self.max), Relaxed);
        Some(element)
    }
}

#[derive(Default)]
#[repr(C, align(64))]
struct Shared {
    read: AtomicU32,
    write: AtomicU32,
}

/// Variables of one end: its copy of the other's index, its own index, and how far that is ahead of the published one.
#[derive(Default)]
#[repr(C, align(64))]
struct Local {
    other: AtomicU32,
    next: AtomicU32,
    batch: AtomicU32,
}

#[repr(C, align(64))]
struct Constants<T> {
    max: u32,
    batch_size: u32,
    element: Slots<T>,
}

/// Figure 5.
#[repr(C)]
pub struct McRingBuffer<T> {
    shared: Shared,
    consumer: Local,
    producer: Local,
    constants: Constants<T>,
}

impl<T: Copy + Send> McRingBuffer<T> {
    /// A ring of `max` slots that publishes an index once in `batch_size` elements.
    pub fn new(max: u32, batch_size: u32) -> Result<Self, InvalidCapacity> {
        Ok(Self {
            shared: Shared::default(),
            consumer: Local::default(),
            producer: Local::default(),
            constants: Constants { max, batch_size, element: Slots::new(max as usize)? },
        })
    }

    /// Counts an element, and publishes `next` when the batch is full.
    #[inline(always)]
    fn advance(&self, local: &Local, next: u32, published: &AtomicU32) {
        local.next.store(next, Relaxed);
        let batch = local.batch.load(Relaxed) + 1;
        local.batch.store(batch, Relaxed);
        if batch >= self.constants.batch_size {
            // Pairs with the load of `read` in `insert`, or of `write` in `extract`.
            published.store(next, Release);
            local.batch.store(0, Relaxed);
        }
    }
}

impl<T: Copy + Send> Ring for McRingBuffer<T> {
    type Element = T;

    #[inline(always)]
    unsafe fn insert(&self, element: T) -> bool {
        let (shared, local, constants) = (&self.shared, &self.producer, &self.constants);
        let write = local.next.load(Relaxed);
        let after = next(write, constants.max);
        if after == local.other.load(Relaxed) {
            // Pairs with the store in `advance`, by the consumer.
            let read = shared.read.load(Acquire);
            if after == read {
                return false;
            }
            local.other.store(read, Relaxed);
        }
        // SAFETY: `write` < `max`; the slot is behind `read`, so the consumer has released it.
        unsafe { constants.element.write(write as usize, element) };
        self.advance(local, after, &shared.write);
        true
    }

    #[inline(always)]
    unsafe fn extract(&self) -> Option<T> {
        let (shared, local, constants) = (&self.shared, &self.consumer, &self.constants);
        let read = local.next.load(Relaxed);
        if read == local.other.load(Relaxed) {
            // Pairs with the store in `advance`, by the producer.
            let write = shared.write.load(Acquire);
            if read == write {
                return None;
            }
            local.other.store(write, Relaxed);
        }
        // SAFETY: `read` < `max`; the slot is before `write`, so it holds an element.
        let element = unsafe { constants.element.take(read as usize) };
        self.advance(local, next(read, constants.max), &shared.read);
        Some(element)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]
mod tests {
    use super::*;

    fn transfers_in_order<R: Ring<Element = u64> + 'static>(ring: R) {
        let (mut producer, mut consumer) = ends(ring);
        let sends = std::thread::spawn(move || {
            for number in 1..=3_000 {
                while !producer.insert(number) {
                    std::thread::yield_now();
                }
            }
        });
        for number in 1..=3_000 {
            let element = loop {
                match consumer.extract() {
                    Some(element) => break element,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(element, number);
        }
        assert_eq!(consumer.extract(), None);
        sends.join().unwrap();
    }

    #[test]
    fn elements_arrive_once_and_in_order() {
        transfers_in_order(LockRingBuffer::new(7).unwrap());
        transfers_in_order(BasicRingBuffer::new(7).unwrap());
        transfers_in_order(FastForward::new(7).unwrap());
        transfers_in_order(McRingBuffer::new(7, 1).unwrap());
        transfers_in_order(McRingBuffer::new(7, 6).unwrap());
    }

    #[test]
    fn one_slot_stays_empty_except_in_fastforward() {
        fn room<R: Ring<Element = u64>>(ring: R) -> usize {
            let (mut producer, _consumer) = ends(ring);
            (1..).take_while(|&number| producer.insert(number)).count()
        }
        assert_eq!(room(LockRingBuffer::new(5).unwrap()), 4);
        assert_eq!(room(BasicRingBuffer::new(5).unwrap()), 4);
        assert_eq!(room(McRingBuffer::new(5, 2).unwrap()), 4);
        assert_eq!(room(FastForward::new(5).unwrap()), 5);
    }

    #[test]
    fn a_batch_that_does_not_fit_stalls() {
        for (batch, stalls) in [(4, false), (5, true)] {
            let (mut producer, mut consumer) = ends(McRingBuffer::new(5, batch).unwrap());
            assert_eq!((1..=5).filter(|&number| producer.insert(number)).count(), 4);
            assert_eq!(consumer.extract().is_none(), stalls, "batch {batch}");
        }
    }
}
