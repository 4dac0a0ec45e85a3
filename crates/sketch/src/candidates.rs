//! Count-Min with candidates: conservative counters, and a list of the keys that seem heavy.
//!
//! ```text
//! key ─▶ counters ─▶ estimate ─▶ bucket of 4 candidates: a stored key gets the new estimate.
//!                                Larger than the smallest of the four? Replaces it.
//! ```
//!
//! Most keys are light: their estimate is below all four, and four integer comparisons reject them without reading
//! keys.
//!
//! Invariants: bounds are those of the counters. A key is listed only if it is among the four largest estimates of its
//! bucket, so a heavy key is missed only if four other heavy keys are in the same bucket.

use crate::{
    conservative::ConservativeCountMin,
    face::{Estimate, Heavy, HeavyKeys, InvalidSize, Mismatch, Sketch, heaviest},
    grid::{Grid, Shape},
    hash::Hasher,
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
    table::Slot,
};

type Bucket<K> = [Slot<K>; 4];

/// A Count-Min sketch that can list its heavy keys.
#[derive(Clone, Debug)]
pub struct CandidateCountMin<K> {
    counters: ConservativeCountMin<K, u64>,
    buckets: Vec<Bucket<K>>,
    hasher: Hasher,
}

impl<K: Key> CandidateCountMin<K> {
    /// Stores up to `candidates` keys, a power of two and at least 4; four times the number of heavy keys is enough.
    pub fn new(shape: Shape, candidates: usize, seed: u64) -> Result<Self, InvalidSize> {
        if !candidates.is_power_of_two() || !(4..=1 << 31).contains(&candidates) {
            return Err(InvalidSize::Entries(candidates));
        }
        Ok(Self::of(ConservativeCountMin::new(shape, seed), candidates / 4, seed))
    }

    fn of(counters: ConservativeCountMin<K, u64>, buckets: usize, seed: u64) -> Self {
        // Another seed, so that keys in the same bucket rarely share a counter.
        let hasher = Hasher::new(!seed);
        Self { counters, buckets: vec![[Slot::VACANT; 4]; buckets], hasher }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<K>> {
        self.buckets.iter().flatten().filter(|slot| slot.count > 0)
    }
}

#[inline(always)]
fn bucket_of<K: Key>(hasher: &Hasher, buckets: usize, key: &K) -> usize {
    // At most 2²⁹ buckets, so 32 bits of the hash are enough.
    ((hasher.hash(key).lane(0) * buckets as u64) >> 32) as usize
}

/// Adds or updates a key with its estimate in its bucket.
#[inline(always)]
fn offer<K: Key>(hasher: &Hasher, buckets: &mut [Bucket<K>], key: &K, estimate: u64) {
    let at = bucket_of(hasher, buckets.len(), key);
    let bucket = &mut buckets[at];
    let mut smallest = 0;
    for way in 1..4 {
        if bucket[way].count < bucket[smallest].count {
            smallest = way;
        }
    }
    // The estimate of a stored key has increased, so it is above the smallest, too.
    if estimate > bucket[smallest].count {
        let known = bucket.iter().position(|slot| slot.key == *key && slot.count > 0);
        bucket[known.unwrap_or(smallest)] = Slot { key: *key, count: estimate };
    }
}

impl<K: Key> Sketch for CandidateCountMin<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { counters, buckets, hasher } = self;
        counters.update_with(burst, |item, estimate| {
            if item.weight() > 0 {
                offer(hasher, buckets, item.key(), estimate);
            }
        });
    }

    fn estimate(&self, key: &K) -> Estimate {
        self.counters.estimate(key)
    }

    fn total(&self) -> u64 {
        self.counters.total()
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.buckets.len() != other.buckets.len() {
            return Err(Mismatch::Parameters);
        }
        self.counters.merge(&other.counters)?;
        let Self { counters, buckets, hasher } = self;
        // All candidates of both with their new estimates, in an order that does not depend on which sketch is merged
        // into which.
        for (own, other) in buckets.iter_mut().zip(&other.buckets) {
            let mut keys: Vec<K> = own
                .iter()
                .chain(other)
                .filter(|slot| slot.count > 0)
                .map(|slot| slot.key)
                .collect();
            keys.sort_unstable();
            keys.dedup();
            *own = [Slot::VACANT; 4];
            let mut slots: Vec<Slot<K>> = keys
                .into_iter()
                .map(|key| Slot { key, count: counters.estimate(&key).value })
                .collect();
            slots.sort_by_key(|slot| std::cmp::Reverse(slot.count));
            for (own, slot) in own.iter_mut().zip(slots) {
                *own = slot;
            }
        }
        debug_assert!(hasher.seed() == !counters.grid.hasher.seed());
        Ok(())
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.buckets.fill([Slot::VACANT; 4]);
    }

    fn memory_bytes(&self) -> usize {
        self.counters.memory_bytes() + self.buckets.len() * size_of::<Bucket<K>>()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::Candidates, self.counters.grid.hasher.seed());
        self.counters.grid.write(&mut image);
        image.u64(self.buckets.len() as u64);
        let mut slots: Vec<&Slot<K>> = self.slots().collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        image.u64(slots.len() as u64);
        for slot in slots {
            slot.write(&mut image);
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::Candidates)?;
        let counters = ConservativeCountMin::of(Grid::read(&mut image)?);
        let buckets = image.count()?;
        let candidates = image.count()?;
        // Vacant buckets have no bytes in the image, so their number is limited by the counters, which have.
        if !buckets.is_power_of_two() || buckets > counters.grid.cells.len().max(1 << 12) {
            return Err(ImageError::Impossible("a number of candidates"));
        }
        let mut sketch = Self::of(counters, buckets, image.seed);
        for piece in image.pieces(candidates, K::BYTES + 8)? {
            let slot = Slot::read(piece)?;
            let at = bucket_of(&sketch.hasher, buckets, &slot.key);
            let vacant = sketch.buckets[at].iter_mut().find(|slot| slot.count == 0);
            *vacant.ok_or(ImageError::Impossible("a crowded bucket"))? = slot;
        }
        image.finish()?;
        Ok(sketch)
    }
}

impl<K: Key> HeavyKeys for CandidateCountMin<K> {
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let heavy =
            self.slots().map(|&Slot { key, .. }| Heavy { key, estimate: self.estimate(&key) });
        heaviest(heavy, threshold, most)
    }
}
