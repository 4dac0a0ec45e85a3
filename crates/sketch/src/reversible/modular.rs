//! Schweller's reversible sketch: the index of a counter consists of hashes of the key's bytes, so that it can be
//! decomposed again.
//!
//! R. Schweller et al., "Reversible Sketches: Enabling Monitoring and Analysis over High-speed Data
//! Streams", IEEE/ACM ToN 15(5), 2007.
//!
//! ```text
//!  key, 32 bits ─▶ mangled ─▶ │ byte 0 │ byte 1 │ byte 2 │ byte 3 │     5 rows of 4,096 counters;
//!                              3 bits   3 bits   3 bits   3 bits        each row hashes each byte
//!                            └─────── index of a counter ───────┘      with its own random table
//! ```
//!
//! To recover keys, prefixes are extended byte by byte; a prefix is kept only if it leads to a heavy counter in every
//! row. The results are converted back to keys and confirmed by an ordinary Count-Min. With about 100 heavy counters
//! among the 4,096 of a row this takes a few million steps; with a quarter of them heavy the search would not end, so
//! the caller limits the steps. Mangling spreads neighbouring addresses, which have most bytes in common.
//!
//! Invariants: no counter is below the count of a key, so a completed search misses no heavy key. The sketch is linear:
//! merging adds and subtracting subtracts, bit for bit.

use ringtap_base::SplitMix;

use super::{Budget, SearchBudgetExceeded};
use crate::{
    count_min::CountMin,
    face::{Estimate, Heavy, Linear, Mismatch, Sketch, SubtractError, heaviest},
    grid::{Grid, Shape},
    image::{ImageError, ImageKind, Reader, Writer},
    key::Item,
};

/// Five rows of 12-bit indices fit a word, so four table reads give all of them.
const ROWS: usize = 5;
const INDEX_BITS: usize = 12;
const WIDTH: usize = 1 << INDEX_BITS;
const PART_BITS: usize = 3;

/// 32-bit keys: addresses.
#[derive(Clone, Debug)]
pub struct ReversibleModular {
    mangle: Mangle,
    /// For each byte and its value: the parts of the indices of all rows.
    parts: Box<[[u64; 256]; 4]>,
    counters: Vec<u64>,
    /// Confirms recovered keys.
    verify: CountMin<[u8; 4], u64>,
}

impl ReversibleModular {
    /// Creates an empty sketch; `verify` is the shape of the confirming Count-Min.
    pub fn new(verify: Shape, seed: u64) -> Self {
        Self::of(CountMin::new(verify, seed), vec![0; ROWS * WIDTH])
    }

    fn of(verify: CountMin<[u8; 4], u64>, counters: Vec<u64>) -> Self {
        let mut random = SplitMix::new(!verify.grid.hasher.seed());
        let mangle = Mangle::new(&mut random);
        let mut parts = Box::new([[0; 256]; 4]);
        for (byte, table) in parts.iter_mut().enumerate() {
            for entry in table {
                let random = random.next();
                for row in 0..ROWS {
                    let part = random >> (row * PART_BITS) & ((1 << PART_BITS) - 1);
                    *entry |= part << (row * INDEX_BITS + byte * PART_BITS);
                }
            }
        }
        Self { mangle, parts, counters, verify }
    }

    /// The indices of all rows, side by side.
    fn indices(&self, key: &[u8; 4]) -> u64 {
        let bytes = self.mangle.apply(u32::from_le_bytes(*key)).to_le_bytes();
        (0..4).fold(0, |all, byte| all | self.parts[byte][usize::from(bytes[byte])])
    }

    /// All keys whose estimate reaches the threshold (at least 1), heaviest first. The error means that `steps`
    /// prefixes were not enough.
    pub fn recover(
        &self,
        threshold: u64,
        steps: u64,
    ) -> Result<Vec<Heavy<[u8; 4]>>, SearchBudgetExceeded> {
        let threshold = threshold.max(1);
        // For each number of bytes and each row: the beginnings of indices of heavy counters.
        let mut leads = vec![vec![false; ROWS * WIDTH]; 5];
        for (at, _) in self.counters.iter().enumerate().filter(|(_, count)| **count >= threshold) {
            for (bytes, leads) in leads.iter_mut().enumerate() {
                let part = (at % WIDTH) & ((1 << (bytes * PART_BITS)) - 1);
                leads[at / WIDTH * WIDTH + part] = true;
            }
        }
        let mut budget = Budget::new(steps);
        let mut prefixes = vec![(0u32, 0u64)];
        for byte in 0..4 {
            let mut longer = Vec::new();
            for &(prefix, indices) in &prefixes {
                for value in 0..256usize {
                    budget.step()?;
                    let indices = indices | self.parts[byte][value];
                    let leads = &leads[byte + 1];
                    if (0..ROWS).all(|row| leads[row * WIDTH + index(indices, row)]) {
                        longer.push((prefix | (value as u32) << (8 * byte), indices));
                    }
                }
            }
            prefixes = longer;
        }
        let keys = prefixes.into_iter().map(|(mangled, _)| self.mangle.undo(mangled).to_le_bytes());
        let heavy = keys.map(|key| Heavy { key, estimate: self.estimate(&key) });
        Ok(heaviest(heavy, threshold, usize::MAX))
    }
}

