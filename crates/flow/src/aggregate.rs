//! Sums by key, for more keys than a core's cache holds.
//!
//! A new row is appended to one of 256 parts, chosen by the hash of its key, without a look-up. A
//! full part is *settled*: rows with equal keys become one, found through a temporary index. A part
//! and its index fit the cache, so a row costs no cache miss of its own, and a table needs no
//! memory but its rows.
//!
//! ```text
//! push ──▶ part   0  | settled rows | waiting rows … |
//!          part   1  | settled rows | waiting rows … |      full: settle, and more room if more than half is left
//!          …
//! ```
//!
//! The method is the partitioned aggregation of databases (Manegold, Boncz, Kersten, "Optimizing
//! Main-Memory Join on Modern Hardware", 2002), repeated whenever a part is full. Each row is
//! settled twice on average.

use ringtap_base::{prefetch, prefetch_write};
use ringtap_wire::HashKey;

/// Parts of a table. The upper eight bits of [`Row::place`] choose one.
pub const PARTS: usize = 256;

/// Most rows of a table. The caller must not push more.
pub const MOST_ROWS: usize = POSITION as usize;

/// Initial room of a part, rows.
const LEAST: usize = 32;
/// Rows whose look-ups overlap, which matters in parts that are larger than a cache.
const AHEAD: usize = 8;
/// The lower bits of a word of the index are a position plus one, the upper bits are from the hash.
const POSITION: u32 = (1 << 24) - 1;

/// A row: a key, and sums over all rows with that key.
pub trait Row: Copy {
    /// A keyed hash of the key: equal keys have equal ones. The upper eight bits choose the part.
    fn place(&self, key: &HashKey) -> u32;

    /// Whether the keys are equal.
    fn has_key_of(&self, other: &Self) -> bool;

    /// Adds a row with the same key that came later.
    fn add(&mut self, later: &Self);
}

/// A table of sums by key.
pub struct Aggregate<R> {
    key: HashKey,
    parts: Vec<Part<R>>,
    index: Vec<u32>,
    /// A bit for each part: whether rows were pushed since the last [`Aggregate::take_changed`].
    changed: [u64; PARTS / 64],
}

struct Part<R> {
    rows: Vec<R>,
    /// Rows at the beginning with distinct keys.
    settled: usize,
    /// Rows that [`Aggregate::drop_latest`] has kept.
    kept: usize,
}

impl<R: Row> Aggregate<R> {
    /// An empty table.
    pub fn new(key: HashKey) -> Self {
        let part = |_| Part { rows: Vec::new(), settled: 0, kept: 0 };
        let parts = (0..PARTS).map(part).collect();
        Self { key, parts, index: Vec::new(), changed: [0; PARTS / 64] }
    }

