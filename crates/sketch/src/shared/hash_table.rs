//! The simple hash table with slots that many threads update: one critical section each.
//!
//! ```text
//!  slot │ lock │ key │ count │    a mutex of the standard library: 4 bytes, and one
//!                                 compare-and-swap by the only thread inside  
//! ```
//!
//! Key and count must change together, and a key is longer than any atomic. So a slot is a critical section. A thread
//! that finds it locked waits a few dozen nanoseconds: it contains a comparison and a store, and nothing that can
//! panic.
//!
//! Invariant: Σ counts + lost = total, as for the separate form. The stored keys depend on the order of the threads.

use super::SharedSketch;
use crate::{
    face::InvalidSize,
    hash::Hasher,
    hash_table::{Collision, HashTable, place},
    key::Key,
    table::Slot,
};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// A hash table for many threads.
pub struct SharedHashTable<K> {
    collision: Collision,
    hasher: Hasher,
    slots: Box<[Mutex<Slot<K>>]>,
    /// Relaxed: a sum, read when all threads have ended.
    lost: AtomicU64,
}

impl<K: Key> SharedHashTable<K> {
    /// Creates a table with any number of slots up to 2³¹.
    pub fn new(slots: usize, collision: Collision, seed: u64) -> Result<Self, InvalidSize> {
        if !(1..=1 << 31).contains(&slots) {
            return Err(InvalidSize::Entries(slots));
        }
        let slots = (0..slots).map(|_| Mutex::new(Slot::VACANT)).collect();
        Ok(Self { collision, hasher: Hasher::new(seed), slots, lost: AtomicU64::new(0) })
    }

    /// Bytes of memory, without the struct itself.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

impl<K: Key> SharedSketch for SharedHashTable<K> {
    type Separate = HashTable<K>;

    #[inline]
    fn update(&self, key: &K, weight: u64) {
        let at = place(self.hasher.hash(key), self.slots.len());
        // Nothing inside panics, so no lock is ever poisoned.
        let mut slot = self.slots[at].lock().unwrap_or_else(PoisonError::into_inner);
        let lost = self.collision.settle(&mut slot, key, weight);
        drop(slot);
        if lost > 0 {
            self.lost.fetch_add(lost, Relaxed);
        }
    }

    fn into_separate(self) -> HashTable<K> {
        let whole =
            |slot: Mutex<Slot<K>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        let slots: Vec<Slot<K>> = self.slots.into_iter().map(whole).collect();
        let lost = self.lost.into_inner();
        let total = slots.iter().fold(lost, |sum, slot| sum.saturating_add(slot.count));
        HashTable::of(slots, self.collision, self.hasher.seed(), total, lost)
    }
}
