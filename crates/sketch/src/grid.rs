//! Rows of counters; every key has one counter in each row.
//!
//! ```text
//!            width, a power of two
//!          ┌───┬───┬───┬───┬───┬───┬───┬───┐
//!   row 0  │   │   │ ● │   │   │   │   │   │     ● the key's counters: 32 bits of
//!   row 1  │   │   │   │   │   │   │ ● │   │       its hash choose one in each row
//!   row 2  │ ● │   │   │   │   │   │   │   │
//!          └───┴───┴───┴───┴───┴───┴───┴───┘
//! ```

use crate::{
    face::{Estimate, InvalidSize, Mismatch, SubtractError},
    hash::{Hash, Hasher},
    image::{ImageError, Reader, Writer},
    key::{Item, Key},
};

/// Above this many bytes, counters are prefetched. Smaller sketches are in a core's own cache, where prefetching costs
/// more than it gains (docs/SKETCHES.md).
const NEAR: usize = 1 << 20;

/// Keys hashed before their counters are accessed.
pub(crate) const AHEAD: usize = 32;

/// The number of rows, and of counters in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    rows: u8,
    lg_width: u8,
}

impl Shape {
    /// 1 to 8 rows; the width is a power of two up to 2³¹.
    pub fn new(rows: usize, width: usize) -> Result<Self, InvalidSize> {
        if !(1..=8).contains(&rows) {
            return Err(InvalidSize::Rows(rows));
        }
        if !width.is_power_of_two() || width > 1 << 31 {
            return Err(InvalidSize::Width(width));
        }
        Ok(Self { rows: rows as u8, lg_width: width.trailing_zeros() as u8 })
    }

    /// The smallest shape whose estimates exceed the count by at most `epsilon` × total, each with a probability of at
    /// least 1 − `delta`. At most 8 rows, so delta is at least e⁻⁸.
    pub fn for_error(epsilon: f64, delta: f64) -> Result<Self, InvalidSize> {
        let between = |x: f64| x > 0.0 && x < 1.0;
        if !between(epsilon) || !between(delta) {
            return Err(InvalidSize::Error);
        }
        let width = (std::f64::consts::E / epsilon).ceil() as usize;
        let width = width.checked_next_power_of_two().ok_or(InvalidSize::Width(width))?;
        Self::new((1.0 / delta).ln().ceil() as usize, width)
    }

    /// Number of rows.
    pub fn rows(self) -> usize {
        self.rows.into()
    }

    /// Counters in a row.
    pub fn width(self) -> usize {
        1 << self.lg_width
    }

    /// e / width: the largest error of an estimate, as a fraction of the total.
    pub fn epsilon(self) -> f64 {
        std::f64::consts::E / self.width() as f64
    }

    /// e^−rows: the largest probability that the error of an estimate exceeds this.
    pub fn delta(self) -> f64 {
        (-f64::from(self.rows)).exp()
    }

    pub(crate) fn cells(self) -> usize {
        self.rows() * self.width()
    }

    /// The positions of a key in the first `R` rows.
    #[inline(always)]
    pub(crate) fn places<const R: usize>(self, hasher: &Hasher, hash: Hash) -> [usize; R] {
        let more = if R > 4 { hasher.again(hash) } else { hash };
        std::array::from_fn(|row| {
            let lane = if row < 4 { hash.lane(row) } else { more.lane(row - 4) };
            row << self.lg_width | (lane >> (32 - u32::from(self.lg_width))) as usize
        })
    }

    /// The positions of a key in all rows, for code that need not be fast.
    pub(crate) fn all_places(self, hasher: &Hasher, hash: Hash) -> impl Iterator<Item = usize> {
        self.places::<8>(hasher, hash).into_iter().take(self.rows())
    }

    pub(crate) fn write(self, image: &mut Writer) {
        image.u8(self.rows);
        image.u8(self.lg_width);
    }

    pub(crate) fn read(image: &mut Reader<'_>) -> Result<Self, ImageError> {
        let (rows, lg_width) = (image.u8()?, image.u8()?);
        let width = 1usize.checked_shl(lg_width.into()).unwrap_or(0);
        Self::new(rows.into(), width).map_err(|_| ImageError::Impossible("a shape"))
    }
}

/// The methods of a sketch over `K` that only forward to its grid.
macro_rules! by_grid {
    () => {
        fn estimate(&self, key: &K) -> Estimate {
            self.grid.estimate(key)
        }

        fn total(&self) -> u64 {
            self.grid.total
        }

        fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
            self.grid.merge(&other.grid)
        }

        fn clear(&mut self) {
            self.grid.clear();
        }

        fn memory_bytes(&self) -> usize {
            self.grid.memory_bytes()
        }

        fn to_bytes(&self) -> Vec<u8> {
            let mut image = Writer::new::<K>(Self::KIND, self.grid.hasher.seed());
            self.grid.write(&mut image);
            image.finish()
        }

        fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
            let mut image = Reader::open::<K>(bytes, Self::KIND)?;
            let grid = Grid::read(&mut image)?;
            image.finish()?;
            Ok(Self::of(grid))
        }
    };
}
pub(crate) use by_grid;

/// Runs a block with the number of rows as a constant.
macro_rules! with_rows {
    ($rows:expr, $R:ident => $body:expr) => {
        match $rows {
            1 => {
                const $R: usize = 1;
                $body
            }
            2 => {
                const $R: usize = 2;
                $body
            }
            3 => {
                const $R: usize = 3;
                $body
            }
            4 => {
                const $R: usize = 4;
                $body
            }
            5 => {
                const $R: usize = 5;
                $body
            }
            6 => {
                const $R: usize = 6;
                $body
            }
            7 => {
                const $R: usize = 7;
                $body
            }
            _ => {
                const $R: usize = 8;
                $body
            }
        }
    };
}
pub(crate) use with_rows;

