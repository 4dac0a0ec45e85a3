//! MCRingBuffer as the paper prints it (figure 5), batch 50: the base of a claim.
//!
//! ```text
//! │ read, write │ localWrite, nextRead, rBatch │ localRead, nextWrite, wBatch │ max, batchSize, element │
//! ```
//!
//! One block of memory, a 64-byte line for each group, indices of 32 bits, one slot left empty, no
//! flush. `volatile int` on x86 is a relaxed access that the compiler keeps in order: release and
//! acquire here, the same instructions. Only for counts of items that the batch divides: what is
//! left over of a batch is never seen.

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

// SAFETY: `producer` is touched by the one thread that inserts and `consumer` by the one that
// extracts; a slot changes hands with the release of `read` or `write` and its acquire.
unsafe impl<T: Send> Sync for McRingBuffer<T> {}

impl<T: Copy> McRingBuffer<T> {
    fn next(&self, index: u32) -> u32 {
        if index + 1 == self.constants.max { 0 } else { index + 1 }
    }

    /// # Safety
    /// One thread inserts.
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
        // SAFETY: the slot lies before `read`, so the consumer is done with it.
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
    /// One thread extracts.
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
        // SAFETY: the slot lies before `write`, so it holds an element.
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
        // SAFETY: this closure is the only one that inserts, and it is not shared.
        move |next, _| usize::from(unsafe { producer.insert(T::new(next)) }),
        // SAFETY: this closure is the only one that extracts, and it is not shared.
        move |next, _, wrong| match unsafe { consumer.extract() } {
            Some(item) => {
                *wrong |= item.differs(next);
                1
            }
            None => 0,
        },
    )
}
