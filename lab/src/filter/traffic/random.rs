//! The random numbers of the published benchmark: a CRC register as generator, and what is drawn
//! from it.
//!
//! A number is 31 steps of a shift register with the CRC-30 of CDMA, plus one. The register is
//! linear over GF(2), so a step of 31 is the XOR of one table entry for each byte: same numbers,
//! 31 times fewer steps.

const CRC_30: u32 = 0x38e7_4301;
const STEPS: u32 = 31;
/// Where every generator of the benchmark starts.
const SEED: u32 = 59_009;
const BASE: i32 = 1 << 30;
/// The benchmark's ln(2³⁰ − 1), to the digits it was published with.
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
    /// 1 to 2³⁰.
    pub(super) fn number(&mut self) -> u32 {
        self.0 = mangle(self.0) + 1;
        self.0
    }

    /// 0 ≤ n < `most`.
    pub(super) fn below(&mut self, most: u32) -> u32 {
        self.number() % most
    }

    /// 0 ≤ x < 1, in steps of 2⁻³⁰.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from(self.below(BASE as u32)) / f64::from(BASE)
    }

    /// Exponentially distributed, rounded up; at least 1 for a positive mean.
    pub(super) fn exponential(&mut self, mean: f64) -> u32 {
        let rest = f64::from(BASE - self.number() as i32);
        // 2³⁰ leaves nothing, whose logarithm is −∞: the greatest number.
        (mean * (LOG_BASE - rest.ln())).ceil().min(f64::from(i32::MAX)) as u32
    }
}

/// 31 steps of the register.
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

/// As published, bit by bit.
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
    fn tables_take_all_steps_at_once() {
        let mut value = 1u32;
        for _ in 0..100_000 {
            assert_eq!(mangle(value & 0x7fff_ffff), steps(value & 0x7fff_ffff));
            value = value.wrapping_mul(2_891_336_453).wrapping_add(1);
        }
    }

    #[test]
    fn the_mean_is_kept_and_zero_never_comes() {
        let mut random = Random::default();
        let drawn: Vec<u32> = (0..100_000).map(|_| random.exponential(20.0)).collect();
        let mean = drawn.iter().sum::<u32>() as f64 / drawn.len() as f64;
        assert!((20.0..21.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|&n| n >= 1));
    }
}
