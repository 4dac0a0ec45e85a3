//! An open-addressing table of keys and counts with linear probing, which grows up to a limit.
//!
//! ```text
//!  hash, upper bits ─▶ home ─┐
//!  │ . │ . │ k,7 │ . │ . │ k,1 │ k,9 │ k,1 │ . │      a key is in the first slot from its
//!                            home      here           home on that has no other key
//! ```
//!
//! Invariants: a slot with count 0 is vacant. At most three quarters of the slots are used, so every search ends.

use crate::{
    hash::{Hash, Hasher},
    image::{self, ImageError, Reader, Writer},
    key::{Item, Key},
};

/// Initial number of slots.
const SLOTS_MIN: usize = 16;

/// Keys hashed, and their slots prefetched, before the first of them is counted.
const AHEAD: usize = 32;

/// A key and its count; 24 bytes for keys of 9 to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot<K> {
    pub(crate) key: K,
    pub(crate) count: u64,
}

impl<K: Key> Slot<K> {
    pub(crate) const VACANT: Self = Self { key: K::ZERO, count: 0 };

    pub(crate) fn write(&self, image: &mut Writer) {
        image.bytes(self.key.bytes());
        image.u64(self.count);
    }

    /// Reads a piece of the length of the key plus eight bytes.
    pub(crate) fn read(piece: &[u8]) -> Result<Self, ImageError> {
        let count = crate::hash::word(piece, K::BYTES);
        if count == 0 {
            return Err(ImageError::Impossible("a key that was never seen"));
        }
        Ok(Self { key: image::key(piece)?, count })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Table<K> {
    pub(crate) hasher: Hasher,
    slots: Vec<Slot<K>>,
    len: usize,
}

impl<K: Key> Table<K> {
    pub(crate) fn new(seed: u64) -> Self {
        Self { hasher: Hasher::new(seed), slots: vec![Slot::VACANT; SLOTS_MIN], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of keys that fit without growing.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.slots.len() / 4 * 3
    }

    /// The slot of a key, or the vacant slot where it would be inserted.
    #[inline(always)]
    pub(crate) fn seek(&mut self, key: &K, hash: Hash) -> &mut Slot<K> {
        let at = self.place(key, hash);
        &mut self.slots[at]
    }

    /// Inserts a key into the vacant slot that `seek` has found.
    #[inline(always)]
    pub(crate) fn grown(&mut self) {
        self.len += 1;
    }

    pub(crate) fn get(&self, key: &K) -> Option<u64> {
        let count = self.slots[self.place(key, self.hasher.hash(key))].count;
        (count > 0).then_some(count)
    }

    #[inline(always)]
    fn place(&self, key: &K, hash: Hash) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = &self.slots[at & mask];
            if slot.count == 0 || slot.key == *key {
                return at & mask;
            }
            at += 1;
        }
    }

    /// The upper bits, so that a table of twice the size keeps the order of keys.
    #[inline(always)]
    fn home(&self, hash: Hash) -> usize {
        (hash.x >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// Hashes a burst in groups, prefetches the slots of a group, then calls `count` with each item.
    #[inline(always)]
    pub(crate) fn each<I: Item<K>>(
        &mut self,
        burst: &[I],
        mut count: impl FnMut(&mut Self, &I, Hash),
    ) {
        for burst in burst.chunks(AHEAD) {
            let mut hashes = [Hash::default(); AHEAD];
            for (item, hash) in burst.iter().zip(&mut hashes) {
                *hash = self.hasher.hash(item.key());
                ringtap_base::prefetch(&self.slots[self.home(*hash)]);
            }
            for (item, hash) in burst.iter().zip(hashes) {
                count(self, item, hash);
            }
        }
    }

    /// Grows to the smallest size for this many keys.
    pub(crate) fn reserve(&mut self, keys: usize) {
        let slots = slots_for(keys);
        if slots > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![Slot::VACANT; slots]);
            for slot in old.into_iter().filter(|slot| slot.count > 0) {
                let hash = self.hasher.hash(&slot.key);
                *self.seek(&slot.key, hash) = slot;
            }
        }
    }

    /// The median of all counts and `one_more`; the lower one of two.
    ///
    /// Uses histograms, so that no counts are copied. The median is usually small, and then one pass is enough.
    pub(crate) fn median(&self, one_more: u64) -> u64 {
        // Vacant slots have the count 0; they are skipped by a higher rank.
        let rank = (self.slots.len() - self.len) + self.len / 2;
        // Two histograms, used alternately: frequent equal counts would delay each other in one.
        let mut histograms = [[0usize; 256]; 2];
        for pair in self.slots.chunks_exact(2) {
            for (slot, histogram) in pair.iter().zip(&mut histograms) {
                histogram[slot.count.min(255) as usize] += 1;
            }
        }
        histograms[0][one_more.min(255) as usize] += 1;
        let mut below = 0;
        for (count, (a, b)) in histograms[0].iter().zip(&histograms[1]).take(255).enumerate() {
            below += a + b;
            if rank < below {
                return count as u64;
            }
        }
        self.large_median(one_more, rank)
    }

    /// The count with a rank among all: first its number of bytes, then byte by byte.
    fn large_median(&self, one_more: u64, mut rank: usize) -> u64 {
        let counts = || self.slots.iter().map(|slot| slot.count).chain([one_more]);
        let length = |count: u64| (64 - count.leading_zeros()).div_ceil(8) as usize;
        let bytes = select(counts().map(length), &mut rank);
        let mut median = 0;
        for shift in (0..bytes as u32).rev().map(|byte| 8 * byte) {
            let alike = counts().filter(|&count| {
                length(count) == bytes && count.checked_shr(shift + 8).unwrap_or(0) == median
            });
            let digit = select(alike.map(|count| (count >> shift) as usize & 255), &mut rank);
            median = median << 8 | digit as u64;
        }
        median
    }

    /// Subtracts the weight from every key, and removes keys with no more than that.
    pub(crate) fn purge(&mut self, weight: u64) {
        // Starts at a vacant slot, so that each key is handled after the slots between its home and itself.
        let Some(start) = self.slots.iter().position(|slot| slot.count == 0) else { return };
        let mask = self.slots.len() - 1;
        // True if an entry was removed since the last vacant slot, so that later ones may move up.
        let mut gap = false;
        for at in start..start + self.slots.len() {
            let slot = &mut self.slots[at & mask];
            if slot.count == 0 {
                gap = false;
            } else if slot.count <= weight {
                *slot = Slot::VACANT;
                self.len -= 1;
                gap = true;
            } else if gap {
                let moved = std::mem::replace(slot, Slot::VACANT);
                let hash = self.hasher.hash(&moved.key);
                *self.seek(&moved.key, hash) = Slot { count: moved.count - weight, ..moved };
            } else {
                slot.count -= weight;
            }
        }
    }

    /// All keys with their counts, in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot<K>> {
        // Not in slot order: in hash order, keys would all be inserted at one end of a smaller table with the same
        // hash, and merging would take quadratic time.
        let (n, step) = (self.slots.len(), self.slots.len() / 8 * 5 + 1);
        let scattered = (0..n).map(move |i| self.slots[(i * step) & (n - 1)]);
        scattered.filter(|slot| slot.count > 0)
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(Slot::VACANT);
        self.len = 0;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<K>>()
    }

