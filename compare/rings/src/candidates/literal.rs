//! MCRingBuffer exactly as in the paper (figure 5), batch 50; the baseline of a claim.
//!
//! ```text
//! │ read, write │ localWrite, nextRead, rBatch │ localRead, nextWrite, wBatch │ max, batchSize, element │
//! ```
//!
//! One block of memory, a 64-byte line for each group, 32-bit indices, one slot left empty, no
//! flush. `volatile int` on x86 is a relaxed access that the compiler does not reorder; release and
//! acquire here compile to the same instructions. The number of items must be a multiple of the
//! batch, because an incomplete batch is never published.

use crate::{
    ends::{Pair, pair},
    item::Item,
};
use std::{
    cell::{Cell, UnsafeCell},
    mem::MaybeUninit,
    sync::{
        Arc,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Release},
        },
    },
};

const BATCH: u32 = 50;

#[derive(Default)]
#[repr(align(64))]
struct Shared {
    read: AtomicU32,
    write: AtomicU32,
}

#[derive(Default)]
#[repr(align(64))]
struct ConsumersOwn {
    local_write: Cell<u32>,
    next_read: Cell<u32>,
    r_batch: Cell<u32>,
}

#[derive(Default)]
#[repr(align(64))]
struct ProducersOwn {
    local_read: Cell<u32>,
    next_write: Cell<u32>,
    w_batch: Cell<u32>,
}

#[repr(align(64))]
struct Constants<T> {
    max: u32,
    batch_size: u32,
    element: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

#[repr(C)]
struct McRingBuffer<T> {
    shared: Shared,
    consumer: ConsumersOwn,
    producer: ProducersOwn,
    constants: Constants<T>,
}

// SAFETY: only the inserting thread accesses `producer` and only the extracting thread `consumer`.
// The ownership of a slot passes with the release store of `read` or `write` and the acquire load
// of it.
unsafe impl<T: Send> Sync for McRingBuffer<T> {}

impl<T: Copy> McRingBuffer<T> {
    fn next(&self, index: u32) -> u32 {
        if index + 1 == self.constants.max { 0 } else { index + 1 }
    }

    /// # Safety
    /// Only one thread may insert.
    #[inline(always)]
    unsafe fn insert(&self, element: T) -> bool {
        let (shared, own, constants) = (&self.shared, &self.producer, &self.constants);
        let after_next_write = self.next(own.next_write.get());
        if after_next_write == own.local_read.get() {
            let read = shared.read.load(Acquire);
            if after_next_write == read {
                return false;
            }
            own.local_read.set(read);
        }
        let slot = constants.element[own.next_write.get() as usize].get();
        // SAFETY: the slot is before `read`, so the consumer has released it.
        unsafe { (*slot).write(element) };
        own.next_write.set(after_next_write);
        own.w_batch.set(own.w_batch.get() + 1);
        if own.w_batch.get() >= constants.batch_size {
            shared.write.store(own.next_write.get(), Release);
            own.w_batch.set(0);
        }
        true
    }

    /// # Safety
    /// Only one thread may extract.
    #[inline(always)]
    unsafe fn extract(&self) -> Option<T> {
        let (shared, own, constants) = (&self.shared, &self.consumer, &self.constants);
        let next_read = own.next_read.get();
        if next_read == own.local_write.get() {
            let write = shared.write.load(Acquire);
            if next_read == write {
                return None;
            }
            own.local_write.set(write);
        }
        // SAFETY: the slot is before `write`, so it holds an element.
        let element = unsafe { (*constants.element[next_read as usize].get()).assume_init_read() };
        own.next_read.set(self.next(next_read));
        own.r_batch.set(own.r_batch.get() + 1);
        if own.r_batch.get() >= constants.batch_size {
            shared.read.store(own.next_read.get(), Release);
            own.r_batch.set(0);
        }
        Some(element)
    }
}

pub fn single<T: Item>(capacity: usize, burst: usize) -> Pair {
    let producer = Arc::new(McRingBuffer::<T> {
        shared: Shared::default(),
        consumer: ConsumersOwn::default(),
        producer: ProducersOwn::default(),
        constants: Constants {
            max: u32::try_from(capacity).expect("a small ring"),
            batch_size: BATCH,
            element: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        },
    });
    let consumer = Arc::clone(&producer);
    pair(
        burst,
        // SAFETY: only this closure inserts, and it is not shared.
        move |next, _| usize::from(unsafe { producer.insert(T::new(next)) }),
        // SAFETY: only this closure extracts, and it is not shared.
        move |next, _, wrong| match unsafe { consumer.extract() } {
            Some(item) => {
                *wrong |= item.differs(next);
                1
            }
            None => 0,
        },
    )
}
