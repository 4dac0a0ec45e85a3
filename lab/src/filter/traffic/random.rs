//! The random numbers of the published benchmark: a CRC register as generator, and distributions.
//!
//! The next number is the result of 31 steps of a shift register with the CRC-30 of CDMA, plus one.
//! The register is linear over GF(2), so 31 steps are the XOR of one table entry per byte.

const CRC_30: u32 = 0x38e7_4301;
const STEPS: u32 = 31;
/// Initial value of every generator of the benchmark.
const SEED: u32 = 59_009;
const BASE: i32 = 1 << 30;
/// ln(2³⁰ − 1) with the digits of the published benchmark.
const LOG_BASE: f64 = 20.795;

/// A generator, with the distributions drawn from it.
#[derive(Clone, Debug)]
pub(super) struct Random(u32);

impl Default for Random {
    fn default() -> Self {
        Self(SEED)
    }
}

impl Random {
    /// A number from 1 to 2³⁰.
    pub(super) fn number(&mut self) -> u32 {
        self.0 = mangle(self.0) + 1;
        self.0
    }

    /// A number 0 ≤ n < `bound`.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.number() % bound
    }

    /// A number 0 ≤ x < 1, in steps of 2⁻³⁰.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from(self.below(BASE as u32)) / f64::from(BASE)
    }

    /// An exponentially distributed number, rounded up; at least 1 for a positive mean.
    pub(super) fn exponential(&mut self, mean: f64) -> u32 {
        let rest = f64::from(BASE - self.number() as i32);
        // The number 2³⁰ leaves 0, whose logarithm is −∞: the result is the largest number.
        (mean * (LOG_BASE - rest.ln())).ceil().min(f64::from(i32::MAX)) as u32
    }
}

/// The register after 31 steps.
pub(super) fn mangle(value: u32) -> u32 {
    let [a, b, c, d] = value.to_le_bytes();
    TABLES[0][usize::from(a)]
        ^ TABLES[1][usize::from(b)]
        ^ TABLES[2][usize::from(c)]
        ^ TABLES[3][usize::from(d)]
}

static TABLES: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 4 {
        let mut value = 0;
        while value < 256 {
            tables[byte][value] = steps((value as u32) << (8 * byte));
            value += 1;
        }
        byte += 1;
    }
    tables
};

/// The published algorithm, bit by bit.
const fn steps(mut register: u32) -> u32 {
    let mut step = 0;
    while step < STEPS {
        let odd = register & 1;
        register >>= 1;
        if odd == 1 {
            register ^= CRC_30;
        }
        step += 1;
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_equal_single_steps() {
        let mut value = 1u32;
        for _ in 0..100_000 {
            assert_eq!(mangle(value & 0x7fff_ffff), steps(value & 0x7fff_ffff));
            value = value.wrapping_mul(2_891_336_453).wrapping_add(1);
        }
    }

    #[test]
    fn exponential_numbers_have_the_mean_and_are_never_zero() {
        let mut random = Random::default();
        let drawn: Vec<u32> = (0..100_000).map(|_| random.exponential(20.0)).collect();
        let mean = drawn.iter().sum::<u32>() as f64 / drawn.len() as f64;
        assert!((20.0..21.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|&n| n >= 1));
    }
}