    /// Writes the keys in sorted order, so that equal tables give equal bytes.
    pub(crate) fn write(&self, image: &mut Writer) {
        let mut slots: Vec<Slot<K>> = self.iter().collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        image.u64(slots.len() as u64);
        for slot in slots {
            slot.write(image);
        }
    }

    /// Reads a table of at most `keys_max` keys, and the sum of its counts.
    pub(crate) fn read(image: &mut Reader<'_>, keys_max: usize) -> Result<(Self, u64), ImageError> {
        let n = image.count()?;
        let pieces = image.pieces(n, K::BYTES + 8)?;
        if n > keys_max {
            return Err(ImageError::Impossible("more keys than there is room for"));
        }
        let mut table = Self::new(image.seed);
        table.reserve(n);
        let mut sum = 0u64;
        for piece in pieces {
            let slot = Slot::read(piece)?;
            let hash = table.hasher.hash(&slot.key);
            let place = table.seek(&slot.key, hash);
            if place.count > 0 {
                return Err(ImageError::Impossible("a key twice"));
            }
            *place = slot;
            table.grown();
            sum = sum.saturating_add(slot.count);
        }
        Ok((table, sum))
    }
}

/// The digit at a rank among all; `rank` becomes its rank among equal ones.
fn select(digits: impl Iterator<Item = usize>, rank: &mut usize) -> usize {
    let mut histogram = [0usize; 256];
    digits.for_each(|digit| histogram[digit & 255] += 1);
    for (digit, &n) in histogram.iter().enumerate() {
        if *rank < n {
            return digit;
        }
        *rank -= n;
    }
    255
}

/// The number of slots for this many keys.
pub(crate) fn slots_for(keys: usize) -> usize {
    keys.div_ceil(3).saturating_mul(4).next_power_of_two().max(SLOTS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_median_is_that_of_sorting(
            mut counts in proptest::collection::vec(
                prop_oneof![1u64..9, 1u64..70_000, 1..=u64::MAX], 0..200),
            newcomer in 1..=u64::MAX,
        ) {
            let mut table = Table::<[u8; 8]>::new(1);
            for (i, &count) in counts.iter().enumerate() {
                table.reserve(i + 1);
                let key = (i as u64).to_le_bytes();
                let hash = table.hasher.hash(&key);
                *table.seek(&key, hash) = Slot { key, count };
                table.grown();
            }
            let median = table.median(newcomer);
            counts.push(newcomer);
            counts.sort_unstable();
            prop_assert_eq!(median, counts[(counts.len() - 1) / 2]);
        }

        #[test]
        fn purging_leaves_what_is_heavier_and_finds_it(
            counts in proptest::collection::vec(1u64..50, 0..400), weight in 0u64..50,
        ) {
            let mut table = Table::<[u8; 8]>::new(2);
            table.reserve(counts.len());
            for (i, &count) in counts.iter().enumerate() {
                let key = (i as u64).to_le_bytes();
                let hash = table.hasher.hash(&key);
                *table.seek(&key, hash) = Slot { key, count };
                table.grown();
            }
            table.purge(weight);
            for (i, &count) in counts.iter().enumerate() {
                let left = (count > weight).then(|| count - weight);
                prop_assert_eq!(table.get(&(i as u64).to_le_bytes()), left);
            }
            prop_assert_eq!(table.len(), counts.iter().filter(|&&count| count > weight).count());
        }
    }
}
