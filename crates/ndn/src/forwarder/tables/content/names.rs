//! The index of names: a hash table with linear probing. Each place has a part of the hash, so that
//! a look-up reads no other names, and a removal can move the places behind it.
//!
//! ```text
//!  place, 8 bytes:  | upper 32 bits of the hash | node + 1 |      0: empty
//! ```
//!
//! Invariant: at most three quarters of the places are used. No memory is used before the first
//! name: the system provides zeros.

/// Bytes of the index for each block of the store: four places for three blocks.
pub(super) const BYTES_PER_BLOCK: usize = (size_of::<u64>() * 4).div_ceil(3);

#[derive(Debug)]
pub(super) struct Names {
    places: Vec<u64>,
}

impl Names {
    /// An index of at most this number of names.
    pub(super) fn new(capacity: usize) -> Self {
        Self { places: vec![0; capacity * 4 / 3 + 1] }
    }

    /// The first place of a hash; `upper` is its upper half.
    #[inline]
    fn home(&self, upper: u64) -> usize {
        ((upper * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    /// Prefetches the first place of a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        ringtap_base::prefetch(&self.places[self.home(hash >> 32)]);
    }

    /// The nodes that may have this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let upper = hash >> 32;
        let mut at = self.home(upper);
        std::iter::from_fn(move || {
            loop {
                let place = self.places[at];
                if place == 0 {
                    return None;
                }
                at = self.after(at);
                if place >> 32 == upper {
                    return Some(place as u32 - 1);
                }
            }
        })
    }

    /// Adds a node with this hash.
    pub(super) fn insert(&mut self, hash: u64, node: u32) {
        let mut at = self.home(hash >> 32);
        while self.places[at] != 0 {
            at = self.after(at);
        }
        self.places[at] = (hash >> 32 << 32) | u64::from(node + 1);
    }

    /// Removes a node with this hash.
    pub(super) fn remove(&mut self, hash: u64, node: u32) {
        let wanted = (hash >> 32 << 32) | u64::from(node + 1);
        let mut hole = self.home(hash >> 32);
        while self.places[hole] != wanted {
            if self.places[hole] == 0 {
                return;
            }
            hole = self.after(hole);
        }
        // Places behind the hole move into it, unless their first place is behind it.
        let mut at = self.after(hole);
        while self.places[at] != 0 {
            let home = self.home(self.places[at] >> 32);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.places[hole] = self.places[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.places[hole] = 0;
    }

    /// Number of steps from one place to another.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.places.len() - from }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_names_that_were_inserted_and_not_removed(
            // Few hashes, so that many names have the same first place.
            steps in prop::collection::vec((any::<bool>(), 0..40u32), 0..300),
        ) {
            let mut names = Names::new(40);
            let mut model = std::collections::BTreeSet::new();
            let hash = |node: u32| u64::from(node % 7) << 61 | u64::from(node % 3) << 32;
            for (put, node) in steps {
                if put && model.insert(node) {
                    names.insert(hash(node), node);
                } else if !put && model.remove(&node) {
                    names.remove(hash(node), node);
                }
                for node in 0..40 {
                    let mut found: Vec<_> = names.candidates(hash(node)).collect();
                    found.sort_unstable();
                    let alike = |&other: &u32| hash(other) == hash(node);
                    let expected: Vec<_> = model.iter().copied().filter(alike).collect();
                    prop_assert_eq!(found, expected);
                }
            }
            for node in model {
                names.remove(hash(node), node);
            }
            prop_assert!(names.places.iter().all(|&place| place == 0));
        }
    }
}
