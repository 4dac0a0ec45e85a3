//! A row of a table: its key, its numbers and its tail.

use std::cmp::Ordering;

use crate::transpose::Word;
use crate::{Op, Schema};

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The key, then the numbers, big-endian, filled up to a whole word.
    pub(crate) fixed: &'a [Word],
    pub(crate) key: usize,
    /// Further bytes of the key.
    pub tail: &'a [u8],
}

impl<'a> Row<'a> {
    /// The key without the tail.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        &self.fixed.as_flattened()[..self.key]
    }

    /// The numbers.
    pub fn numbers<const N: usize>(&self) -> [u64; N] {
        let (words, _) = self.fixed.as_flattened()[self.key..].as_chunks::<8>();
        std::array::from_fn(|at| words.get(at).copied().map_or(0, u64::from_be_bytes))
    }

    /// The sum of the numbers that are added when rows of its table are combined; `None` if it is too large.
    pub fn added(&self, table: &Schema) -> Option<u64> {
        let (words, _) = self.fixed.as_flattened()[self.key..].as_chunks::<8>();
        let added = words.iter().zip(table.numbers).filter(|(_, op)| **op == Op::Add);
        added.map(|(word, _)| u64::from_be_bytes(*word)).try_fold(0, u64::checked_add)
    }

    /// The order of rows in an image.
    #[inline]
    pub(crate) fn order(&self, other: &Row<'_>) -> Ordering {
        self.key().cmp(other.key()).then_with(|| self.tail.cmp(other.tail))
    }
}

/// Adds the numbers of a row's fixed part to another one's.
#[inline]
pub(crate) fn combine(table: &Schema, own: &mut [Word], more: &[Word]) {
    let (own, _) = own.as_flattened_mut()[table.key..].as_chunks_mut::<8>();
    let (more, _) = more.as_flattened()[table.key..].as_chunks::<8>();
    for ((own, more), op) in own.iter_mut().zip(more).zip(table.numbers) {
        *own = op.of(u64::from_be_bytes(*own), u64::from_be_bytes(*more)).to_be_bytes();
    }
}
