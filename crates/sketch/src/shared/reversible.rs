//! The poster's reversible sketch with counters and sets that many threads update.
//!
//! Invariant: bits of a set are never cleared, so a relaxed read of a set bit is final, and the costly `fetch_or` is
//! needed only for bits that are read as clear. Two threads may both set the same bit. Relaxed is enough, as for the
//! counters.

use super::{SharedCountMin, SharedSketch};
use crate::{
    grid::Shape,
    key::Key,
    reversible::{Reversible, SET_WORDS, bit},
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A reversible sketch for many threads.
pub struct SharedReversible<K> {
    counters: SharedCountMin<K>,
    sets: Box<[AtomicU64]>,
}

impl<K: Key> SharedReversible<K> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let words = shape.cells() * K::BYTES * SET_WORDS;
        let sets = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { counters: SharedCountMin::new(shape, seed), sets }
    }

    /// Bytes of memory, without the struct itself.
    pub fn memory_bytes(&self) -> usize {
        self.counters.memory_bytes() + size_of_val(&*self.sets)
    }
}

impl<K: Key> SharedSketch for SharedReversible<K> {
    type Separate = Reversible<K>;

    fn update(&self, key: &K, weight: u64) {
        if weight == 0 {
            return;
        }
        self.counters.add(key, weight, |entry| {
            for (at, &value) in key.bytes().iter().enumerate() {
                let (word, bit) = bit::<K>(entry, at, value);
                if self.sets[word].load(Relaxed) & bit == 0 {
                    self.sets[word].fetch_or(bit, Relaxed);
                }
            }
        });
    }

    fn into_separate(self) -> Reversible<K> {
        let sets = self.sets.into_iter().map(AtomicU64::into_inner).collect();
        Reversible::of(self.counters.into_grid(), sets)
    }
}
