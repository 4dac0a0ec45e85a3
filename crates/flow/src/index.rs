//! The index of a dense table: from a row's hash to its position.
//!
//! ```text
//! words:   | tag (8 bits) | position + 1 (24 bits) |      0 = free
//! hashes:  | hash of row 0 | hash of row 1 | …
//! ```
//!
//! Open addressing with linear probing and deletion by shifting back, so no tombstones accumulate.
//! Four bytes a word keep the index of a hundred thousand flows in a core's L2 cache; with the tag
//! (the hash's upper bits) only one foreign word in 256 costs a read of its row. Growing needs the
//! hashes alone, not the rows.
//!
//! Growing is spread over many rows: the next words are written during the last eighth before a growth, 64 for each new
//! row; then each new row moves 32 old ones. A removal first moves all rows that still wait.
//!
//! ```text
//! rows      | 0 … moved | moved … end       | end …       |
//! found in  | words     | before, unchanged | words       |
//! ```
//!
//! Words of rows that have moved stay in `before`. They are still right, because a removal ends the move first.

use std::ops::Range;

use ringtap_base::prefetch;

/// Words of the next table that are written for a new row.
const WRITTEN: usize = 64;
/// Rows that move for a new row.
const MOVED: usize = 32;
/// Words before the last growth that are given back at once: unmapping takes a tenth of a millisecond for a megabyte.
const RELEASED: usize = 1 << 19;
/// New rows between two such parts, on average.
const RELEASE_EVERY: u32 = 256;

/// Positions 0, 1, 2 … by hash. Several rows may share a hash; the caller compares keys.
pub(crate) struct Index {
    words: Vec<u32>,
    mask: usize,
    hashes: Vec<u32>,
    /// The words before the last growth, until they are given back, and the rows that are found there.
    before: Vec<u32>,
    waiting: Range<usize>,
    /// The next words, as far as they are written.
    next: Vec<u32>,
    /// The most rows that are expected.
    most: usize,
}

impl Index {
    /// Most rows.
    pub(crate) const MOST: usize = (1 << 24) - 1;

