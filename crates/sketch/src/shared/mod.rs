//! Shared forms: one structure that many threads update at once, as the poster's "shared" designs do.
//!
//! | structure | the poster's words | here |
//! |---|---|---|
//! | [`SharedCountMin`] | update a counter concurrently | an atomic addition a row |
//! | [`SharedReversible`] | update a set concurrently | an atomic "or", where the bit is not there yet |
//! | [`SharedHashTable`] | update a critical section concurrently | a lock a slot |
//!
//! They are here to be measured and to be chosen with open eyes: with two threads an atomic counter is already
//! slower than one thread alone (docs/SKETCHES.md). Separate sketches, merged, are the way to go.
//!
//! Invariant: nothing is lost. `into_separate` gives the separate form once all threads are done: for Count-Min and
//! the reversible sketch bit for bit the one that a single owner would have; for the hash table one with the same
//! total, since there the order of arrival decides.

mod count_min;
mod hash_table;
mod reversible;

pub use count_min::SharedCountMin;
pub use hash_table::SharedHashTable;
pub use reversible::SharedReversible;

use crate::{face::Sketch, key::Item};

/// Updated by many threads at once.
pub trait SharedSketch: Sync {
    /// What it is once it has a single owner again.
    type Separate: Sketch;

    fn update(&self, key: &<Self::Separate as Sketch>::Key, weight: u64);

    fn update_burst<I: Item<<Self::Separate as Sketch>::Key>>(&self, burst: &[I]) {
        for item in burst {
            self.update(item.key(), item.weight());
        }
    }

    fn into_separate(self) -> Self::Separate;
}
