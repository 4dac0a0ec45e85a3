//! A chained hash table whose buckets are cache lines (W. So, A. Narayanan, D. Oran, *Named Data Networking on a
//! Router: Fast and DoS-resistant Forwarding with Hash Tables*, ANCS 2013).
//!
//! ```text
//!  bucket, 64 bytes:  | 10 tags of 16 bits | 10 places of 32 bits | next bucket of the chain |
//! ```
//!
//! A look-up reads one line; a tag that is equal by accident costs a look at the entry, once in some thousand times.
//!
//! Invariant: in a chain all buckets but the last are full, so the spare buckets never run out.

use super::NONE;

const WAYS: usize = 10;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u16; WAYS],
    places: [u32; WAYS],
    next: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    const EMPTY: Self = Self { tags: [0; WAYS], places: [NONE; WAYS], next: NONE };
}

/// From hashes to places.
#[derive(Debug)]
pub(super) struct Index {
    /// Those that hashes lead to, a power of two, and spare ones behind them.
    buckets: Vec<Bucket>,
    mask: u64,
    spare: Vec<u32>,
}

impl Index {
    /// For so many places.
    pub(super) fn new(capacity: usize) -> Self {
        let heads = (capacity / 5).next_power_of_two().max(1);
        // Each chain's last bucket apart, spare buckets are full.
        let spare = capacity / WAYS * 2 + 1;
        Self {
            buckets: vec![Bucket::EMPTY; heads + spare],
            mask: heads as u64 - 1,
            spare: (heads as u32..(heads + spare) as u32).rev().collect(),
        }
    }

    fn head(&self, hash: u64) -> u32 {
        (hash & self.mask) as u32
    }

    /// Brings the bucket of this hash near.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        ringtap_memory::prefetch(&self.buckets[self.head(hash) as usize]);
    }

    /// The places that this hash may mean.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let tag = tag(hash);
        let (mut bucket, mut way) = (self.head(hash), 0);
        std::iter::from_fn(move || {
            loop {
                let Bucket { tags, places, next } = &self.buckets[bucket as usize];
                while way < WAYS {
                    let at = way;
                    if places[at] == NONE {
                        return None;
                    }
                    way += 1;
                    if tags[at] == tag {
                        return Some(places[at]);
                    }
                }
                if *next == NONE {
                    return None;
                }
                (bucket, way) = (*next, 0);
            }
        })
    }

    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let mut at = self.head(hash);
        loop {
            let bucket = &mut self.buckets[at as usize];
            if let Some(way) = bucket.places.iter().position(|&place| place == NONE) {
                (bucket.tags[way], bucket.places[way]) = (tag(hash), place);
                return;
            }
            if bucket.next == NONE {
                let Some(spare) = self.spare.pop() else { return };
                self.buckets[at as usize].next = spare;
            }
            at = self.buckets[at as usize].next;
        }
    }

    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let mut hole = None;
        let (mut before, mut at) = (NONE, self.head(hash));
        loop {
            let bucket = &self.buckets[at as usize];
            if hole.is_none() {
                hole = bucket.places.iter().position(|&p| p == place).map(|way| (at, way));
            }
            if bucket.next == NONE {
                break;
            }
            (before, at) = (at, bucket.next);
        }
        let Some((bucket, way)) = hole else { return };
        // The chain's last place moves into the hole.
        let tail = &mut self.buckets[at as usize];
        let Some(last) = tail.places.iter().rposition(|&place| place != NONE) else { return };
        let moved = (tail.tags[last], tail.places[last]);
        tail.places[last] = NONE;
        if (bucket, way) != (at, last) {
            let bucket = &mut self.buckets[bucket as usize];
            (bucket.tags[way], bucket.places[way]) = moved;
        }
        if last == 0 && before != NONE {
            self.buckets[before as usize].next = NONE;
            self.spare.push(at);
        }
    }
}

/// Other bits of the hash than those that choose the bucket.
fn tag(hash: u64) -> u16 {
    (hash >> 48) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_was_put_in_and_not_taken_out(
            // Few buckets and tags, so that chains are long.
            steps in prop::collection::vec((any::<bool>(), 0..40u32), 0..300),
        ) {
            let mut index = Index::new(40);
            let mut model = std::collections::BTreeSet::new();
            let hash = |place: u32| u64::from(place % 3) << 48 | u64::from(place % 2);
            for (put, place) in steps {
                if put && model.insert(place) {
                    index.insert(hash(place), place);
                } else if !put && model.remove(&place) {
                    index.remove(hash(place), place);
                }
                let mut found: Vec<_> = index.candidates(hash(place)).collect();
                found.sort_unstable();
                let alike = |&other: &u32| hash(other) == hash(place);
                let expected: Vec<_> = model.iter().copied().filter(alike).collect();
                prop_assert_eq!(found, expected);
            }
            for place in model {
                index.remove(hash(place), place);
            }
            prop_assert!(index.buckets.iter().all(|bucket| bucket.places == [NONE; WAYS] && bucket.next == NONE));
            prop_assert_eq!(index.spare.len(), 9);
        }
    }
}
