//! The poster's reversible sketch: each entry has a counter and, for each byte of the key, the set of its values.
//!
//! X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links Using Multicore Processors": "each entry
//! of the matrix consists of a counter and several sets". The contents of the sets are not defined; here they are
//! bytes.
//!
//! ```text
//!  entry │ counter │ values of byte 0 │ values of byte 1 │ … │ values of byte n−1 │
//!           8 bytes     256 bits           256 bits               256 bits
//! ```
//!
//! To recover keys, candidates are built byte by byte from the sets of each heavy entry of row 0. A prefix is kept only
//! if in every other row the sets of a heavy entry contain all of its bytes.
//!
//! **Cost.** An entry has 8 + 32 bytes for each byte of the key: 424 for a five-tuple. The search is short only while
//! at most about 14 keys share an entry; for a million flows that needs 100 MB, more than an exact table. So the caller
//! limits the steps. The structure exists because the poster measures it.
//!
//! Invariants: counters are those of Count-Min. The bytes of a key are in the sets of all its entries, so a completed
//! search misses no heavy key. Counters are added and sets united, so merged parts equal the whole, bit for bit.

use super::{Budget, SearchBudgetExceeded};
use crate::{
    face::{Estimate, Heavy, Mismatch, Sketch, heaviest},
    grid::{Grid, Shape},
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
};
use std::marker::PhantomData;

/// 64-bit words of a set of byte values.
pub(crate) const SET_WORDS: usize = 4;

/// Counters with sets.
#[derive(Clone, Debug)]
pub struct Reversible<K> {
    grid: Grid<u64>,
    /// For entry e and byte b: the words from (e × key length + b) × 4 on.
    sets: Vec<u64>,
    key: PhantomData<K>,
}

/// The word and the bit of a byte's value in its set.
#[inline(always)]
pub(crate) fn bit<K: Key>(entry: usize, at: usize, value: u8) -> (usize, u64) {
    let set = (entry * K::BYTES + at) * SET_WORDS;
    (set + usize::from(value >> 6), 1 << (value & 63))
}

impl<K: Key> Reversible<K> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let grid = Grid::new(shape, seed);
        let sets = vec![0; shape.cells() * K::BYTES * SET_WORDS];
        Self::of(grid, sets)
    }

    pub(crate) fn of(grid: Grid<u64>, sets: Vec<u64>) -> Self {
        Self { grid, sets, key: PhantomData }
    }

    /// The number of rows and entries.
    pub fn shape(&self) -> Shape {
        self.grid.shape
    }

    fn has(&self, entry: usize, at: usize, value: u8) -> bool {
        let (word, bit) = bit::<K>(entry, at, value);
        self.sets[word] & bit != 0
    }

    /// All keys whose estimate reaches the threshold (at least 1), heaviest first. The error means that `steps`
    /// prefixes were not enough.
    pub fn recover(
        &self,
        threshold: u64,
        steps: u64,
    ) -> Result<Vec<Heavy<K>>, SearchBudgetExceeded> {
        let threshold = threshold.max(1);
        let width = self.grid.shape.width();
        let heavy_of = |row: usize| -> Vec<usize> {
            let entries = row * width..(row + 1) * width;
            entries.filter(|&entry| self.grid.cells[entry] >= threshold).collect()
        };
        let rows: Vec<Vec<usize>> = (0..self.grid.shape.rows()).map(heavy_of).collect();
        let mut search =
            Search { sketch: self, budget: Budget::new(steps), threshold, found: Vec::new() };
        for &entry in &rows[0] {
            search.extend(entry, &mut vec![0; K::BYTES], 0, &rows[1..])?;
        }
        Ok(heaviest(search.found.into_iter(), threshold, usize::MAX))
    }
}

struct Search<'a, K> {
    sketch: &'a Reversible<K>,
    budget: Budget,
    threshold: u64,
    found: Vec<Heavy<K>>,
}

impl<K: Key> Search<'_, K> {
    /// Extends a prefix of `at` bytes; `rows` are the heavy entries of the other rows that contain it.
    fn extend(
        &mut self,
        entry: usize,
        prefix: &mut Vec<u8>,
        at: usize,
        rows: &[Vec<usize>],
    ) -> Result<(), SearchBudgetExceeded> {
        if at == K::BYTES {
            self.confirm(entry, prefix);
            return Ok(());
        }
        for value in 0..=255 {
            if !self.sketch.has(entry, at, value) {
                continue;
            }
            self.budget.step()?;
            let with = |row: &Vec<usize>| -> Vec<usize> {
                row.iter().copied().filter(|&entry| self.sketch.has(entry, at, value)).collect()
            };
            let rows: Vec<Vec<usize>> = rows.iter().map(with).collect();
            if rows.iter().all(|row| !row.is_empty()) {
                prefix[at] = value;
                self.extend(entry, prefix, at + 1, &rows)?;
            }
        }
        Ok(())
    }

    /// Adds a complete key if this is its entry and its other entries contain it.
    fn confirm(&mut self, entry: usize, bytes: &[u8]) {
        let Some(key) = K::from_bytes(bytes) else { return };
        let Grid { shape, hasher, .. } = &self.sketch.grid;
        let own = shape.all_places(hasher, hasher.hash(&key)).next() == Some(entry);
        let estimate = self.sketch.estimate(&key);
        if own && estimate.value >= self.threshold {
            self.found.push(Heavy { key, estimate });
        }
    }
}

impl<K: Key> Sketch for Reversible<K> {
    type Key = K;

    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        let Self { grid, sets, .. } = self;
        for item in burst.iter().filter(|item| item.weight() > 0) {
            let (key, weight) = (item.key(), item.weight());
            grid.total = grid.total.saturating_add(weight);
            for entry in grid.shape.all_places(&grid.hasher, grid.hasher.hash(key)) {
                grid.cells[entry] = grid.cells[entry].saturating_add(weight);
                for (at, &value) in key.bytes().iter().enumerate() {
                    let (word, bit) = bit::<K>(entry, at, value);
                    sets[word] |= bit;
                }
            }
        }
    }

    /// As Count-Min; and 0 for a key with a byte that is not in the sets of one of its entries.
    fn estimate(&self, key: &K) -> Estimate {
        let Grid { shape, hasher, .. } = &self.grid;
        let mut entries = shape.all_places(hasher, hasher.hash(key));
        let bytes = || key.bytes().iter().enumerate();
        if entries.any(|entry| bytes().any(|(at, &value)| !self.has(entry, at, value))) {
            return Estimate::certain(0, 0, 0);
        }
        self.grid.estimate(key)
    }

    fn total(&self) -> u64 {
        self.grid.total
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.grid.merge(&other.grid)?;
        for (set, other) in self.sets.iter_mut().zip(&other.sets) {
            *set |= other;
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.grid.clear();
        self.sets.fill(0);
    }

    fn memory_bytes(&self) -> usize {
        self.grid.memory_bytes() + self.sets.len() * size_of::<u64>()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::Reversible, self.grid.hasher.seed());
        self.grid.write(&mut image);
        for set in &self.sets {
            image.u64(*set);
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::Reversible)?;
        let grid = Grid::<u64>::read(&mut image)?;
        let words = grid.cells.len() * K::BYTES * SET_WORDS;
        let sets = image.pieces(words, 8)?.map(|piece| crate::hash::word(piece, 0)).collect();
        image.finish()?;
        Ok(Self::of(grid, sets))
    }
}
