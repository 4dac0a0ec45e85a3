//! Buckets of a histogram with a bounded relative error: quantiles of numbers from counts by bucket.
//!
//! ```text
//! numbers  0 1 2 … 63 │ 64–65 66–67 … 126–127 │ 128–131 … 252–255 │ …      32 buckets for each power of two
//! ```
//!
//! A quantile is the middle of the bucket that has the number of its rank. So it is exact below 64, and otherwise within
//! 1/64 (1.6 %) of that number.
//!
//! Why not an existing histogram: counts by bucket are rows, which states add up without loading a histogram, and a
//! server with few numbers has few of them. All is integer arithmetic, so results are equal on all machines.

/// Buckets of a power of two, as a power of two.
const STEPS: u32 = 5;
/// Numbers below this have a bucket each.
const EXACT: u64 = 2 << STEPS;

/// The bucket of a number.
#[inline]
pub const fn bucket_of(number: u64) -> u16 {
    if number < EXACT {
        return number as u16;
    }
    // The highest bits of the number, of which the first is set.
    let shift = 63 - number.leading_zeros() - STEPS;
    ((shift << STEPS) + (number >> shift) as u32) as u16
}

/// The middle number of a bucket, rounded down.
pub const fn middle_of(bucket: u16) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = (bucket >> STEPS) - 1;
    let low = (bucket - (shift << STEPS)) << shift;
    low + ((1 << shift) - 1) / 2
}

/// Quantiles in thousandths, ascending, of numbers with these counts by bucket, ascending: of each the smallest number
/// below or at which that part of all numbers is. Zeros without numbers.
pub fn quantiles<const N: usize>(counts: &[(u16, u64)], thousandths: [u16; N]) -> [u64; N] {
    let all: u128 = counts.iter().map(|&(_, count)| u128::from(count)).sum();
    let (mut below, mut at) = (0, 0);
    thousandths.map(|part| {
        let rank = (all * u128::from(part)).div_ceil(1000).max(1);
        while at < counts.len() && below + u128::from(counts[at].1) < rank {
            below += u128::from(counts[at].1);
            at += 1;
        }
        counts.get(at).map_or(0, |&(bucket, _)| middle_of(bucket))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_ascend_without_gaps() {
        let mut last = 0;
        for number in 0..1 << 20 {
            let bucket = bucket_of(number);
            assert!(bucket == last || bucket == last + 1, "{number}");
            last = bucket;
        }
        assert_eq!((bucket_of(63), bucket_of(64), bucket_of(65), bucket_of(66)), (63, 64, 64, 65));
        for bucket in 0..=bucket_of(u64::MAX) {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
        assert_eq!(quantiles(&[], [500]), [0]);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_their_bound(
            mut numbers in prop::collection::vec((0..50_u32).prop_flat_map(|bits| 0..1_u64 << bits), 1..200),
            parts in prop::array::uniform3(0..=1000_u16),
        ) {
            let mut counts = BTreeMap::new();
            numbers.iter().for_each(|&number| *counts.entry(bucket_of(number)).or_default() += 1);
            numbers.sort_unstable();
            let mut parts = parts;
            parts.sort_unstable();
            let counts: Vec<_> = counts.into_iter().collect();
            for (part, found) in parts.into_iter().zip(quantiles(&counts, parts)) {
                let rank = (numbers.len() * usize::from(part)).div_ceil(1000).max(1);
                let exact = numbers[rank - 1];
                prop_assert!(found.abs_diff(exact) <= exact / 64, "{found} for {exact}");
            }
        }
    }
}
