//! Count-Min whose counters many threads add to.
//!
//! Invariant: `fetch_add` is one indivisible step, so no addition is lost; sums do not depend on the order. Relaxed is
//! enough, for no other memory is guarded by the counters: who takes the result owns the sketch, and
//! became its owner by joining the threads. There is no shared total, which every update would fight for: a row's
//! counters add up to it.

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

/// Counters of 64 bits. A total beyond 2⁶⁴ − 1 wraps around.
pub struct SharedCountMin<K> {
    pub(super) shape: Shape,
    pub(super) hasher: Hasher,
    cells: Box<[AtomicU64]>,
    key: PhantomData<K>,
}

impl<K: Key> SharedCountMin<K> {
    pub fn new(shape: Shape, seed: u64) -> Self {
        let cells = (0..shape.cells()).map(|_| AtomicU64::new(0)).collect();
        Self { shape, hasher: Hasher::new(seed), cells, key: PhantomData }
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// Adds to the counters of a key, and shows `touched` which they are.
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