/// A counter: `u32` for packets of an interval, `u64` for octets and long runs.
pub trait Cell: Copy + Ord + Default + Send + Sync + sealed::Sealed + 'static {
    #[doc(hidden)]
    const FULL: Self;
    #[doc(hidden)]
    fn get(self) -> u64;
    /// Converts a number that fits.
    #[doc(hidden)]
    fn of(value: u64) -> Self;
    /// The sum; the caller ensures that it fits.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

macro_rules! cell {
    ($type:ty) => {
        impl Cell for $type {
            const FULL: Self = Self::MAX;
            #[inline(always)]
            fn get(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn of(value: u64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    };
}
cell!(u32);
cell!(u64);

/// The sum, or a saturated counter.
pub(crate) fn saturating<C: Cell>(cell: C, weight: u64) -> C {
    C::of(cell.get().saturating_add(weight).min(C::FULL.get()))
}

/// The counters, the hash function, and the sum of all weights.
#[derive(Clone, Debug)]
pub(crate) struct Grid<C> {
    pub(crate) shape: Shape,
    pub(crate) hasher: Hasher,
    pub(crate) cells: Vec<C>,
    pub(crate) total: u64,
}

impl<C: Cell> Grid<C> {
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let cells = vec![C::default(); shape.cells()];
        Self { shape, hasher: Hasher::new(seed), cells, total: 0 }
    }

    /// Calls `touch` with the positions of each key of a burst, and its weight.
    ///
    /// Its last argument is true if counters may saturate; otherwise `Cell::plus` is sufficient, because no counter
    /// exceeds the total.
    #[inline(always)]
    pub(crate) fn each<K: Key, I: Item<K>, const R: usize>(
        &mut self,
        burst: &[I],
        mut touch: impl FnMut(&mut [C], [usize; R], u64, bool),
    ) {
        let weight = burst.iter().fold(0, |sum: u64, item| sum.saturating_add(item.weight()));
        self.total = self.total.saturating_add(weight);
        let near_full = self.total >= C::FULL.get();
        let Self { shape, hasher, cells, .. } = self;
        if cells.len() * size_of::<C>() <= NEAR {
            for item in burst {
                let places = shape.places(hasher, hasher.hash(item.key()));
                touch(cells, places, item.weight(), near_full);
            }
            return;
        }
        for burst in burst.chunks(AHEAD) {
            let mut places = [[0; R]; AHEAD];
            for (item, places) in burst.iter().zip(&mut places) {
                *places = shape.places(hasher, hasher.hash(item.key()));
                for &mut place in places {
                    ringtap_base::prefetch(&cells[place]);
                }
            }
            for (item, places) in burst.iter().zip(places) {
                touch(cells, places, item.weight(), near_full);
            }
        }
    }

    /// The smallest of a key's counters, with the bounds that follow from it.
    pub(crate) fn estimate<K: Key>(&self, key: &K) -> Estimate {
        let places = self.shape.all_places(&self.hasher, self.hasher.hash(key));
        let least = places.map(|place| self.cells[place]).min().unwrap_or_default();
        self.bounds(least)
    }

    pub(crate) fn bounds(&self, least: C) -> Estimate {
        // A saturated counter has an unknown value.
        let value = if least == C::FULL { self.total } else { least.get().min(self.total) };
        let error = (self.shape.epsilon() * self.total as f64).ceil() as u64;
        Estimate {
            lower: least.get().saturating_sub(error),
            value,
            upper: value,
            confidence: 1.0 - self.shape.delta(),
        }
    }

    pub(crate) fn check(&self, other: &Self) -> Result<(), Mismatch> {
        if self.shape != other.shape {
            return Err(Mismatch::Parameters);
        }
        if self.hasher.seed() != other.hasher.seed() {
            return Err(Mismatch::Seed);
        }
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check(other)?;
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            *cell = saturating(*cell, other.get());
        }
        self.total = self.total.saturating_add(other.total);
        Ok(())
    }

    pub(crate) fn subtract(&mut self, part: &Self) -> Result<(), SubtractError> {
        self.check(part)?;
        if self.total >= C::FULL.get() {
            return Err(SubtractError::Saturated);
        }
        let pairs = || self.cells.iter().zip(&part.cells);
        if self.total < part.total || pairs().any(|(whole, part)| whole < part) {
            return Err(SubtractError::NotContained);
        }
        for (whole, part) in self.cells.iter_mut().zip(&part.cells) {
            *whole = C::of(whole.get() - part.get());
        }
        self.total -= part.total;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.cells.fill(C::default());
        self.total = 0;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.cells.len() * size_of::<C>()
    }

    pub(crate) fn write(&self, image: &mut Writer) {
        self.shape.write(image);
        image.u64(self.total);
        for cell in &self.cells {
            image.bytes(&cell.get().to_le_bytes()[..size_of::<C>()]);
        }
    }

    pub(crate) fn read(image: &mut Reader<'_>) -> Result<Self, ImageError> {
        let shape = Shape::read(image)?;
        let total = image.u64()?;
        let pieces = image.pieces(shape.cells(), size_of::<C>())?;
        let cells: Vec<C> = pieces
            .map(|piece| {
                let mut word = [0; 8];
                word[..piece.len()].copy_from_slice(piece);
                C::of(u64::from_le_bytes(word))
            })
            .collect();
        if cells.iter().any(|cell| cell.get() > total) {
            return Err(ImageError::Impossible("a counter above the total"));
        }
        Ok(Self { shape, hasher: Hasher::new(image.seed), cells, total })
    }
}
