//! A worker's cache of verdicts: bounded, with LRU eviction.
//!
//! ```text
//! index: pair ─▶ entry        entries: newest ⇄ … ⇄ oldest, doubly linked by their indices
//! ```
//!
//! Invariants: there are at most `bound` entries; nothing is allocated after construction.

use hashbrown::HashTable;

use crate::filter::packet::Address;

/// No entry.
const NONE: u32 = u32::MAX;

/// Verdicts by (source, destination).
#[derive(Debug)]
pub(super) struct Cache {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
    bound: usize,
}

#[derive(Debug)]
struct Entry {
    pair: u32,
    cached: Cached,
    newer: u32,
    older: u32,
}

/// A verdict and the revision for which it was computed. It is valid for later packets unless one
/// of the two addresses was marked obsolete since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) passed: bool,
    pub(super) at: u64,
}

impl Cache {
    /// A cache of at most `bound` entries; with 0 it stays empty.
    pub(super) fn new(bound: usize) -> Self {
        let bound = bound.min(NONE as usize);
        // Twice the capacity, so that removals and insertions never make it grow.
        let index = HashTable::with_capacity(2 * bound);
        Self { index, entries: Vec::with_capacity(bound), newest: NONE, oldest: NONE, bound }
    }

    /// The entry of a pair, if there is one; it becomes the newest.
    pub(super) fn get(&mut self, source: Address, destination: Address) -> Option<&mut Cached> {
        let pair = pair(source, destination);
        let entries = &self.entries;
        let at = *self.index.find(hash(pair), |&at| entries[at as usize].pair == pair)?;
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
        Some(&mut self.entries[at as usize].cached)
    }

    /// Inserts a pair that must be absent. Evicts the oldest entry if the cache is full.
    pub(super) fn put(&mut self, source: Address, destination: Address, cached: Cached) {
        let pair = pair(source, destination);
        let entry = Entry { pair, cached, newer: NONE, older: NONE };
        let at = if self.entries.len() < self.bound {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else if self.oldest == NONE {
            return;
        } else {
            let at = self.oldest;
            self.unlink(at);
            let evicted = self.entries[at as usize].pair;
            if let Ok(found) = self.index.find_entry(hash(evicted), |&other| other == at) {
                found.remove();
            }
            self.entries[at as usize] = entry;
            at
        };
        self.link(at);
        let entries = &self.entries;
        self.index.insert_unique(hash(pair), at, |&at| hash(entries[at as usize].pair));
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link(&mut self, at: u32) {
        let older = self.newest;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, older);
        match older {
            NONE => self.oldest = at,
            older => self.entries[older as usize].newer = at,
        }
        self.newest = at;
    }
}

fn pair(source: Address, destination: Address) -> u32 {
    u32::from(source) << 16 | u32::from(destination)
}

/// A hash of a pair by folded multiplication; all bits are well distributed.
fn hash(pair: u32) -> u64 {
    let product = u128::from(u64::from(pair) + 1) * 0x9e37_79b9_7f4a_7c15_f39c_0c69;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_the_pairs_that_were_used_last(
            bound in 0..6usize,
            lookups in prop::collection::vec((0..4u16, 0..4u16), 0..200),
        ) {
            let mut cache = Cache::new(bound);
            // Oldest first.
            let mut model: Vec<((u16, u16), u64)> = Vec::new();
            for (at, (source, destination)) in (0..).zip(lookups) {
                let found = cache.get(source, destination).copied();
                let known = model.iter().position(|(pair, _)| *pair == (source, destination));
                prop_assert_eq!(found.map(|cached| cached.at), known.map(|n| model[n].1));
                match known {
                    Some(n) => {
                        let used = model.remove(n);
                        model.push(used);
                    }
                    None => {
                        cache.put(source, destination, Cached { passed: true, at });
                        model.push(((source, destination), at));
                        if model.len() > bound {
                            model.remove(0);
                        }
                    }
                }
                prop_assert!(cache.entries.len() <= bound);
            }
        }
    }
}
