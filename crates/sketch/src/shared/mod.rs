//! Shared forms: one structure that many threads update, as in the poster's "shared" designs.
//!
//! | structure | the poster's words | implementation |
//! |---|---|---|
//! | [`SharedCountMin`] | update a counter concurrently | an atomic addition a row |
//! | [`SharedReversible`] | update a set concurrently | an atomic "or", if the bit is not set yet |
//! | [`SharedHashTable`] | update a critical section concurrently | a lock a slot |
//!
//! They exist for measurements: with two threads an atomic counter is already slower than one thread alone
//! (docs/SKETCHES.md). Prefer separate sketches that are merged.
//!
//! Invariant: no weight is lost. `into_separate` returns the separate form once all threads have ended: for Count-Min
//! and the reversible sketch it equals that of a single owner bit for bit; for the hash table it has the same total,
//! but the keys depend on the order of arrival.

mod count_min;
mod hash_table;
mod reversible;

pub use count_min::SharedCountMin;
pub use hash_table::SharedHashTable;
pub use reversible::SharedReversible;

use crate::{face::Sketch, key::Item};

/// A sketch that many threads update.
pub trait SharedSketch: Sync {
    /// The form with a single owner.
    type Separate: Sketch;

    /// Adds a weight to a key's count.
    fn update(&self, key: &<Self::Separate as Sketch>::Key, weight: u64);

    /// Updates the sketch with a burst, in order.
    fn update_burst<I: Item<<Self::Separate as Sketch>::Key>>(&self, burst: &[I]) {
        for item in burst {
            self.update(item.key(), item.weight());
        }
    }

    /// Returns the form with a single owner.
    fn into_separate(self) -> Self::Separate;
}