    /// True if it has no rows.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.rows.is_empty())
    }

    /// Number of rows, some of which may have equal keys.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    /// Adds a row.
    #[inline(always)]
    pub fn push(&mut self, row: R) {
        let number = part_of(row.place(&self.key));
        let rows = &mut self.parts[number].rows;
        if rows.len() == rows.capacity() {
            self.make_room(number);
        }
        let part = &mut self.parts[number];
        part.rows.push(row);
        self.changed[number / 64] |= 1 << (number % 64);
        // The next row of this part comes after rows of other parts, so its line arrives in time.
        if let Some(next) = part.rows.spare_capacity_mut().get(1) {
            prefetch_write(next);
        }
    }

    /// Settles a part, and grows it if that did not make room.
    #[cold]
    fn make_room(&mut self, number: usize) {
        self.settle_part(number);
        let rows = &mut self.parts[number].rows;
        let (len, before) = (rows.len(), rows.capacity());
        // If nearly all keys are new, settle less often; memory without rows is not touched.
        let wanted = match len {
            _ if len * 8 >= before * 7 => before * 4,
            _ if len * 2 >= before => before * 2,
            _ => before,
        };
        rows.reserve_exact(wanted.max(LEAST) - len);
    }

    /// Settles a part and returns its rows: one for each key, in the order of their first rows.
    pub fn settle_part(&mut self, number: usize) -> &mut [R] {
        let Self { key, parts, index, .. } = self;
        let part = &mut parts[number];
        if part.settled < part.rows.len() {
            settle(&mut part.rows, part.settled, index, key);
            part.settled = part.rows.len();
        }
        &mut part.rows
    }

    /// The parts to which rows were pushed since the last call, in order.
    pub fn take_changed(&mut self) -> Vec<usize> {
        let mut parts = Vec::new();
        for (at, mut word) in std::mem::take(&mut self.changed).into_iter().enumerate() {
            while word != 0 {
                parts.push(at * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        parts
    }

    /// Removes and returns all rows of a part, one for each key.
    pub fn take_part(&mut self, number: usize) -> Vec<R> {
        self.settle_part(number);
        let part = &mut self.parts[number];
        (part.settled, part.kept) = (0, 0);
        std::mem::take(&mut part.rows)
    }

    /// Settles all parts.
    pub fn settle(&mut self) {
        (0..PARTS).for_each(|number| {
            self.settle_part(number);
        });
    }

    /// All rows: one for each key, once all parts are settled.
    pub fn rows(&self) -> impl Iterator<Item = &R> + Clone {
        self.parts.iter().flat_map(|part| &part.rows)
    }

    /// Keeps the rows that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(&R) -> bool) {
        self.settle();
        for part in &mut self.parts {
            let mut at = 0;
            let mut kept = 0;
            part.rows.retain(|row| {
                let stays = keep(row);
                kept += usize::from(stays && at < part.kept);
                at += 1;
                stays
            });
            (part.settled, part.kept) = (part.rows.len(), kept);
        }
    }

    /// Drops the latest keys, at most `most` of those that are new since the last call; returns their number. Calls
    /// `dropped` with their rows.
    pub fn drop_latest(&mut self, most: usize, mut dropped: impl FnMut(&R)) -> usize {
        let mut gone = 0;
        for number in 0..PARTS {
            self.settle_part(number);
            let Part { rows, settled, kept } = &mut self.parts[number];
            let new = rows.len() - *kept;
            *kept = rows.len() - new.min(most - gone);
            gone += rows.len() - *kept;
            rows[*kept..].iter().for_each(&mut dropped);
            rows.truncate(*kept);
            *settled = *kept;
        }
        gone
    }
}

/// The bits of a place that a word of the index has.
#[inline(always)]
const fn tag_of(place: u32) -> u32 {
    place << 8 & !POSITION
}

/// The number of the part of a place.
#[inline(always)]
const fn part_of(place: u32) -> usize {
    (place >> 24) as usize
}

/// Joins all rows of a key, at the place of the first. The first `settled` rows have distinct keys.
fn settle<R: Row>(rows: &mut Vec<R>, settled: usize, index: &mut Vec<u32>, key: &HashKey) {
    let words = (rows.len() * 2).next_power_of_two();
    index.clear();
    index.resize(words, 0);
    let mask = words - 1;
    let fetch = |index: &[u32], ahead: Option<&R>| {
        ahead.inspect(|row| prefetch(&index[row.place(key) as usize & mask]));
    };
    for at in 0..settled {
        fetch(index, rows.get(at + AHEAD));
        let place = rows[at].place(key);
        let mut slot = place as usize & mask;
        while index[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        index[slot] = tag_of(place) | (at as u32 + 1);
    }
    let mut kept = settled;
    for at in settled..rows.len() {
        fetch(index, rows.get(at + AHEAD));
        let row = rows[at];
        let place = row.place(key);
        let tag = tag_of(place);
        let mut slot = place as usize & mask;
        loop {
            let word = index[slot];
            if word == 0 {
                index[slot] = tag | (kept as u32 + 1);
                rows[kept] = row;
                kept += 1;
                break;
            }
            if word & !POSITION == tag {
                let first = &mut rows[(word & POSITION) as usize - 1];
                if first.has_key_of(&row) {
                    first.add(&row);
                    break;
                }
            }
            slot = (slot + 1) & mask;
        }
    }
    rows.truncate(kept);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Sum {
        key: u32,
        sum: u64,
    }

    impl Row for Sum {
        // Few places: equal tags, full neighbours, and parts of very different sizes.
        fn place(&self, key: &HashKey) -> u32 {
            key.word(u64::from(self.key) / 3) as u32 & 0x0303_ffff
        }

        fn has_key_of(&self, other: &Self) -> bool {
            self.key == other.key
        }

        fn add(&mut self, later: &Self) {
            self.sum += later.sum;
        }
    }

    fn of(rows: impl IntoIterator<Item = (u32, u64)>) -> Aggregate<Sum> {
        let mut table = Aggregate::new(HashKey::from_seed(3));
        rows.into_iter().for_each(|(key, sum)| table.push(Sum { key, sum }));
        table
    }

    fn rows(keys: u32, count: u32) -> impl Iterator<Item = (u32, u64)> + Clone {
        (0..count).map(move |n| (n.wrapping_mul(2_654_435_761) % keys, u64::from(n)))
    }

    #[test]
    fn it_agrees_with_a_map() {
        for (keys, count) in [(1, 10_000), (50, 10_000), (3_000, 10_000), (100_000, 100_000)] {
            let mut expected = BTreeMap::new();
            rows(keys, count).for_each(|(key, sum)| *expected.entry(key).or_insert(0) += sum);
            let mut table = of(rows(keys, count));
            assert!(expected.len() <= table.len());
            table.settle();
            let found: BTreeMap<_, _> = table.rows().map(|row| (row.key, row.sum)).collect();
            assert_eq!((found, table.len()), (expected.clone(), expected.len()));
        }
    }

    #[test]
    fn few_keys_take_little_room_however_many_rows_come() {
        assert!(of(rows(50, 1_000_000)).len() <= 4 * 4 * LEAST.max(50));
    }

    #[test]
    fn rows_keep_the_order_of_their_keys_and_can_be_taken_and_cut() {
        let mut table = of([(9, 1), (10, 2), (9, 3), (11, 4), (10, 5)]);
        let number = part_of(Sum { key: 9, sum: 0 }.place(&table.key));
        assert!(table.take_changed().contains(&number));
        let settled = [(9, 4), (10, 7), (11, 4)].map(|(key, sum)| Sum { key, sum });
        assert_eq!(table.settle_part(number), settled);
        assert!(table.take_changed().is_empty());
        let mut dropped = Vec::new();
        assert_eq!(table.drop_latest(1, |row| dropped.push(*row)), 1);
        assert_eq!(dropped, settled[2..]);
        table.push(Sum { key: 12, sum: 6 });
        assert_eq!(table.drop_latest(9, |row| dropped.push(*row)), 1);
        assert_eq!(dropped[1], Sum { key: 12, sum: 6 });
        table.retain(|row| row.key != 9);
        assert_eq!(table.take_part(number), settled[1..2]);
        assert!(table.is_empty());
    }
}
