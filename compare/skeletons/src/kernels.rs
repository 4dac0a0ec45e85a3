//! The sequential kernels, which all variants use.

use beside::Random;

/// Computes some rows of a product of square matrices of side `n`: `rows` = `left` × `right`, where
/// `left` has as many rows as `rows`. Reads `right` in strips that fit the second-level cache.
pub fn multiply(rows: &mut [f64], left: &[f64], right: &[f64], n: usize) {
    const STRIP: usize = 64;
    rows.fill(0.0);
    for start in (0..n).step_by(STRIP) {
        let end = (start + STRIP).min(n);
        for (row, left) in rows.chunks_exact_mut(n).zip(left.chunks_exact(n)) {
            for k in start..end {
                let factor = left[k];
                for (sum, value) in row.iter_mut().zip(&right[k * n..][..n]) {
                    *sum += factor * value;
                }
            }
        }
    }
}

/// Partitions by a median of three: values of the left part are smaller than the pivot, values of
/// the right part are not. No branch depends on the values.
pub fn partition(values: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let last = values.len() - 1;
    let mut of_three = [0, last / 2, last];
    of_three.sort_unstable_by_key(|&i| values[i]);
    values.swap(of_three[1], last);
    let pivot = values[last];
    let mut middle = 0;
    for i in 0..last {
        let value = values[i];
        values.swap(i, middle);
        middle += usize::from(value < pivot);
    }
    values.swap(middle, last);
    let (left, right) = values.split_at_mut(middle);
    (left, &mut right[1..])
}

pub fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// Pseudo-random numbers with a fixed seed.
pub fn values(count: usize) -> Vec<u32> {
    let mut random = Random(1);
    (0..count).map(|_| (random.number() >> 32) as u32).collect()
}

/// A square matrix of numbers from 0 to 1.
pub fn matrix(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    (0..n * n).map(|_| (random.number() >> 11) as f64 / (1u64 << 53) as f64).collect()
}

/// Sum and exclusive or, which sorting does not change.
pub fn fingerprint(values: &[u32]) -> (u64, u32) {
    values.iter().fold((0, 0), |(sum, xor), &v| (sum + u64::from(v), xor ^ v))
}
