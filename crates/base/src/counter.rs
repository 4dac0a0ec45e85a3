//! A counter with one writer and any number of readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts up. On a cache line of its own, so that readers disturb only the line they read.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Zero.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `n`. To be called by the counter's only writer: a load and a store, no bus lock.
    #[inline]
    pub fn add(&self, n: u64) {
        // Relaxed: the counter orders no other data.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The value as of a moment ago.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
