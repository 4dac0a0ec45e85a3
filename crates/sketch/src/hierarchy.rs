//! Hierarchical heavy hitters: finds heavy prefixes, also those without a heavy key.
//!
//! The "full ancestry" of G. Cormode, F. Korn, S. Muthukrishnan, D. Srivastava, "Finding Hierarchical Heavy Hitters in
//! Data Streams", VLDB 2003, with a fixed number of keys a level: a full level moves its lighter half up.
//!
//! ```text
//! level 2   /16   │ 10.0    1 │                          ▲ a key moves up as its prefix, with its whole count
//!  level 1   /24   │ 10.0.1  4 │ 10.0.9  7 │              │
//! level 0  hosts  │ 10.0.1.7 90 │ 10.0.3.1 2 │ …          │ each update changes one key here, for any number of levels
//! ```
//!
//! Invariants: all counts of all levels and [`Hierarchy::lost`] add up to the total. The count of a prefix is at least
//! the sum of the counts stored below it, and at most that plus the counts of the prefixes above it; certain, also
//! after merges.

use std::collections::BTreeMap;

use crate::{
    face::{InvalidSize, Mismatch},
    hash::Hash,
    key::{Item, Key},
    table::{Slot, Table},
};

/// A key's prefix on the next level.
pub type Parent<K> = fn(&K) -> K;

/// Counts of keys and of their prefixes.
#[derive(Clone, Debug)]
pub struct Hierarchy<K: 'static> {
    /// The functions from each level to the next.
    parents: &'static [Parent<K>],
    levels: Vec<Table<K>>,
    /// Keys of a level.
    keys: usize,
    total: u64,
    lost: u64,
}

/// A heavy prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyPrefix<K> {
    /// 0 for keys.
    pub level: usize,
    /// The prefix.
    pub key: K,
    /// The count below it is at least this.
    pub lower: u64,
    /// The count below it is at most this.
    pub upper: u64,
    /// The part of `lower` that is not below a longer heavy prefix.
    pub beyond: u64,
}

impl<K: Key> Hierarchy<K> {
    /// Creates a hierarchy with `keys` keys a level, at least two; there is one more level than parents.
    pub fn new(keys: usize, parents: &'static [Parent<K>], seed: u64) -> Result<Self, InvalidSize> {
        if !(2..=1 << 31).contains(&keys) {
            return Err(InvalidSize::Entries(keys));
        }
        let levels = (0..=parents.len()).map(|_| Table::new(seed)).collect();
        Ok(Self { parents, levels, keys, total: 0, lost: 0 })
    }

    /// Counts a burst of keys.
    pub fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { parents, levels, keys, total, lost } = self;
        let Some((keep, above)) = levels.split_first_mut() else { return };
        keep.each(burst, |table, item, hash| {
            *total = total.saturating_add(item.weight());
            let mut tree = Tree { parents, above, keys: *keys, lost };
            tree.add(table, item.key(), item.weight(), hash);
        });
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The count of prefixes for which the last level had no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bounds of the count of a prefix on a level.
    pub fn bounds(&self, level: usize, prefix: &K) -> (u64, u64) {
        let mut lower = 0u64;
        for (from, table) in self.levels.iter().enumerate().take(level + 1) {
            let below = |key: &K| {
                self.parents[from..level].iter().fold(*key, |key, up| up(&key)) == *prefix
            };
            lower = table
                .iter()
                .filter(|slot| below(&slot.key))
                .fold(lower, |sum, slot| sum.saturating_add(slot.count));
        }
        (lower, lower.saturating_add(self.doubtful(level, prefix)).min(self.total))
    }

    /// The counts of all prefixes above one; it is unknown to which longer prefixes they belong.
    fn doubtful(&self, level: usize, prefix: &K) -> u64 {
        let mut key = *prefix;
        let mut sum = self.lost;
        for (up, table) in self.parents.iter().zip(&self.levels[1..]).skip(level) {
            key = up(&key);
            sum = sum.saturating_add(table.get(&key).unwrap_or(0));
        }
        sum
    }

