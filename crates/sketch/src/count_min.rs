//! Count-Min: every key adds to one counter a row; the smallest of its counters is the estimate.
//!
//! G. Cormode, S. Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its
//! Applications", J. Algorithms 55(1), 2005.
//!
//! Invariants: an estimate is never below the count. It exceeds the count by more than ε × total (ε = e / width) with a
//! probability of at most e^−rows. Counters are sums, so the merged sketches of parts of a stream equal the sketch of
//! the stream bit for bit. No keys are stored: heavy keys can be confirmed, not listed.

use crate::{
    face::{Estimate, Linear, Mismatch, Sketch, SubtractError},
    grid::{Cell, Grid, Shape, by_grid, with_rows},
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
};
use std::marker::PhantomData;

/// Counters of type `C`: `u64`, or `u32`, which saturate at 2³² − 1 (the estimates show it).
#[derive(Clone, Debug)]
pub struct CountMin<K, C = u32> {
    pub(crate) grid: Grid<C>,
    key: PhantomData<K>,
}

impl<K: Key, C: Cell> CountMin<K, C> {
    /// Creates an empty sketch.
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self::of(Grid::new(shape, seed))
    }

    pub(crate) fn of(grid: Grid<C>) -> Self {
        Self { grid, key: PhantomData }
    }

    /// The number of rows and counters.
    pub fn shape(&self) -> Shape {
        self.grid.shape
    }

    const KIND: ImageKind =
        if size_of::<C>() == 4 { ImageKind::CountMin32 } else { ImageKind::CountMin64 };
}

impl<K: Key, C: Cell> Sketch for CountMin<K, C> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        with_rows!(self.grid.shape.rows(), R => {
            self.grid.each::<K, I, R>(burst, |cells, places, weight, near_full| {
                for place in places {
                    let cell = &mut cells[place];
                    *cell = if near_full {
                        crate::grid::saturating(*cell, weight)
                    } else {
                        cell.plus(C::of(weight))
                    };
                }
            });
        });
    }

    by_grid!();
}

impl<K: Key, C: Cell> Linear for CountMin<K, C> {
    fn subtract(&mut self, part: &Self) -> Result<(), SubtractError> {
        self.grid.subtract(&part.grid)
    }
}
