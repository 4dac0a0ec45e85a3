//! Count-Min with counters that many threads update.
//!
//! Invariant: `fetch_add` is atomic, so no addition is lost; sums do not depend on the order. Relaxed is enough,
//! because the counters protect no other memory: the thread that reads the result has joined the other threads. There
//! is no shared total, which every update would contend for: the counters of a row add up to it.

use super::SharedSketch;
use crate::{
    count_min::CountMin,
    grid::{Grid, Shape},
    hash::Hasher,
    key::Key,
};
use std::{
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counters of 64 bits. A total above 2⁶⁴ − 1 wraps around.
pub struct SharedCountMin<K> {
    pub(super) shape: Shape,
    pub(super) hasher: Hasher,
    cells: Box<[AtomicU64]>,
    key: PhantomData<K>,
}

impl<K: Key> SharedCountMin<K> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let cells = (0..shape.cells()).map(|_| AtomicU64::new(0)).collect();
        Self { shape, hasher: Hasher::new(seed), cells, key: PhantomData }
    }

    /// Bytes of memory, without the struct itself.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// Adds to the counters of a key, and calls `touched` with their positions.
    #[inline(always)]
    pub(super) fn add(&self, key: &K, weight: u64, mut touched: impl FnMut(usize)) {
        let hash = self.hasher.hash(key);
        for place in self.shape.all_places(&self.hasher, hash) {
            self.cells[place].fetch_add(weight, Relaxed);
            touched(place);
        }
    }

    pub(super) fn into_grid(self) -> Grid<u64> {
        let mut grid = Grid::new(self.shape, self.hasher.seed());
        for (cell, shared) in grid.cells.iter_mut().zip(self.cells) {
            *cell = shared.into_inner();
        }
        let row = &grid.cells[..self.shape.width()];
        grid.total = row.iter().fold(0, |sum, &cell| sum.wrapping_add(cell));
        grid
    }
}

impl<K: Key> SharedSketch for SharedCountMin<K> {
    type Separate = CountMin<K, u64>;

    #[inline]
    fn update(&self, key: &K, weight: u64) {
        self.add(key, weight, |_| {});
    }

    fn into_separate(self) -> CountMin<K, u64> {
        CountMin::of(self.into_grid())
    }
}
