//! Random selection of names by popularity.
//!
//! Zipf numbers are drawn by rejection-inversion (W. Hörmann, G. Derflinger, *Rejection-inversion to generate variates
//! from monotone discrete distributions*, 1996): it needs no table, for any number of names.

use std::fmt;
use std::str::FromStr;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The distribution of requests over names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All names equally often.
    Uniform,
    /// Name k in proportion to 1 / k^s, s above 0 and up to 10.
    Zipf(f64),
    /// Only one name.
    OneHot,
}

/// An invalid popularity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown distribution of names {0:?}: use uniform, zipf, zipf:S (S from 0.01 to 10) or one-hot"
)]
pub struct UnknownPopularity(String);

impl FromStr for Popularity {
    type Err = UnknownPopularity;

    fn from_str(text: &str) -> Result<Self, UnknownPopularity> {
        let unknown = || UnknownPopularity(text.into());
        match text {
            "uniform" => Ok(Self::Uniform),
            "zipf" => Ok(Self::Zipf(1.0)),
            "one-hot" => Ok(Self::OneHot),
            _ => {
                let exponent = text.strip_prefix("zipf:").and_then(|s| s.parse().ok());
                let exponent = exponent.filter(|s| (0.01..=10.0).contains(s));
                exponent.map(Self::Zipf).ok_or_else(unknown)
            }
        }
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Self::OneHot => f.write_str("one-hot"),
        }
    }
}

impl Popularity {
    /// Creates a generator for `names` names, at least 1.
    pub fn draw(self, names: u64, seed: u64) -> Draw {
        let names = names.max(1);
        let law = match self {
            Self::Uniform => Law::Uniform,
            Self::Zipf(exponent) => Law::Zipf(Zipf::new(names, exponent)),
            Self::OneHot => Law::OneHot,
        };
        Draw { names, law, random: SplitMix64::seed_from_u64(seed) }
    }
}

/// Draws the numbers of names, from 0 on; 0 is the most popular.
#[derive(Clone, Debug)]
pub struct Draw {
    names: u64,
    law: Law,
    random: SplitMix64,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipf(Zipf),
    OneHot,
}

impl Draw {
    /// The next number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        match &self.law {
            Law::Uniform => below(&mut self.random, self.names),
            Law::Zipf(zipf) => zipf.rank(&mut self.random).clamp(1, self.names) - 1,
            Law::OneHot => 0,
        }
    }
}

/// A number below `bound`, which is at least 1.
pub(crate) fn below(random: &mut SplitMix64, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A number from 0 up to but not including 1.
pub(crate) fn unit(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The constants of the method; the names are the paper's.
#[derive(Clone, Debug)]
struct Zipf {
    exponent: f64,
    h_first: f64,
    h_last: f64,
    squeeze: f64,
}

impl Zipf {
    fn new(names: u64, exponent: f64) -> Self {
        let mut zipf = Self { exponent, h_first: 0.0, h_last: 0.0, squeeze: 0.0 };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.h_last = zipf.integral(names as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn rank(&self, random: &mut SplitMix64) -> u64 {
        loop {
            let u = self.h_last + unit(random) * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let k = x.round().max(1.0);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the weight, up to a constant.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        // (e^t − 1) / t, and its limit.
        let grown = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        grown * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.exponent) * y).max(-1.0);
        let shrunk = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (shrunk * y).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    /// The share of each of the first names.
    fn shares(popularity: Popularity, names: u64) -> Vec<f64> {
        let mut draw = popularity.draw(names, 7);
        let mut counts = vec![0_u32; names as usize];
        (0..DRAWS).for_each(|_| counts[draw.number() as usize] += 1);
        counts.iter().map(|&count| f64::from(count) / f64::from(DRAWS)).collect()
    }

    #[test]
    fn names_have_their_expected_frequencies() {
        for exponent in [0.5, 1.0, 1.2, 3.0] {
            let found = shares(Popularity::Zipf(exponent), 50);
            let weights: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            for (k, (found, weight)) in found.iter().zip(&weights).enumerate() {
                let expected = weight / sum;
                // Five standard deviations.
                let off = 5.0 * (expected / f64::from(DRAWS)).sqrt();
                assert!((found - expected).abs() < off, "{exponent} {k}: {found} {expected}");
            }
        }
        let uniform = shares(Popularity::Uniform, 20);
        assert!(uniform.iter().all(|share| (share - 0.05).abs() < 0.002), "{uniform:?}");
        assert_eq!(shares(Popularity::OneHot, 3), [1.0, 0.0, 0.0]);
        assert_eq!(shares(Popularity::Zipf(1.0), 1), [1.0]);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_all_are_below_the_number_of_names() {
        let drawn = |seed| {
            let mut draw = Popularity::Zipf(0.8).draw(1 << 40, seed);
            (0..1_000).map(|_| draw.number()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert!(drawn(1).iter().all(|&number| number < 1 << 40));
    }

    #[test]
    fn texts_are_read_back() {
        for popularity in [Popularity::Uniform, Popularity::Zipf(1.25), Popularity::OneHot] {
            assert_eq!(popularity.to_string().parse(), Ok(popularity));
        }
        assert_eq!("zipf".parse(), Ok(Popularity::Zipf(1.0)));
        for wrong in ["", "zipf:", "zipf:0", "zipf:11", "zipf:nan", "hot"] {
            assert!(wrong.parse::<Popularity>().is_err(), "{wrong}");
        }
    }
}
