//! A sorted list in blocks, for small changes: the changed list shares all other blocks with the
//! old one.
//!
//! ```text
//! before   [ 1 3 5 ] [ 7 9 ] [ 20 21 30 ]
//! after       │      [ 7 8 9 ]     │          8 was inserted: one new block, two shared
//!             └───── Arc ──────────┘
//! ```
//!
//! A change of m rows costs m, the rows of the blocks it touches, and a pointer for each block.
//! With blocks of 64 to 256 rows that is some ten thousand pointers for a million rows.
//!
//! Invariant: a list is immutable. All blocks except the last have at least [`LEAST`] rows.

use std::fmt::Debug;
use std::sync::Arc;

/// The most rows of a block.
pub(super) const MOST: usize = 256;
/// Rows of new blocks when a longer run is divided: leaves room for later ones.
const FILL: usize = 192;
/// A block with fewer rows is joined with the next one.
const LEAST: usize = 64;

/// Rows by ascending key.
pub(super) trait Block: Debug + Sized {
    type Key: Copy + Ord + Debug;
    type Value: Copy;
    /// Stored beside the pointer to the block, so that it can be read without following the
    /// pointer.
    type Note: Copy + Debug;

    /// Bytes of a row, in addition to those of the block itself.
    const ROW_BYTES: usize;

    /// A block of 1 to [`MOST`] rows.
    fn new(rows: &[(Self::Key, Self::Value)]) -> (Self, Self::Note);

    /// All rows.
    fn rows(&self) -> impl Iterator<Item = (Self::Key, Self::Value)> + '_;

    /// The value of a key.
    fn get(&self, key: Self::Key) -> Option<Self::Value>;
}

/// A block, and its note.
#[derive(Debug)]
pub(super) struct Part<B: Block> {
    pub(super) note: B::Note,
    pub(super) block: Arc<B>,
}

impl<B: Block> Clone for Part<B> {
    fn clone(&self) -> Self {
        Self { note: self.note, block: Arc::clone(&self.block) }
    }
}

/// A sorted list.
#[derive(Debug)]
pub(super) struct Blocks<B: Block> {
    /// The first key of each block.
    firsts: Vec<B::Key>,
    parts: Vec<Part<B>>,
    rows: usize,
}

impl<B: Block> Blocks<B> {
    pub(super) fn new() -> Self {
        Self { firsts: Vec::new(), parts: Vec::new(), rows: 0 }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn firsts(&self) -> &[B::Key] {
        &self.firsts
    }

    pub(super) fn parts(&self) -> &[Part<B>] {
        &self.parts
    }

    pub(super) fn parts_mut(&mut self) -> &mut [Part<B>] {
        &mut self.parts
    }

    /// All rows, by ascending key.
    pub(super) fn rows(&self) -> impl Iterator<Item = (B::Key, B::Value)> + '_ {
        self.parts.iter().flat_map(|part| part.block.rows())
    }

    /// The value of a key.
    pub(super) fn get(&self, key: B::Key) -> Option<B::Value> {
        let at = self.firsts.partition_point(|first| *first <= key).checked_sub(1)?;
        self.parts[at].block.get(key)
    }

    /// The list after some changes, by ascending key, each key once. `change` computes the new
    /// value of a row from the old one; `None` removes the row, or adds none.
    pub(super) fn changed<C: Copy>(
        &self,
        changes: &[(B::Key, C)],
        change: impl Fn(Option<B::Value>, C) -> Option<B::Value>,
    ) -> Self {
        let count = self.parts.len() + changes.len() / FILL + 2;
        let mut made = Self {
            firsts: Vec::with_capacity(count),
            parts: Vec::with_capacity(count),
            rows: self.rows,
        };
        let (mut next, mut rest) = (0, changes);
        let mut open = Vec::new();
        while let Some(&(key, _)) = rest.first() {
            let before = self.firsts[next..].partition_point(|first| *first <= key);
            let hit = next + before.saturating_sub(1);
            made.share(self, next..hit);
            next = hit;
            while next < self.parts.len() {
                let rows = self.parts[next].block.rows();
                let end = self.firsts.get(next + 1);
                let own = rest.partition_point(|(key, _)| end.is_none_or(|end| key < end));
                let (own, others) = rest.split_at(own);
                made.rows -= merge(rows, own, &change, &mut open);
                (next, rest) = (next + 1, others);
                if open.is_empty() || open.len() >= LEAST {
                    break;
                }
            }
            if self.parts.is_empty() {
                merge(std::iter::empty(), rest, &change, &mut open);
                rest = &[];
            }
            made.divide(&open);
            open.clear();
        }
        made.share(self, next..self.parts.len());
        made
    }

    /// Size in bytes, including shared blocks.
    pub(super) fn memory(&self) -> usize {
        let block = size_of::<B::Key>() + size_of::<Part<B>>() + size_of::<B>();
        self.rows * B::ROW_BYTES + self.parts.len() * block
    }

    /// Shares blocks of another list.
    fn share(&mut self, from: &Self, blocks: std::ops::Range<usize>) {
        self.firsts.extend_from_slice(&from.firsts[blocks.clone()]);
        self.parts.extend_from_slice(&from.parts[blocks]);
    }

