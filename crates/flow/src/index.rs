//! The index of the flow table: from a flow's hash to its position among the entries.
//!
//! ```text
//! word:  | hash (32 bits) | position + 1 (32 bits) |      0 = free
//! ```
//!
//! Open addressing with linear probing and deletion by shifting back, so that no tombstones
//! pile up in a run of days. Eight words share a cache line, and growing needs nothing but the
//! words themselves: the entries are not touched.

/// Positions by hash. Several entries may share a hash; the caller compares keys.
pub(crate) struct Index {
    words: Vec<u64>,
    mask: usize,
    used: usize,
}

impl Index {
    const SMALLEST: usize = 1 << 10;

    pub(crate) fn new() -> Self {
        Self { words: vec![0; Self::SMALLEST], mask: Self::SMALLEST - 1, used: 0 }
    }

    /// The word at the hash's home: a hint to be checked, and a touch that brings the line in.
    #[inline(always)]
    pub(crate) fn home(&self, hash: u32) -> u64 {
        self.words[hash as usize & self.mask]
    }

    /// The position a word names, if its hash is `hash`.
    #[inline(always)]
    pub(crate) const fn position(word: u64, hash: u32) -> Option<usize> {
        if word != 0 && (word >> 32) as u32 == hash {
            Some((word as u32 - 1) as usize)
        } else {
            None
        }
    }

    /// The first position with this hash that `is_it` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut at = hash as usize & self.mask;
        loop {
            let word = self.words[at];
            if word == 0 {
                return None;
            }
            if let Some(position) = Self::position(word, hash)
                && is_it(position)
            {
                return Some(position);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a position. It must not be in the index yet.
    pub(crate) fn insert(&mut self, hash: u32, position: usize) {
        // Half full at the most: probes stay short even under the simplest of probing schemes.
        if (self.used + 1) * 2 > self.words.len() {
            self.grow();
        }
        self.place(Self::word(hash, position));
        self.used += 1;
    }

    /// Removes a position that is there.
    pub(crate) fn remove(&mut self, hash: u32, position: usize) {
        let mut hole = self.slot_of(hash, position);
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let word = self.words[at];
            if word == 0 {
                break;
            }
            let home = (word >> 32) as usize & self.mask;
            // The word may move back into the hole unless its home lies behind the hole.
            if at.wrapping_sub(home) & self.mask >= at.wrapping_sub(hole) & self.mask {
                self.words[hole] = word;
                hole = at;
            }
        }
        self.words[hole] = 0;
        self.used -= 1;
    }

    /// Tells the index that the entry at `from` now stands at `to`.
    pub(crate) fn moved(&mut self, hash: u32, from: usize, to: usize) {
        let slot = self.slot_of(hash, from);
        self.words[slot] = Self::word(hash, to);
    }

    fn slot_of(&self, hash: u32, position: usize) -> usize {
        let wanted = Self::word(hash, position);
        let mut at = hash as usize & self.mask;
        while self.words[at] != wanted {
            assert!(self.words[at] != 0, "the index has lost position {position}");
            at = (at + 1) & self.mask;
        }
        at
    }

    #[inline(always)]
    fn word(hash: u32, position: usize) -> u64 {
        u64::from(hash) << 32 | (position as u64 + 1)
    }

    #[inline(always)]
    fn place(&mut self, word: u64) {
        let mut at = (word >> 32) as usize & self.mask;
        while self.words[at] != 0 {
            at = (at + 1) & self.mask;
        }
        self.words[at] = word;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = self.words.len() * 2;
        let old = std::mem::replace(&mut self.words, vec![0; doubled]);
        self.mask = doubled - 1;
        for word in old.into_iter().filter(|&word| word != 0) {
            self.place(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        // Few hashes and a small table: collisions, wrap-around and shifting happen all the time.
        #[test]
        fn it_agrees_with_a_map(steps in prop::collection::vec((0u32..48, any::<bool>()), 1..600)) {
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            for (position, (hash, add)) in steps.into_iter().enumerate() {
                let hash = hash.wrapping_mul(21); // homes close to one another
                if add {
                    index.insert(hash, position);
                    model.insert(position, hash);
                } else if let Some((&gone, &hash)) = model.iter().find(|&(_, &h)| h == hash) {
                    index.remove(hash, gone);
                    model.remove(&gone);
                }
                for (&position, &hash) in &model {
                    prop_assert_eq!(index.find(hash, |p| p == position), Some(position));
                }
                prop_assert_eq!(index.used, model.len());
            }
        }
    }

    #[test]
    fn growing_keeps_everything() {
        let mut index = Index::new();
        for position in 0..100_000usize {
            index.insert((position as u32).wrapping_mul(0x9e37_79b9), position);
        }
        for position in 0..100_000usize {
            let hash = (position as u32).wrapping_mul(0x9e37_79b9);
            assert_eq!(index.find(hash, |p| p == position), Some(position));
        }
    }
}