    /// The prefixes with at least the threshold below them, not counting longer prefixes of this list; the heaviest
    /// first.
    pub fn heavy(&self, threshold: u64) -> Vec<HeavyPrefix<K>> {
        let mut heavy = Vec::new();
        // For each prefix of a level: the count below it, and the part that is not below a heavy prefix.
        let mut sums: BTreeMap<K, (u64, u64)> = BTreeMap::new();
        for (level, table) in self.levels.iter().enumerate() {
            for Slot { key, count } in table.iter() {
                let (sum, beyond) = sums.entry(key).or_default();
                *sum = sum.saturating_add(count);
                *beyond = beyond.saturating_add(count);
            }
            let mut above: BTreeMap<K, (u64, u64)> = BTreeMap::new();
            for (key, (lower, mut beyond)) in sums {
                if beyond >= threshold {
                    let upper = lower.saturating_add(self.doubtful(level, &key)).min(self.total);
                    heavy.push(HeavyPrefix { level, key, lower, upper, beyond });
                    beyond = 0;
                }
                if let Some(up) = self.parents.get(level) {
                    let parent = above.entry(up(&key)).or_default();
                    parent.0 = parent.0.saturating_add(lower);
                    parent.1 = parent.1.saturating_add(beyond);
                }
            }
            sums = above;
        }
        heavy.sort_by(|a, b| b.beyond.cmp(&a.beyond).then((a.level, a.key).cmp(&(b.level, b.key))));
        heavy
    }

    /// Adds the counts of another hierarchy. Seeds may differ.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.keys != other.keys || self.levels.len() != other.levels.len() {
            return Err(Mismatch::Parameters);
        }
        let Self { parents, levels, keys, total, lost } = self;
        for (level, part) in other.levels.iter().enumerate() {
            let mut tree =
                Tree { parents: &parents[level..], above: &mut levels[level..], keys: *keys, lost };
            part.iter().for_each(|slot| tree.put(&slot.key, slot.count));
        }
        *total = total.saturating_add(other.total);
        *lost = lost.saturating_add(other.lost);
        Ok(())
    }

    /// Bytes of memory, without the struct itself.
    pub fn memory_bytes(&self) -> usize {
        self.levels.iter().map(Table::memory_bytes).sum()
    }
}

/// Levels and their parent functions; the first function is that of the table that is being filled.
struct Tree<'a, K: 'static> {
    parents: &'a [Parent<K>],
    above: &'a mut [Table<K>],
    keys: usize,
    lost: &'a mut u64,
}

impl<K: Key> Tree<'_, K> {
    /// Counts a key on the lowest of these levels; without levels it is lost.
    fn put(&mut self, key: &K, weight: u64) {
        let Some((table, above)) = self.above.split_first_mut() else {
            *self.lost = self.lost.saturating_add(weight);
            return;
        };
        let hash = table.hasher.hash(key);
        Tree { above, parents: self.parents, keys: self.keys, lost: self.lost }
            .add(table, key, weight, hash);
    }

    /// Counts a key in a table; evicted keys move up into these levels.
    #[inline(always)]
    fn add(&mut self, table: &mut Table<K>, key: &K, weight: u64, hash: Hash) {
        let len = table.len();
        let room = len < self.keys && len < table.room();
        let slot = table.seek(key, hash);
        if slot.count > 0 {
            slot.count = slot.count.saturating_add(weight);
        } else if weight > 0 {
            if !room {
                self.make_room(table, weight);
            }
            *table.seek(key, hash) = Slot { key: *key, count: weight };
            table.grown();
        }
    }

    #[cold]
    fn make_room(&mut self, table: &mut Table<K>, newcomer: u64) {
        if table.len() < self.keys {
            return table.reserve(table.len() + 1);
        }
        let median = table.median(newcomer);
        let all: Vec<Slot<K>> = table.iter().collect();
        table.clear();
        let (up, parents) = match self.parents.split_first() {
            Some((up, rest)) => (Some(up), rest),
            None => (None, self.parents),
        };
        for slot in all {
            if slot.count > median {
                let hash = table.hasher.hash(&slot.key);
                *table.seek(&slot.key, hash) = slot;
                table.grown();
            } else {
                let key = up.map_or(slot.key, |up| up(&slot.key));
                Tree { parents, above: self.above, keys: self.keys, lost: self.lost }
                    .put(&key, slot.count);
            }
        }
    }
}
