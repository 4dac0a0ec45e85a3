//! The exact table: every key with its count, up to a number of keys; the weight of further keys is counted as missed.
//!
//! Invariants: Σ counts + missed = total. If nothing was missed every answer is exact, and the merged tables of parts
//! of a stream equal that of the stream bit for bit. Keys are never removed, so in an unmerged table a stored key's
//! count is exact even if others were missed.

use crate::{
    face::{Estimate, Heavy, HeavyKeys, InvalidSize, Mismatch, Sketch, heaviest},
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
    table::{Slot, Table},
};

/// A table of keys and counts.
#[derive(Clone, Debug)]
pub struct Exact<K> {
    table: Table<K>,
    keys_max: usize,
    total: u64,
    /// Weight of keys without room.
    missed: u64,
    /// The largest part of a stored key's weight that may be in `missed`. Only merging increases it.
    slack: u64,
}

impl<K: Key> Exact<K> {
    /// Creates a table that grows up to `keys_max` keys (at 24 bytes × 4/3 to 8/3 each for those of 9 to 16 bytes).
    pub fn new(keys_max: usize, seed: u64) -> Result<Self, InvalidSize> {
        if !(1..=1 << 31).contains(&keys_max) {
            return Err(InvalidSize::Entries(keys_max));
        }
        Ok(Self { table: Table::new(seed), keys_max, total: 0, missed: 0, slack: 0 })
    }

    /// As [`Exact::new`], with the memory for all keys allocated at once.
    pub fn reserved(keys_max: usize, seed: u64) -> Result<Self, InvalidSize> {
        let mut table = Self::new(keys_max, seed)?;
        table.table.reserve(keys_max);
        Ok(table)
    }

    /// Number of stored keys.
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    /// The weight of keys without room.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// All keys and counts, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        self.table.iter().map(|Slot { key, count }| (key, count))
    }

    fn of_count(&self, count: u64) -> Estimate {
        Estimate::certain(count, count, count.saturating_add(self.slack))
    }
}

/// Adds to a key's count, or to the missed weight if there is no room for it.
#[inline(always)]
fn add<K: Key>(
    table: &mut Table<K>,
    keys_max: usize,
    missed: &mut u64,
    key: &K,
    weight: u64,
    hash: crate::hash::Hash,
) {
    let slot = table.seek(key, hash);
    if slot.count > 0 {
        slot.count = slot.count.saturating_add(weight);
    } else if weight > 0 {
        enter(table, keys_max, missed, key, weight, hash);
    }
}

/// Inserts a new key. Separate from `add`, so that the common path is short.
fn enter<K: Key>(
    table: &mut Table<K>,
    keys_max: usize,
    missed: &mut u64,
    key: &K,
    weight: u64,
    hash: crate::hash::Hash,
) {
    let len = table.len();
    if len == keys_max {
        *missed = missed.saturating_add(weight);
        return;
    }
    if len == table.room() {
        table.reserve(len + 1);
    }
    *table.seek(key, hash) = Slot { key: *key, count: weight };
    table.grown();
}

impl<K: Key> Sketch for Exact<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { table, keys_max, total, missed, .. } = self;
        table.each(burst, |table, item, hash| {
            *total = total.saturating_add(item.weight());
            add(table, *keys_max, missed, item.key(), item.weight(), hash);
        });
    }

    fn estimate(&self, key: &K) -> Estimate {
        match self.table.get(key) {
            Some(count) => self.of_count(count),
            None => Estimate::certain(0, 0, self.missed),
        }
    }

    fn total(&self) -> u64 {
        self.total
    }

    /// Seeds may differ: keys are hashed again.
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.keys_max != other.keys_max {
            return Err(Mismatch::Parameters);
        }
        // A key of one side may be among the missed ones of the other.
        let slack = self
            .slack
            .saturating_add(other.slack)
            .max(self.slack.saturating_add(other.missed))
            .max(other.slack.saturating_add(self.missed));
        self.table.reserve((self.keys() + other.keys()).min(self.keys_max));
        let Self { table, keys_max, missed, .. } = self;
        for Slot { key, count } in other.table.iter() {
            let hash = table.hasher.hash(&key);
            add(table, *keys_max, missed, &key, count, hash);
        }
        self.missed = self.missed.saturating_add(other.missed);
        self.total = self.total.saturating_add(other.total);
        self.slack = slack;
        Ok(())
    }

    fn clear(&mut self) {
        self.table.clear();
        (self.total, self.missed, self.slack) = (0, 0, 0);
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::Exact, self.table.hasher.seed());
        image.u64(self.keys_max as u64);
        image.u64(self.total);
        image.u64(self.missed);
        image.u64(self.slack);
        self.table.write(&mut image);
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::Exact)?;
        let keys_max = image.count()?;
        if !(1..=1 << 31).contains(&keys_max) {
            return Err(ImageError::Impossible("a number of keys"));
        }
        let [total, missed, slack] = [image.u64()?, image.u64()?, image.u64()?];
        let (table, sum) = Table::read(&mut image, keys_max)?;
        image.finish()?;
        if sum.saturating_add(missed) != total || slack > missed {
            return Err(ImageError::Impossible("a total that is not the sum"));
        }
        Ok(Self { table, keys_max, total, missed, slack })
    }
}

impl<K: Key> HeavyKeys for Exact<K> {
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let all = self.table.iter();
        let all = all.map(|Slot { key, count }| Heavy { key, estimate: self.of_count(count) });
        heaviest(all, threshold, most)
    }
}
