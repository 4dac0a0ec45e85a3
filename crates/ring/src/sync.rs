//! Atomics and the memory orderings between the two threads; all other modules use these.
//!
//! Under `--cfg loom` the types are loom's, so that a model checker drives them; otherwise they are
//! the standard library's. All synchronisation is a [`publish`] (release) on one side that an
//! [`observe`] (acquire) on the other side pairs with; the pairs are listed in [`Edge`]. Everything
//! else is relaxed: a thread reads back what it alone writes.
//!
//! Under loom a test may weaken one edge to relaxed ([`weaken`]): loom must then report a race,
//! which proves that the edge is needed and that the checker detects it.

#[cfg(not(loom))]
pub(crate) use alloc::sync::Arc;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

// For parking.
#[cfg(loom)]
pub(crate) use loom::{
    sync::{Mutex, atomic::fence},
    thread::{Thread, current as current_thread},
};
#[cfg(all(not(loom), feature = "std"))]
pub(crate) use std::{
    sync::{Mutex, atomic::fence},
    thread::{Thread, current as current_thread, park_timeout as park},
};

/// Loom has no clock: a lost wake-up blocks for ever, and loom reports it.
#[cfg(loom)]
pub(crate) fn park(_: core::time::Duration) {
    loom::thread::park();
}

/// The pairs of release and acquire between the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(loom), allow(unreachable_pub))]
pub enum Edge {
    /// Producer → consumer: filled slots (`write`, or a slot's full flag).
    Items,
    /// Consumer → producer: emptied slots (`read`, or a slot's empty flag).
    Slots,
    /// Either → either: the lock of the lock ring.
    Lock,
    /// Producer → consumer: nothing follows; all items were published before.
    Close,
}

/// Group of variables with cache lines of its own. 128 bytes, because the adjacent-line prefetcher
/// of x86 fetches lines of 64 bytes in pairs (and because some ARM lines are that long).
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct CacheLine<V>(pub(crate) V);

/// The operands of [`publish`] and [`observe`].
pub(crate) trait Atomic {
    type Value;
    fn store_ordered(&self, value: Self::Value, order: Ordering);
    fn load_ordered(&self, order: Ordering) -> Self::Value;
}

macro_rules! atomic {
    ($($atomic:ty: $value:ty),*) => {$(
        impl Atomic for $atomic {
            type Value = $value;
            #[inline(always)]
            fn store_ordered(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            #[inline(always)]
            fn load_ordered(&self, order: Ordering) -> $value {
                self.load(order)
            }
        }
    )*};
}
atomic!(AtomicBool: bool, AtomicUsize: usize);

/// Release store. Pairs with the [`observe`] of the same variable and edge.
#[inline(always)]
pub(crate) fn publish<A: Atomic>(edge: Edge, variable: &A, value: A::Value) {
    variable.store_ordered(value, strength(edge, Ordering::Release));
}

/// Acquire load. Pairs with the [`publish`] of the same variable and edge.
#[inline(always)]
pub(crate) fn observe<A: Atomic>(edge: Edge, variable: &A) -> A::Value {
    variable.load_ordered(strength(edge, Ordering::Acquire))
}

#[cfg(not(loom))]
#[inline(always)]
const fn strength(_: Edge, order: Ordering) -> Ordering {
    order
}

#[cfg(loom)]
fn strength(edge: Edge, order: Ordering) -> Ordering {
    if WEAKENED.get() == Some((edge, order)) { Ordering::Relaxed } else { order }
}

#[cfg(loom)]
std::thread_local! {
    /// Loom runs all threads of a model on the one thread that called it.
    static WEAKENED: std::cell::Cell<Option<(Edge, Ordering)>> = const { std::cell::Cell::new(None) };
}

/// Makes the release (or the acquire) side of one edge relaxed in all models run by this thread.
#[cfg(loom)]
pub fn weaken(edge: Edge, order: Ordering) {
    WEAKENED.set(Some((edge, order)));
}

/// Spin lock by test-and-set.
#[derive(Debug)]
pub(crate) struct SpinLock(AtomicBool);

impl SpinLock {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Spins, and after some rounds yields: the holder may have lost its core.
    pub(crate) fn lock(&self) -> SpinGuard<'_> {
        let mut rounds = 0u32;
        // Acquire: pairs with the release store in `SpinGuard::drop`. A failed attempt writes
        // nothing.
        let acquire = strength(Edge::Lock, Ordering::Acquire);
        while self.0.compare_exchange_weak(false, true, acquire, Ordering::Relaxed).is_err() {
            rounds += 1;
            pause(rounds);
        }
        SpinGuard(self)
    }
}

/// Holds the lock until dropped.
pub(crate) struct SpinGuard<'a>(&'a SpinLock);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        // Pairs with the acquiring exchange in `SpinLock::lock`.
        publish(Edge::Lock, &self.0.0, false);
    }
}

#[cfg(not(loom))]
fn pause(_rounds: u32) {
    #[cfg(feature = "std")]
    if _rounds.is_multiple_of(64) {
        return std::thread::yield_now();
    }
    core::hint::spin_loop();
}

#[cfg(loom)]
fn pause(_: u32) {
    loom::thread::yield_now();
}
