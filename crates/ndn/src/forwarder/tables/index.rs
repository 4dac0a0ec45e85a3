//! A chained hash table whose buckets are cache lines (W. So, A. Narayanan, D. Oran, *Named Data
//! Networking on a Router: Fast and DoS-resistant Forwarding with Hash Tables*, ANCS 2013).
//!
//! ```text
//!  bucket, 64 bytes:  | 10 tags of 16 bits | 10 entries of 32 bits | next bucket of the chain |
//! ```
//!
//! A look-up reads one line per bucket of the chain. Different hashes with equal tags, about once
//! in some thousand look-ups, cost one more read of an entry.
//!
//! Invariant: all buckets of a chain except the last are full, so the spare buckets never run out.

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

    /// A bit mask of the ways with this tag. Tag 0 gives the empty ways.
    #[inline]
    fn ways(&self, tag: u16) -> u32 {
        self.tags.iter().enumerate().fold(0, |ways, (way, &t)| ways | u32::from(t == tag) << way)
    }
}

/// An index from hashes to entry numbers.
#[derive(Debug)]
pub(super) struct Index {
    /// First buckets of chains, a power of two, followed by spare buckets.
    buckets: Vec<Bucket>,
    mask: u64,
    spare: Vec<u32>,
}

impl Index {
    /// An index for `capacity` entries.
    pub(super) fn new(capacity: usize) -> Self {
        let heads = (capacity / 5).next_power_of_two().max(1);
        // Except for each chain's last bucket, spare buckets are full.
        let spare = capacity / WAYS * 2 + 1;
        Self {
            buckets: vec![Bucket::EMPTY; heads + spare],
            mask: heads as u64 - 1,
            spare: (heads as u32..(heads + spare) as u32).rev().collect(),
        }
    }

    #[inline]
    fn head(&self, hash: u64) -> u32 {
        (hash & self.mask) as u32
    }

    /// Prefetches the bucket of this hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        ringtap_base::prefetch(&self.buckets[self.head(hash) as usize]);
    }

    /// The entries that may have this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let tag = tag(hash);
        let mut bucket = &self.buckets[self.head(hash) as usize];
        let mut ways = bucket.ways(tag);
        std::iter::from_fn(move || {
            while ways == 0 {
                if bucket.next == NONE {
                    return None;
                }
                bucket = &self.buckets[bucket.next as usize];
                ways = bucket.ways(tag);
            }
            let way = ways.trailing_zeros() as usize;
            ways &= ways - 1;
            Some(bucket.places[way])
        })
    }

    /// Adds an entry with this hash.
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let mut at = self.head(hash);
        loop {
            let bucket = &mut self.buckets[at as usize];
            let empty = bucket.ways(0);
            if empty != 0 {
                let way = empty.trailing_zeros() as usize;
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

    /// Removes an entry with this hash.
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
        // The chain's last entry moves into the hole.
        let tail = &mut self.buckets[at as usize];
        // Used ways come first.
        let Some(last) = (tail.ways(0).trailing_zeros() as usize).min(WAYS).checked_sub(1) else {
            return;
        };
        let moved = (tail.tags[last], tail.places[last]);
        (tail.tags[last], tail.places[last]) = (0, NONE);
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

/// The tag of a hash: its upper 16 bits, which do not select the bucket. 0 marks an empty way.
#[inline]
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_entries_that_were_inserted_and_not_removed(
            // Few buckets and tags, so that chains are long.
            steps in prop::collection::vec((any::<bool>(), 0..40u32), 0..300),
        ) {
            let mut index = Index::new(40);
            let mut model = std::collections::BTreeSet::new();
            let hash = |place: u32| u64::from(1 + place % 3) << 48 | u64::from(place % 2);
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
