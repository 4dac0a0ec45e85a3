//! Keyed arithmetic: computes the properties of a flow from its number, without a table.
//!
//! [`Keyed::permute`] is a Feistel network of four rounds over 32 bits. Each round is invertible, so it is a bijection
//! for any key: different numbers stay different. [`Keyed::hash`] is the finalizer of SplitMix64 (Steele, Lea, Flood
//! 2014) of a keyed word.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The key; different seeds have different keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed {
    rounds: [u32; 4],
    salt: u64,
}

impl Keyed {
    pub(crate) fn new(seed: u64) -> Self {
        let mut stream = SplitMix64::seed_from_u64(seed);
        Self { rounds: std::array::from_fn(|_| stream.next_u32()), salt: stream.next_u64() }
    }

    /// A bijection of the 32-bit numbers.
    #[inline]
    pub(crate) fn permute(&self, number: u32) -> u32 {
        let (mut left, mut right) = (number >> 16, number & 0xffff);
        for round in self.rounds {
            let mixed = (right ^ round).wrapping_mul(0x9e37_79b1);
            (left, right) = (right, left ^ (mixed ^ mixed >> 15) >> 8 & 0xffff);
        }
        left << 16 | right
    }

    /// 64 well-mixed bits of a number.
    #[inline]
    pub(crate) fn hash(&self, number: u64) -> u64 {
        mix(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.salt)
    }
}

/// The finalizer of SplitMix64.
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_numbers_stay_distinct() {
        for seed in 0..4 {
            let keyed = Keyed::new(seed);
            let mut seen: Vec<u32> = (0..200_000).map(|n| keyed.permute(n)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 200_000);
        }
    }

    #[test]
    fn small_numbers_spread_over_the_whole_range() {
        let keyed = Keyed::new(9);
        for shift in [28, 12, 0] {
            let mut cells = [0u32; 16];
            (0..64_000).for_each(|n| cells[(keyed.permute(n) >> shift & 15) as usize] += 1);
            assert!(cells.iter().all(|&n| (3_500..4_500).contains(&n)), "bits {shift}: {cells:?}");
        }
    }
}
