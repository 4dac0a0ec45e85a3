//! Some rows of a matrix product. Row-major, so that the inner loop runs along rows of `b` and `c`
//! and the compiler makes vectors of it.

/// Rows of one task.
pub(crate) const ROWS: usize = 16;
/// Rows of `b` that are gone through for all rows of a task before the next ones: 1 MiB of them
/// at n = 1,024, which stays in the second-level cache.
const BLOCK: usize = 128;

/// `rows` (some rows of the product, of length `n`) = the same rows of `a` × `b`.
pub(crate) fn multiply_rows(a: &[f64], b: &[f64], rows: &mut [f64], n: usize) {
    rows.fill(0.0);
    for from in (0..n).step_by(BLOCK) {
        let upto = n.min(from + BLOCK);
        for (a, c) in a.chunks_exact(n).zip(rows.chunks_exact_mut(n)) {
            let mut k = from;
            // Four rows of b at once: c is loaded and stored a quarter as often.
            while k + 4 <= upto {
                let (b0, b) = b[k * n..].split_at(n);
                let (b1, b) = b.split_at(n);
                let (b2, b) = b.split_at(n);
                let terms = c.iter_mut().zip(b0).zip(b1).zip(b2).zip(&b[..n]);
                for ((((c, b0), b1), b2), b3) in terms {
                    *c += a[k] * b0 + a[k + 1] * b1 + a[k + 2] * b2 + a[k + 3] * b3;
                }
                k += 4;
            }
            for k in k..upto {
                for (c, b) in c.iter_mut().zip(&b[k * n..]) {
                    *c += a[k] * b;
                }
            }
        }
    }
}

/// Two matrices of small whole numbers, so that sums of products are exact.
pub(crate) fn matrices(n: usize) -> (Vec<f64>, Vec<f64>) {
    let entry = |i: usize, salt: usize| ((i * 7919 + salt) % 17) as f64 - 8.0;
    ((0..n * n).map(|i| entry(i, 3)).collect(), (0..n * n).map(|i| entry(i, 11)).collect())
}

/// Whether `c` is `a` × `b`: the sum of all entries, which is Σ (column sum of a × row sum of b), and
/// some entries one by one. Exact, because the entries are.
pub(crate) fn is_product(a: &[f64], b: &[f64], c: &[f64], n: usize) -> bool {
    let column = |k: usize| (0..n).map(|i| a[i * n + k]).sum::<f64>();
    let row = |k: usize| b[k * n..(k + 1) * n].iter().sum::<f64>();
    let sum: f64 = (0..n).map(|k| column(k) * row(k)).sum();
    let entry = |i: usize, j: usize| (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum::<f64>();
    let samples = (0..200).map(|s| (s * 31 % n.max(1), s * 57 % n.max(1)));
    c.len() == n * n
        && c.iter().sum::<f64>() == sum
        && (n == 0 || samples.into_iter().all(|(i, j)| c[i * n + j] == entry(i, j)))
}