    const SMALLEST: usize = 1 << 10;

    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; Self::SMALLEST],
            mask: Self::SMALLEST - 1,
            hashes: Vec::new(),
            before: Vec::new(),
            waiting: 0..0,
            next: Vec::new(),
            most: Self::MOST,
        }
    }

    /// Returns the index, for at most `most` rows: words for more are not prepared.
    pub(crate) fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Reserves address space for the hashes of all rows: moving large blocks takes milliseconds.
    pub(crate) fn reserve(&mut self) {
        // If the system does not reserve that much, they grow when needed.
        let _ = self.hashes.try_reserve_exact(self.most);
    }

    /// Prefetches the word at the hash's home.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        prefetch(&self.words[hash as usize & self.mask]);
    }

    /// Whether some rows are found among the words before.
    #[inline(always)]
    pub(crate) fn is_moving(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Prefetches the word at the hash's home before the last growth, while rows move.
    #[inline(always)]
    pub(crate) fn prefetch_before(&self, hash: u32) {
        if let Some(word) = self.before.get(hash as usize & (self.mask >> 1)) {
            prefetch(word);
        }
    }

    /// Reads the word at the hash's home: a hint that must be checked; also loads its cache line.
    #[inline(always)]
    pub(crate) fn home(&self, hash: u32) -> u32 {
        self.words[hash as usize & self.mask]
    }

    /// The position a word names, if its tag is that of `hash`.
    #[inline(always)]
    pub(crate) const fn position(word: u32, hash: u32) -> Option<usize> {
        if word != 0 && (word ^ hash) >> 24 == 0 {
            Some((word & 0xff_ffff) as usize - 1)
        } else {
            None
        }
    }

    /// The first position with this hash's tag that `is_it` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        match find_in(&self.words, self.mask, hash, &mut is_it) {
            None if self.is_moving() => self.find_before(hash, is_it),
            found => found,
        }
    }

    #[inline(never)]
    fn find_before(&self, hash: u32, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        find_in(&self.before, self.mask >> 1, hash, &mut is_it)
    }

    /// Adds the next position.
    ///
    /// # Panics
    /// If there are [`Index::MOST`] rows already.
    pub(crate) fn push(&mut self, hash: u32) {
        let position = self.hashes.len();
        assert!(position < Self::MOST, "a table holds at most {} rows", Self::MOST);
        // At most half full: probes stay short with linear probing.
        if (position + 1) * 2 > self.words.len() {
            self.grow();
        }
        self.hashes.push(hash);
        self.place(position);
        if self.is_moving() {
            self.move_rows(MOVED);
        } else if !self.before.is_empty() && hash.is_multiple_of(RELEASE_EVERY) {
            self.before.truncate(self.before.len().saturating_sub(RELEASED));
            self.before.shrink_to_fit();
        } else if position * 16 > self.words.len() * 7 {
            self.prepare();
        }
    }

    /// Removes a position; the last row takes its number, as in [`Vec::swap_remove`].
    pub(crate) fn swap_remove(&mut self, position: usize) {
        self.move_rows(usize::MAX);
        let mut hole = self.slot_of(position);
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let word = self.words[at];
            if word == 0 {
                break;
            }
            let home = self.hashes[(word & 0xff_ffff) as usize - 1] as usize & self.mask;
            // The word may move back into the hole unless its home lies behind the hole.
            if at.wrapping_sub(home) & self.mask >= at.wrapping_sub(hole) & self.mask {
                self.words[hole] = word;
                hole = at;
            }
        }
        self.words[hole] = 0;
        let last = self.hashes.len() - 1;
        if position != last {
            let slot = self.slot_of(last);
            self.words[slot] = self.word(last) - (last - position) as u32;
        }
        self.hashes.swap_remove(position);
    }

    /// Removes a position as [`Index::swap_remove`] does, but leaves the words unchanged: many
    /// removals and one [`Index::rebuild`] cost less than as many searches. No look-up is allowed
    /// until then.
    pub(crate) fn swap_remove_later(&mut self, position: usize) {
        self.hashes.swap_remove(position);
    }

    /// Rebuilds all words.
    pub(crate) fn rebuild(&mut self) {
        self.drop_before();
        // After a flood the index shrinks; otherwise every later sweep would be slow.
        let enough = (self.hashes.len() * 4).next_power_of_two().max(Self::SMALLEST);
        if self.words.len() > enough * 8 {
            self.words = free_words(Vec::new(), enough);
            self.mask = enough - 1;
            self.next = Vec::new();
        } else {
            self.words.fill(0);
            if self.words.len() > enough {
                self.next = Vec::new();
            }
        }
        for position in 0..self.hashes.len() {
            self.place(position);
        }
    }

    /// Removes everything, keeps the memory.
    pub(crate) fn clear(&mut self) {
        if !self.hashes.is_empty() {
            self.drop_before();
            self.hashes.clear();
            self.words.fill(0);
        }
    }

    fn slot_of(&self, position: usize) -> usize {
        let wanted = self.word(position);
        let mut at = self.hashes[position] as usize & self.mask;
        while self.words[at] != wanted {
            assert!(self.words[at] != 0, "the index has lost position {position}");
            at = (at + 1) & self.mask;
        }
        at
    }

    #[inline(always)]
    fn word(&self, position: usize) -> u32 {
        self.hashes[position] & 0xff00_0000 | (position as u32 + 1)
    }

    #[inline(always)]
    fn place(&mut self, position: usize) {
        let mut at = self.hashes[position] as usize & self.mask;
        while self.words[at] != 0 {
            at = (at + 1) & self.mask;
        }
        self.words[at] = self.word(position);
    }

    #[cold]
    fn grow(&mut self) {
        self.move_rows(usize::MAX);
        let doubled = self.words.len() * 2;
        let next = free_words(std::mem::take(&mut self.next), doubled);
        self.before = std::mem::replace(&mut self.words, next);
        self.mask = doubled - 1;
        self.waiting = 0..self.hashes.len();
    }

    /// Moves the next rows that wait, at most this number.
    #[inline(never)]
    fn move_rows(&mut self, most: usize) {
        let Range { start, end } = self.waiting;
        self.waiting.start = start.saturating_add(most).min(end);
        for position in start..self.waiting.start {
            self.place(position);
        }
    }

    fn drop_before(&mut self) {
        (self.before, self.waiting) = (Vec::new(), 0..0);
    }

    /// Writes some of the next words, if they will be needed.
    #[inline(never)]
    fn prepare(&mut self) {
        let (doubled, written) = (self.words.len() * 2, self.next.len());
        if written < doubled && self.words.len() < self.most * 2 {
            self.next.reserve_exact(doubled - written);
            self.next.resize((written + WRITTEN).min(doubled), 0);
        }
    }
}

