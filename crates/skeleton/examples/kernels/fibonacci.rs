//! Fibonacci numbers, the slow way.

/// Numbers up to this one are not divided further.
pub(crate) const CUT: u64 = 25;

/// By its definition, in exponential time.
pub(crate) fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

/// By adding up, to check the others.
pub(crate) fn by_addition(n: u64) -> u64 {
    (0..n).fold((0u64, 1u64), |(a, b), _| (b, a.wrapping_add(b))).0
}
