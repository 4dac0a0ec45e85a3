//! Sums by key, with room for a number of keys.
//!
//! ```text
//! push ──▶ waiting (Aggregate) ── three quarters of the room are used ──▶ found (Dense)
//! ```
//!
//! Rows wait as long as all of them have room, whatever their keys; that costs no cache miss a row. Then each is looked
//! up, because one with a new key may have no room. The keys with room are the first ones in either case.

use std::collections::BTreeMap;

use ringtap_flow::{Aggregate, Dense, PARTS, Row};
use ringtap_wire::HashKey;

/// Sums by key.
pub(super) struct Rows<R> {
    key: HashKey,
    waiting: Aggregate<R>,
    /// Rows that certainly have room; 0 once rows are looked up.
    room: usize,
    found: Dense<R>,
    capacity: usize,
}

impl<R: Row> Rows<R> {
    /// No rows, and room for the rows of `capacity` keys.
    pub(super) fn new(key: HashKey, capacity: usize) -> Self {
        let capacity = capacity.clamp(1, Dense::<R>::MOST);
        Self { key, waiting: Aggregate::new(key), room: capacity, found: Dense::new(), capacity }
    }

    /// Adds a row; false if its key is new and has no room.
    #[inline]
    pub(super) fn push(&mut self, row: R) -> bool {
        if self.room == 0 {
            return self.find(row);
        }
        self.waiting.push(row);
        self.room -= 1;
        if self.room == 0 {
            self.settle();
        }
        true
    }

    /// Makes one row of each key; without much room left, rows are looked up from now on.
    #[cold]
    fn settle(&mut self) {
        self.waiting.settle();
        self.room = self.capacity - self.waiting.len();
        if self.room < self.capacity.div_ceil(4) {
            self.room = 0;
            for part in 0..PARTS {
                for row in self.waiting.take_part(part) {
                    self.found.insert(row.place(&self.key), row);
                }
            }
        }
    }

    fn find(&mut self, row: R) -> bool {
        let hash = row.place(&self.key);
        match self.found.find(hash, |own| own.has_key_of(&row)) {
            Some(at) => self.found.row_mut(at).add(&row),
            None if self.found.len() < self.capacity => _ = self.found.insert(hash, row),
            None => return false,
        }
        true
    }

    /// Adds the rows of another shard. Calls `ignored` with each that has no room.
    pub(super) fn merge(&mut self, mut other: Self, mut ignored: impl FnMut(&R)) {
        if self.waiting.is_empty() && self.found.is_empty() && self.capacity >= other.capacity {
            // Rows that are looked up stay so.
            other.room += if other.room > 0 { self.capacity - other.capacity } else { 0 };
            *self = Self { capacity: self.capacity, ..other };
            return;
        }
        for part in 0..PARTS {
            let waiting = other.waiting.take_part(part);
            waiting.into_iter().filter(|row| !self.push(*row)).for_each(|row| ignored(&row));
        }
        let found = other.found.into_rows();
        found.into_iter().filter(|row| !self.push(*row)).for_each(|row| ignored(&row));
    }

    /// The first rows by a key that differs between rows, in order.
    pub(super) fn first<K: Ord>(mut self, most: usize, key: impl Fn(&R) -> K) -> Vec<R> {
        self.waiting.settle();
        let mut first = BTreeMap::new();
        for row in self.waiting.rows().chain(self.found.rows()) {
            let key = key(row);
            let is_full = first.len() >= most;
            if is_full && first.last_key_value().is_none_or(|(last, _)| *last < key) {
                continue;
            }
            first.insert(key, *row);
            if is_full {
                first.pop_last();
            }
        }
        first.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: HashKey = HashKey::from_seed(5);

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Sum {
        key: u32,
        sum: u64,
    }

    impl Row for Sum {
        fn place(&self, key: &HashKey) -> u32 {
            key.word(u64::from(self.key)) as u32
        }

        fn has_key_of(&self, other: &Self) -> bool {
            self.key == other.key
        }

        fn add(&mut self, later: &Self) {
            self.sum += later.sum;
        }
    }

    /// Rows with few or many keys; each tenth is of a key that comes early.
    fn sums(keys: u32, count: u32) -> impl Iterator<Item = Sum> {
        let key = move |n: u32| if n.is_multiple_of(10) { n / 10 % 7 } else { n * 7 % keys };
        (0..count).map(move |n| Sum { key: key(n), sum: u64::from(n) })
    }

    #[test]
    fn the_first_keys_have_room() {
        for (capacity, keys, count) in
            [(1, 3, 9), (100, 50, 9_000), (100, 900, 9_000), (40, 41, 99)]
        {
            let mut rows = Rows::new(KEY, capacity);
            let mut expected: Vec<Sum> = Vec::new();
            for sum in sums(keys, count) {
                let known = expected.iter().position(|own| own.key == sum.key);
                let has_room = match known {
                    Some(at) => {
                        expected[at].add(&sum);
                        true
                    }
                    None if expected.len() < capacity => {
                        expected.push(sum);
                        true
                    }
                    None => false,
                };
                assert_eq!(rows.push(sum), has_room);
            }
            expected.sort_by_key(|sum| sum.key);
            assert_eq!(rows.first(usize::MAX, |sum| sum.key), expected);
        }
    }

    #[test]
    fn shards_are_added_and_the_first_rows_found() {
        let mut all = Rows::new(KEY, 20);
        for part in 0..3 {
            let mut own = Rows::new(KEY, 10);
            for n in 0..10 {
                assert!(own.push(Sum { key: n * 2 + part, sum: u64::from(n) }));
            }
            let mut ignored = 0;
            all.merge(own, |row| ignored += row.sum);
            // The third has the keys of the first but one.
            assert_eq!(ignored, if part == 2 { 9 } else { 0 });
        }
        let first = all.first(2, |sum| (std::cmp::Reverse(sum.sum), sum.key));
        assert_eq!(first, [Sum { key: 18, sum: 17 }, Sum { key: 16, sum: 15 }]);
    }
}