/// The first position in `words` with this hash's tag that `is_it` accepts.
#[inline(always)]
fn find_in(
    words: &[u32],
    mask: usize,
    hash: u32,
    is_it: &mut impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut at = hash as usize & mask;
    loop {
        let word = words[at];
        if word == 0 {
            return None;
        }
        if let Some(position) = Index::position(word, hash)
            && is_it(position)
        {
            return Some(position);
        }
        at = (at + 1) & mask;
    }
}

/// `count` free words in the place of `words`, each written: memory that is read before it is written is mapped to a shared
/// page of zeros, and then each page faults twice, the second time on all cores.
fn free_words(mut words: Vec<u32>, count: usize) -> Vec<u32> {
    words.reserve_exact(count - words.len());
    // Otherwise the compiler requests zeroed memory instead.
    words = std::hint::black_box(words);
    words.resize(count, 0);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Few hashes close to one another: collisions, equal tags and much shifting.
        #[test]
        fn it_agrees_with_a_list(steps in prop::collection::vec((0u32..60, any::<bool>()), 1..600)) {
            let mut index = Index::new();
            let mut rows: Vec<u32> = Vec::new();
            for (number, add) in steps {
                let hash = ((number % 3) << 24) | (1000 + number % 40);
                if add || rows.is_empty() {
                    index.push(hash);
                    rows.push(hash);
                } else {
                    let position = number as usize % rows.len();
                    if number % 2 == 0 {
                        index.swap_remove(position);
                    } else {
                        index.swap_remove_later(position);
                        index.rebuild();
                    }
                    rows.swap_remove(position);
                }
                for (position, &hash) in rows.iter().enumerate() {
                    prop_assert_eq!(index.find(hash, |p| p == position), Some(position));
                }
                let used = index.words.iter().filter(|&&word| word != 0).count();
                prop_assert_eq!(used, rows.len());
            }
        }
    }

    #[test]
    fn rows_are_found_while_others_move() {
        let hash = |number: u32| number.wrapping_mul(0x9e37_79b9);
        let (mut index, mut rows, mut moves) = (Index::new(), Vec::new(), [0; 3]);
        for number in 0..40_000_u32 {
            index.push(hash(number));
            rows.push(hash(number));
            if !index.waiting.is_empty() {
                moves[0] += 1;
                let Range { start, end } = index.waiting;
                for position in [0, start - 1, start, end - 1, rows.len() - 1] {
                    let found = index.find(rows[position], |at| at == position);
                    assert_eq!(found, Some(position), "{number}");
                }
                // Of three growths, one ends with a removal and one with a rebuilt index.
                let gone = number as usize * 7 % rows.len();
                match (start * 2 > end, index.words.len().ilog2() % 3) {
                    (true, 0) => {
                        moves[1] += 1;
                        index.swap_remove(gone);
                        rows.swap_remove(gone);
                    }
                    (true, 1) => {
                        moves[2] += 1;
                        index.swap_remove_later(gone);
                        rows.swap_remove(gone);
                        index.rebuild();
                    }
                    _ => {}
                }
            }
            assert!(index.next.len() <= index.words.len() * 2);
        }
        for (position, &hash) in rows.iter().enumerate() {
            assert_eq!(index.find(hash, |at| at == position), Some(position));
        }
        assert!(moves.iter().all(|&times| times > 0), "{moves:?}");
    }

    #[test]
    fn growing_and_clearing() {
        let hash = |position: usize| (position as u32).wrapping_mul(0x9e37_79b9);
        let mut index = Index::new();
        for _ in 0..2 {
            (0..100_000).for_each(|position| index.push(hash(position)));
            for position in 0..100_000 {
                assert_eq!(index.find(hash(position), |p| p == position), Some(position));
            }
            index.clear();
            assert_eq!(index.find(hash(5), |_| true), None);
        }
    }
}
