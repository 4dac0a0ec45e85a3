//! Hierarchical heavy hitters: the prefixes that are heavy, also where no key below them is.
//!
//! The "full ancestry" of G. Cormode, F. Korn, S. Muthukrishnan, D. Srivastava, "Finding Hierarchical Heavy Hitters in
//! Data Streams", VLDB 2003, with a fixed number of keys a level: a level that is full sends its lighter half up.
//!
//! ```text
//!  level 2   /16   │ 10.0    1 │                          ▲ a key goes up as its prefix, with all of its count
//!  level 1   /24   │ 10.0.1  4 │ 10.0.9  7 │              │
//!  level 0  hosts  │ 10.0.1.7 90 │ 10.0.3.1 2 │ …          │ every update is one here, whatever the levels
//! ```
//!
//! Invariants: all counts of all levels and [`Hierarchy::lost`] add up to the total. What was counted below a prefix is at
//! least the sum of what is kept there, and at most that and the counts of the prefixes above it; certain, also after any
//! merges.

use std::collections::BTreeMap;

use crate::{
    face::{InvalidSize, Mismatch},
    hash::Hash,
    key::{Item, Key},
    table::{Slot, Table},
};

/// A key's prefix on the level above its own.
pub type Parent<K> = fn(&K) -> K;

/// Counts of keys and of their prefixes.
#[derive(Clone, Debug)]
pub struct Hierarchy<K: 'static> {
    /// Of each level to the next.
    parents: &'static [Parent<K>],
    levels: Vec<Table<K>>,
    /// How many keys a level keeps.
    keys: usize,
    total: u64,
    lost: u64,
}

/// A heavy prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyPrefix<K> {
    /// 0 for keys themselves.
    pub level: usize,
    pub key: K,
    /// At least so much was counted below it.
    pub lower: u64,
    /// At most so much.
    pub upper: u64,
    /// So much of `lower` is below no other heavy prefix that is longer.
    pub beyond: u64,
}

impl<K: Key> Hierarchy<K> {
    /// So many keys a level, two or more; one level more than there are parents.
    pub fn new(keys: usize, parents: &'static [Parent<K>], seed: u64) -> Result<Self, InvalidSize> {
        if !(2..=1 << 31).contains(&keys) {
            return Err(InvalidSize::Entries(keys));
        }
        let levels = (0..=parents.len()).map(|_| Table::new(seed)).collect();
        Ok(Self { parents, levels, keys, total: 0, lost: 0 })
    }

    pub fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { parents, levels, keys, total, lost } = self;
        let Some((keep, above)) = levels.split_first_mut() else { return };
        keep.each(burst, |table, item, hash| {
            *total = total.saturating_add(item.weight());
            let mut tree = Tree { parents, above, keys: *keys, lost };
            tree.add(table, item.key(), item.weight(), hash);
        });
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// What was counted below prefixes that the last level had no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bounds of what was counted below a prefix of a level.
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

    /// The counts of all prefixes above one: no one knows below which they were.
    fn doubtful(&self, level: usize, prefix: &K) -> u64 {
        let mut key = *prefix;
        let mut sum = self.lost;
        for (up, table) in self.parents.iter().zip(&self.levels[1..]).skip(level) {
            key = up(&key);
            sum = sum.saturating_add(table.get(&key).unwrap_or(0));
        }
        sum
    }

    /// The prefixes below which at least the threshold was counted that is below no longer one of these; that with the
    /// most such weight first.
    pub fn heavy(&self, threshold: u64) -> Vec<HeavyPrefix<K>> {
        let mut heavy = Vec::new();
        // What is below each prefix of a level, and what of that is below no heavy one.
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

    /// Adds what another has seen. Seeds may differ.
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

    pub fn memory_bytes(&self) -> usize {
        self.levels.iter().map(Table::memory_bytes).sum()
    }
}

/// Levels, and the ways up: the first is that of the table at hand, which is below these levels or the lowest of them.
struct Tree<'a, K: 'static> {
    parents: &'a [Parent<K>],
    above: &'a mut [Table<K>],
    keys: usize,
    lost: &'a mut u64,
}

impl<K: Key> Tree<'_, K> {
    /// Counts on the lowest of the levels, or nowhere if there is none.
    fn put(&mut self, key: &K, weight: u64) {
        let Some((table, above)) = self.above.split_first_mut() else {
            *self.lost = self.lost.saturating_add(weight);
            return;
        };
        let hash = table.hasher.hash(key);
        Tree { above, parents: self.parents, keys: self.keys, lost: self.lost }
            .add(table, key, weight, hash);
    }

    /// Counts in a table, whose keys go up into these levels.
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
