//! Count-Min with conservative update: only counters below the new estimate are increased.
//!
//! C. Estan, G. Varghese, "New Directions in Traffic Measurement and Accounting", SIGCOMM 2002. A key
//! with estimate m and weight w raises its counters to m + w where they are below, and no further.
//!
//! Invariants: an estimate is never below the count, and never above that of plain Count-Min. Counters depend on the
//! order of the stream. After merging, by addition, the estimate is still never below the count, but less exact than
//! that of one sketch for the whole stream. Nothing can be subtracted.

use crate::{
    face::{Estimate, Mismatch, Sketch},
    grid::{Cell, Grid, Shape, by_grid, with_rows},
    image::{ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
};
use std::marker::PhantomData;

/// A Count-Min sketch with conservative update and counters of type `C`.
#[derive(Clone, Debug)]
pub struct ConservativeCountMin<K, C = u32> {
    pub(crate) grid: Grid<C>,
    key: PhantomData<K>,
}

impl<K: Key, C: Cell> ConservativeCountMin<K, C> {
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

    /// Updates the sketch, and calls `seen` with each item and its new estimate.
    #[inline(always)]
    pub(crate) fn update_with<I: Item<K>>(&mut self, burst: &[I], mut seen: impl FnMut(&I, u64)) {
        let mut items = burst.iter();
        with_rows!(self.grid.shape.rows(), R => {
            self.grid.each::<K, I, R>(burst, |cells, places, weight, near_full| {
                let least = places.map(|place| cells[place]).into_iter().min().unwrap_or_default();
                let raised = if near_full {
                    crate::grid::saturating(least, weight)
                } else {
                    least.plus(C::of(weight))
                };
                for place in places {
                    let cell = &mut cells[place];
                    *cell = (*cell).max(raised);
                }
                if let Some(item) = items.next() {
                    seen(item, raised.get());
                }
            });
        });
    }

    const KIND: ImageKind =
        if size_of::<C>() == 4 { ImageKind::Conservative32 } else { ImageKind::Conservative64 };
}

impl<K: Key, C: Cell> Sketch for ConservativeCountMin<K, C> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        self.update_with(burst, |_, _| {});
    }

    by_grid!();
}
