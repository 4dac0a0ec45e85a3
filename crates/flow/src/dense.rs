//! A table whose rows are stored densely in a `Vec` and found through an [`Index`] by hash. The
//! analyses keep their state in it.
//!
//! Looking up costs two cache misses, and both can be made to overlap over several keys:
//! [`Dense::home`] of all keys first, [`Dense::hint`] of all next, the real look-up last.
//! Rows are never removed one by one, so walking them is reading memory in order.

use crate::index::Index;

/// Rows by 32-bit hash.
pub struct Dense<T> {
    index: Index,
    rows: Vec<T>,
}

impl<T> Dense<T> {
    /// Most rows.
    pub const MOST: usize = Index::MOST;

    /// Empty.
    pub fn new() -> Self {
        Self { index: Index::new(), rows: Vec::new() }
    }

    /// Returns the table, which will hold at most `most` rows; more take longer.
    pub fn with_most(self, most: usize) -> Self {
        Self { index: self.index.with_most(most), ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows, in order of insertion.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// All rows, in order of insertion.
    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }

    /// A row by position.
    #[inline(always)]
    pub fn row_mut(&mut self, position: usize) -> &mut T {
        &mut self.rows[position]
    }

    /// First step of overlapping look-ups: prefetches the index word of `hash`.
    #[inline(always)]
    pub fn home(&self, hash: u32) -> u32 {
        self.index.home(hash)
    }

    /// Second step: prefetches a row, probably the wanted one.
    #[inline(always)]
    pub fn hint(&self, word: u32, hash: u32) -> Option<&T> {
        self.rows.get(Index::position(word, hash)?)
    }

    /// The position of the row with this hash that `is_it` accepts.
    #[inline(always)]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(&T) -> bool) -> Option<usize> {
        self.index.find(hash, |position| is_it(&self.rows[position]))
    }

    /// Adds a row whose key is not in the table; returns its position.
    ///
    /// # Panics
    /// If there are [`Dense::MOST`] rows already.
    pub fn insert(&mut self, hash: u32, row: T) -> usize {
        self.index.push(hash);
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// Keeps only the rows that `keep` accepts, and rebuilds the index from `hash_of`.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool, hash_of: impl Fn(&T) -> u32) {
        self.rows.retain(keep);
        self.index.clear();
        for row in &self.rows {
            self.index.push(hash_of(row));
        }
    }
}

impl<T> Default for Dense<T> {
    fn default() -> Self {
        Self::new()
    }
}
