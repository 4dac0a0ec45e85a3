//! Misra–Gries: the heaviest keys, with counts that are too low by at most a known amount.
//!
//! J. Misra, D. Gries, "Finding repeated elements", 1982; weights and purging by the median as in D. Anderson
//! et al., "A High-Performance Algorithm for Identifying Frequent Items in Data Streams", IMC 2017; merging as in
//! P. Agarwal et al., "Mergeable Summaries", PODS 2012, which also shows that SpaceSaving with one more counter is
//! equivalent: its counts are these plus the offset.
//!
//! ```text
//! full:   a 90 │ b 40 │ c 7 │ d 3 │ e 1        the median, 7, is subtracted from all
//!  after:  a 83 │ b 33 │  .  │  .  │  .         offset += 7
//! ```
//!
//! Invariants: count ≤ true ≤ count + offset for every key, stored or not, certain. Each purge takes the whole median
//! from at least half of the counters, so offset ≤ 2 × (total − Σ counts) / counters, also after merges.

use crate::{
    face::{Estimate, Heavy, HeavyKeys, InvalidSize, Mismatch, Sketch, heaviest},
    hash::Hash,
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
    table::{Slot, Table},
};

/// Counters of the heavy keys.
#[derive(Clone, Debug)]
pub struct MisraGries<K> {
    pub(crate) table: Table<K>,
    pub(crate) counters: usize,
    pub(crate) total: u64,
    /// The most that any key may have lost.
    pub(crate) offset: u64,
}

impl<K: Key> MisraGries<K> {
    /// Grows up to this many counters; 3/4 of a power of two uses memory best.
    pub fn new(counters: usize, seed: u64) -> Result<Self, InvalidSize> {
        if !(1..=1 << 31).contains(&counters) {
            return Err(InvalidSize::Entries(counters));
        }
        Ok(Self::of(Table::new(seed), counters, 0, 0))
    }

    /// The number of counters that keeps the error below `epsilon` × total.
    pub fn for_error(epsilon: f64, seed: u64) -> Result<Self, InvalidSize> {
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return Err(InvalidSize::Error);
        }
        Self::new((2.0 / epsilon).ceil() as usize, seed)
    }

    pub(crate) fn of(table: Table<K>, counters: usize, total: u64, offset: u64) -> Self {
        Self { table, counters, total, offset }
    }

    /// The largest difference of a stored key's count from its bounds, and the largest count of a key that is not
    /// stored.
    pub fn error(&self) -> u64 {
        self.offset
    }

    /// Number of stored keys.
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    fn of_count(&self, count: u64) -> Estimate {
        let upper = count.saturating_add(self.offset).min(self.total);
        // Heavy keys usually arrive early, so what they lost is the offset: the upper bound is the best estimate.
        Estimate::certain(count, upper, upper)
    }
}

#[inline(always)]
fn add<K: Key>(sketch: &mut Purging<'_, K>, key: &K, weight: u64, hash: Hash) {
    let len = sketch.table.len();
    let room = len < sketch.counters && len < sketch.table.room();
    let slot = sketch.table.seek(key, hash);
    if slot.count > 0 {
        slot.count = slot.count.saturating_add(weight);
    } else if weight > 0 {
        if room {
            *slot = Slot { key: *key, count: weight };
            sketch.table.grown();
        } else {
            sketch.make_room(key, weight, hash);
        }
    }
}

/// The state needed for counting besides the total.
struct Purging<'a, K> {
    table: &'a mut Table<K>,
    counters: usize,
    offset: &'a mut u64,
}

impl<K: Key> Purging<'_, K> {
    /// Handles a key that is not stored when there is no room.
    #[cold]
    fn make_room(&mut self, key: &K, weight: u64, hash: Hash) {
        let mut weight = weight;
        let len = self.table.len();
        if len == self.counters {
            weight = self.purge(weight);
        } else {
            self.table.reserve(len + 1);
        }
        if weight > 0 {
            *self.table.seek(key, hash) = Slot { key: *key, count: weight };
            self.table.grown();
        }
    }

    /// Subtracts the median from all counters and from the new weight; returns the rest of that weight.
    fn purge(&mut self, newcomer: u64) -> u64 {
        let median = self.table.median(newcomer);
        self.table.purge(median);
        *self.offset = self.offset.saturating_add(median);
        newcomer.saturating_sub(median)
    }
}

impl<K: Key> Sketch for MisraGries<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { table, counters, total, offset } = self;
        let counters = *counters;
        table.each(burst, |table, item, hash| {
            *total = total.saturating_add(item.weight());
            let mut sketch = Purging { table, counters, offset };
            add(&mut sketch, item.key(), item.weight(), hash);
        });
    }

    fn estimate(&self, key: &K) -> Estimate {
        match self.table.get(key) {
            Some(count) => self.of_count(count),
            None => Estimate::certain(0, 0, self.offset.min(self.total)),
        }
    }

    fn total(&self) -> u64 {
        self.total
    }

    /// Seeds may differ: keys are hashed again.
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.counters != other.counters {
            return Err(Mismatch::Parameters);
        }
        let Self { table, counters, total, offset } = self;
        table.reserve((table.len() + other.table.len()).min(*counters));
        for Slot { key, count } in other.table.iter() {
            let hash = table.hasher.hash(&key);
            let mut sketch = Purging { table, counters: *counters, offset };
            add(&mut sketch, &key, count, hash);
        }
        *offset = offset.saturating_add(other.offset);
        *total = total.saturating_add(other.total);
        Ok(())
    }

    fn clear(&mut self) {
        self.table.clear();
        (self.total, self.offset) = (0, 0);
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::MisraGries, self.table.hasher.seed());
        image.u64(self.counters as u64);
        image.u64(self.total);
        image.u64(self.offset);
        self.table.write(&mut image);
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::MisraGries)?;
        let counters = image.count()?;
        if !(1..=1 << 31).contains(&counters) {
            return Err(ImageError::Impossible("a number of counters"));
        }
        let [total, offset] = [image.u64()?, image.u64()?];
        let (table, sum) = Table::read(&mut image, counters)?;
        image.finish()?;
        if sum > total || offset > total {
            return Err(ImageError::Impossible("counts above the total"));
        }
        Ok(Self::of(table, counters, total, offset))
    }
}

impl<K: Key> HeavyKeys for MisraGries<K> {
    /// No key whose count reaches a threshold above [`MisraGries::error`] is missing.
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let all = self
            .table
            .iter()
            .map(|slot| Heavy { key: slot.key, estimate: self.of_count(slot.count) });
        heaviest(all, threshold, most)
    }
}
