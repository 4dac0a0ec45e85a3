//! The jobs, each implemented sequentially, with rayon and with ringtap's skeletons.
//!
//! | job | rayon | ringtap |
//! |---|---|---|
//! | matrix product | `par_chunks_mut` | farm without collector, blocks of rows on demand |
//! | quicksort | `join` after each split | divide and conquer |
//! | fib | `join` | divide and conquer |
//!
//! All have the same kernels and cut-offs. Data are created before the clock starts and checked
//! after it stops.

use crate::kernels::{fibonacci, fingerprint, matrix, multiply, partition, values};
use beside::{Random, process_cpu};
use rayon::prelude::*;
use ringtap_skeleton::stream::{Divided, Options, Policy, Stream, divide_and_conquer};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    Matrix,
    Quicksort,
    Fibonacci,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Sequential,
    Rayon,
    Ringtap,
    /// Rayon's own function for the job.
    RayonOwn,
}

pub const JOBS: [Job; 3] = [Job::Matrix, Job::Quicksort, Job::Fibonacci];
pub const VARIANTS: [Variant; 4] =
    [Variant::Sequential, Variant::Rayon, Variant::Ringtap, Variant::RayonOwn];

/// Rows of a matrix per task.
const ROWS: usize = 32;
/// Maximum number of values that are sorted without splitting.
const SORT_CUT: usize = 100_000;
/// Smaller Fibonacci numbers are computed without splitting.
const FIB_CUT: u64 = 25;

impl Job {
    pub fn name(self, size: u64) -> String {
        match self {
            Self::Matrix => format!("matrix product {size}²"),
            Self::Quicksort => format!("quicksort of {size}"),
            Self::Fibonacci => format!("fib({size}), cut-off {FIB_CUT}"),
        }
    }

    pub fn size(self, quick: bool) -> u64 {
        match (self, quick) {
            (Self::Matrix, false) => 1024,
            (Self::Matrix, true) => 512,
            (Self::Quicksort, false) => 50_000_000,
            (Self::Quicksort, true) => 5_000_000,
            (Self::Fibonacci, false) => 42,
            (Self::Fibonacci, true) => 38,
        }
    }

    /// The name of a variant of the job in tables; `None` if there is no such variant.
    pub fn variant(self, variant: Variant) -> Option<&'static str> {
        match (self, variant) {
            (Self::Matrix, Variant::Sequential) => Some("one thread"),
            (Self::Quicksort, Variant::Sequential) => Some("one thread, sort_unstable"),
            (Self::Fibonacci, Variant::Sequential) => Some("one thread"),
            (Self::Matrix, Variant::Rayon) => Some("rayon par_chunks_mut"),
            (_, Variant::Rayon) => Some("rayon join"),
            (Self::Matrix, Variant::Ringtap) => Some("ringtap farm"),
            (_, Variant::Ringtap) => Some("ringtap divide_and_conquer"),
            (Self::Quicksort, Variant::RayonOwn) => Some("rayon par_sort_unstable"),
            (_, Variant::RayonOwn) => None,
        }
    }

    /// Runs the job; returns wall and CPU seconds.
    pub fn run(self, variant: Variant, size: u64, threads: usize) -> Result<[f64; 2], String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|why| format!("rayon: {why}"))?;
        // Start rayon's threads before the clock; ringtap starts its own threads within the
        // measured time.
        pool.install(|| rayon::join(|| (), || ()));
        match self {
            Self::Matrix => matrix_product(variant, size as usize, threads, &pool),
            Self::Quicksort => quicksort(variant, size as usize, threads, &pool),
            Self::Fibonacci => fib(variant, size, threads, &pool),
        }
    }
}

fn timed(work: impl FnOnce() -> Result<(), String>) -> Result<[f64; 2], String> {
    let (cpu, wall) = (process_cpu(), Instant::now());
    work()?;
    Ok([wall.elapsed().as_secs_f64(), process_cpu() - cpu])
}

fn options(threads: usize) -> Options<'static> {
    Options { cores: threads, ..Options::default() }
}