fn index(indices: u64, row: usize) -> usize {
    (indices >> (row * INDEX_BITS)) as usize & (WIDTH - 1)
}

impl Sketch for ReversibleModular {
    type Key = [u8; 4];

    fn update_burst<I: Item<[u8; 4]>>(&mut self, burst: &[I]) {
        for item in burst {
            let indices = self.indices(item.key());
            for row in 0..ROWS {
                let counter = &mut self.counters[row * WIDTH + index(indices, row)];
                *counter = counter.saturating_add(item.weight());
            }
        }
        self.verify.update_burst(burst);
    }

    /// The estimate of the Count-Min, or lower if one of the other counters is lower.
    fn estimate(&self, key: &[u8; 4]) -> Estimate {
        let indices = self.indices(key);
        let least = (0..ROWS).map(|row| self.counters[row * WIDTH + index(indices, row)]).min();
        let estimate = self.verify.estimate(key);
        let upper = estimate.upper.min(least.unwrap_or(u64::MAX));
        Estimate { lower: estimate.lower.min(upper), value: upper, upper, ..estimate }
    }

    fn total(&self) -> u64 {
        self.verify.total()
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.verify.merge(&other.verify)?;
        for (counter, other) in self.counters.iter_mut().zip(&other.counters) {
            *counter = counter.saturating_add(*other);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.verify.clear();
        self.counters.fill(0);
    }

    fn memory_bytes(&self) -> usize {
        let tables = size_of_val(&*self.parts) + self.counters.len() * size_of::<u64>();
        tables + self.verify.memory_bytes()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let grid = &self.verify.grid;
        let mut image = Writer::new::<[u8; 4]>(ImageKind::ReversibleModular, grid.hasher.seed());
        grid.write(&mut image);
        for counter in &self.counters {
            image.u64(*counter);
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<[u8; 4]>(bytes, ImageKind::ReversibleModular)?;
        let verify = CountMin::of(Grid::read(&mut image)?);
        let pieces = image.pieces(ROWS * WIDTH, 8)?;
        let counters: Vec<u64> = pieces.map(|piece| crate::hash::word(piece, 0)).collect();
        image.finish()?;
        if counters.iter().any(|&counter| counter > verify.total()) {
            return Err(ImageError::Impossible("a counter above the total"));
        }
        Ok(Self::of(verify, counters))
    }
}

impl Linear for ReversibleModular {
    fn subtract(&mut self, part: &Self) -> Result<(), SubtractError> {
        self.verify.grid.check(&part.verify.grid)?;
        let pairs = || self.counters.iter().zip(&part.counters);
        if pairs().any(|(whole, part)| whole < part) {
            return Err(SubtractError::NotContained);
        }
        self.verify.subtract(&part.verify)?;
        for (whole, part) in self.counters.iter_mut().zip(&part.counters) {
            *whole -= part;
        }
        Ok(())
    }
}

/// A keyed permutation of 32-bit words: xor, multiply, shift, twice.
#[derive(Clone, Debug)]
struct Mangle {
    xor: [u32; 2],
    odd: [u32; 2],
    inverse: [u32; 2],
}

impl Mangle {
    fn new(random: &mut SplitMix) -> Self {
        let xor = [random.next() as u32, random.next() as u32];
        let odd = [random.next() as u32 | 1, random.next() as u32 | 1];
        // Newton's method: each step doubles the number of correct bits; an odd number is its own inverse in three
        // bits.
        let inverse = odd.map(|odd| {
            (0..4).fold(odd, |inverse, _| {
                inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse)))
            })
        });
        Self { xor, odd, inverse }
    }

    fn apply(&self, mut word: u32) -> u32 {
        for i in 0..2 {
            word = (word ^ self.xor[i]).wrapping_mul(self.odd[i]);
            word ^= word >> 16;
        }
        word
    }

    fn undo(&self, mut word: u32) -> u32 {
        for i in [1, 0] {
            word ^= word >> 16;
            word = word.wrapping_mul(self.inverse[i]) ^ self.xor[i];
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangling_is_invertible_and_depends_on_the_seed() {
        let [a, b] = [1, 2].map(|seed| Mangle::new(&mut SplitMix::new(seed)));
        for word in (0..100_000).chain([u32::MAX, 1 << 31]) {
            assert_eq!(a.undo(a.apply(word)), word);
        }
        assert!((0..100).any(|word| a.apply(word) != b.apply(word)));
    }
}