    /// Adds new blocks.
    fn divide(&mut self, rows: &[(B::Key, B::Value)]) {
        if rows.is_empty() {
            return;
        }
        let blocks = if rows.len() <= MOST { 1 } else { rows.len().div_ceil(FILL) };
        // In even parts, so that none has fewer than LEAST.
        for number in 0..blocks {
            let rows = &rows[number * rows.len() / blocks..(number + 1) * rows.len() / blocks];
            let (block, note) = B::new(rows);
            self.firsts.push(rows[0].0);
            self.parts.push(Part { note, block: Arc::new(block) });
        }
        self.rows += rows.len();
    }
}

/// Rows with their changes; also returns the number of old rows.
fn merge<K: Copy + Ord, V, C: Copy>(
    rows: impl Iterator<Item = (K, V)>,
    changes: &[(K, C)],
    change: impl Fn(Option<V>, C) -> Option<V>,
    into: &mut Vec<(K, V)>,
) -> usize {
    let mut changes = changes.iter().peekable();
    let mut count = 0;
    for (key, value) in rows {
        count += 1;
        while let Some(&(new, to)) = changes.next_if(|(new, _)| *new < key) {
            into.extend(change(None, to).map(|value| (new, value)));
        }
        match changes.next_if(|(same, _)| *same == key) {
            Some(&(_, to)) => into.extend(change(Some(value), to).map(|value| (key, value))),
            None => into.push((key, value)),
        }
    }
    for &(new, to) in changes {
        into.extend(change(None, to).map(|value| (new, value)));
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct Plain(Vec<(u16, u32)>);

    impl Block for Plain {
        type Key = u16;
        type Value = u32;
        type Note = usize;

        const ROW_BYTES: usize = size_of::<(u16, u32)>();

        fn new(rows: &[(u16, u32)]) -> (Self, usize) {
            (Self(rows.into()), rows.len())
        }

        fn rows(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
            self.0.iter().copied()
        }

        fn get(&self, key: u16) -> Option<u32> {
            self.0.iter().find(|row| row.0 == key).map(|row| row.1)
        }
    }

    /// First key, number, distance, and the new value.
    type Run = (u16, u16, u16, Option<u32>);

    fn runs() -> impl Strategy<Value = Vec<Run>> {
        let length = prop_oneof![Just(1_u16), 1..20_u16, 1..1_500_u16];
        let value = prop_oneof![any::<u32>().prop_map(Some), Just(None)];
        prop::collection::vec((0..4_000_u16, length, 1..4_u16, value), 1..30)
    }

    proptest! {
        #[test]
        fn a_list_in_blocks_is_a_sorted_map(runs in runs()) {
            let mut blocks = Blocks::<Plain>::new();
            let mut expected = BTreeMap::new();
            for (from, length, apart, value) in runs {
                let changes: Vec<_> =
                    (0..length).map(|n| (from + n * apart, value.map(|value| value ^ u32::from(n)))).collect();
                let before: Vec<_> = blocks.rows().collect();
                let next = blocks.changed(&changes, |_, to| to);
                prop_assert!(blocks.rows().eq(before), "the list before has changed");
                blocks = next;
                for (key, value) in changes {
                    match value {
                        Some(value) => expected.insert(key, value),
                        None => expected.remove(&key),
                    };
                }
                prop_assert!(blocks.rows().eq(expected.iter().map(|(key, value)| (*key, *value))));
                prop_assert_eq!(blocks.len(), expected.len());
                for key in [from.saturating_sub(1), from, from + 1, from + length] {
                    prop_assert_eq!(blocks.get(key), expected.get(&key).copied());
                }
                let sizes: Vec<_> = blocks.parts.iter().map(|part| part.note).collect();
                let (last, others) = sizes.split_last().map_or((1, &[][..]), |(last, rest)| (*last, rest));
                prop_assert!((1..=MOST).contains(&last), "{sizes:?}");
                prop_assert!(others.iter().all(|size| (LEAST..=MOST).contains(size)), "{sizes:?}");
            }
        }
    }

    /// As many rows as leave one over when all other blocks are full.
    #[test]
    fn a_long_run_before_other_rows_leaves_no_small_block() {
        let before = Blocks::<Plain>::new().changed(&[(60_000, Some(1))], |_, to| to);
        let rows: Vec<_> = (0..36_673).map(|key| (key, Some(1))).collect();
        let after = before.changed(&rows, |_, to| to);
        assert_eq!(after.len(), 36_674);
        let (_, others) = after.parts.split_last().unwrap();
        assert!(others.iter().all(|part| (LEAST..=MOST).contains(&part.note)));
    }

    #[test]
    fn a_small_change_shares_all_other_blocks() {
        let rows: Vec<_> = (0..10_000).map(|key| (2 * key, Some(1))).collect();
        let before = Blocks::<Plain>::new().changed(&rows, |_, to| to);
        let after = before.changed(&[(777, Some(2))], |_, to| to);
        let shared = |part: &&Part<Plain>| {
            before.parts.iter().any(|other| Arc::ptr_eq(&part.block, &other.block))
        };
        assert_eq!(after.parts.len(), before.parts.len());
        assert_eq!(after.parts.iter().filter(shared).count(), before.parts.len() - 1);
        assert_eq!((after.len(), after.get(777), before.get(777)), (10_001, Some(2), None));
    }
}