fn matrix_product(
    variant: Variant,
    n: usize,
    threads: usize,
    pool: &rayon::ThreadPool,
) -> Result<[f64; 2], String> {
    let (left, right) = (matrix(n, 1), matrix(n, 2));
    let mut product = vec![0.0; n * n];
    let block = ROWS * n;
    let task = |(rows, left): (&mut [f64], &[f64])| multiply(rows, left, &right, n);
    let time = timed(|| {
        match variant {
            Variant::Sequential => {
                product.chunks_mut(block).zip(left.chunks(block)).for_each(task);
            }
            Variant::Rayon | Variant::RayonOwn => pool.install(|| {
                product.par_chunks_mut(block).zip(left.par_chunks(block)).for_each(task);
            }),
            Variant::Ringtap => {
                Stream::from_iter(product.chunks_mut(block).zip(left.chunks(block)))
                    .farm_for_each(threads, Policy::OnDemand, |_| &task)
                    .run(&options(threads))
                    .map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    })?;
    let mut random = Random(3);
    for _ in 0..100 {
        let place = random.number() as usize % (n * n);
        let (row, column) = (place / n, place % n);
        let sum: f64 = (0..n).map(|k| left[row * n + k] * right[k * n + column]).sum();
        if (sum - product[place]).abs() > 1e-9 * sum {
            return Err(format!("row {row}, column {column}: {} is not {sum}", product[place]));
        }
    }
    Ok(time)
}

fn quicksort(
    variant: Variant,
    count: usize,
    threads: usize,
    pool: &rayon::ThreadPool,
) -> Result<[f64; 2], String> {
    fn joined(values: &mut [u32]) {
        if values.len() <= SORT_CUT {
            values.sort_unstable();
        } else {
            let (left, right) = partition(values);
            rayon::join(|| joined(left), || joined(right));
        }
    }
    fn divide(values: &mut [u32]) -> Divided<(), [&mut [u32]; 2]> {
        if values.len() <= SORT_CUT {
            values.sort_unstable();
            Divided::Solved(())
        } else {
            let (left, right) = partition(values);
            Divided::Split([left, right])
        }
    }
    let mut values = values(count);
    let before = fingerprint(&values);
    let time = timed(|| {
        match variant {
            Variant::Sequential => values.sort_unstable(),
            Variant::Rayon => pool.install(|| joined(&mut values)),
            Variant::RayonOwn => pool.install(|| values.par_sort_unstable()),
            Variant::Ringtap => {
                divide_and_conquer(&mut values[..], threads, divide, |_| (), &options(threads))
                    .map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    })?;
    if !values.is_sorted() || fingerprint(&values) != before {
        return Err("the result is not a sorted permutation".to_owned());
    }
    Ok(time)
}

fn fib(
    variant: Variant,
    n: u64,
    threads: usize,
    pool: &rayon::ThreadPool,
) -> Result<[f64; 2], String> {
    fn joined(n: u64) -> u64 {
        if n < FIB_CUT {
            return fibonacci(n);
        }
        let (a, b) = rayon::join(|| joined(n - 1), || joined(n - 2));
        a + b
    }
    let divide = |n| match n {
        ..FIB_CUT => Divided::Solved(fibonacci(n)),
        _ => Divided::Split([n - 1, n - 2]),
    };
    let mut result = 0;
    let time = timed(|| {
        result = match variant {
            Variant::Sequential => fibonacci(n),
            Variant::Rayon | Variant::RayonOwn => pool.install(|| joined(n)),
            Variant::Ringtap => {
                divide_and_conquer(n, threads, divide, |parts| parts.sum(), &options(threads))
                    .map_err(|why| why.to_string())?
                    .result
            }
        };
        Ok(())
    })?;
    let (truth, _) = (0..n).fold((0u64, 1u64), |(a, b), _| (b, a + b));
    if result == truth { Ok(time) } else { Err(format!("fib({n}) is {truth}, not {result}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_solves_every_job() {
        let sizes = [96, 300_000, 28];
        for (job, size) in JOBS.into_iter().zip(sizes) {
            for variant in VARIANTS.into_iter().filter(|&variant| job.variant(variant).is_some()) {
                let [wall, _] = job.run(variant, size, 2).unwrap();
                assert!(wall > 0.0, "{job:?} {variant:?}");
            }
        }
    }
}
