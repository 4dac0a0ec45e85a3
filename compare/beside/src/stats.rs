//! Quantiles, ratios, and random orders of trials.

use std::fmt;

/// The quantile `share` (0 to 1) of sorted values, by linear interpolation. NaN if there are no
/// values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let below = sorted[place as usize];
    let above = sorted[(place as usize + 1).min(last)];
    below + (above - below) * place.fract()
}

/// A ratio of speeds: median and quartiles over rounds.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub median: f64,
    quartiles: [f64; 2],
}

impl Ratio {
    /// Summarizes ratios, one of each round.
    pub fn of(ratios: impl Iterator<Item = f64>) -> Self {
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&ratios, share));
        Self { median, quartiles: [low, high] }
    }

    /// `holds` if the median reaches the goal, `within the spread` if the third quartile does,
    /// otherwise `does not hold`.
    pub fn verdict(&self, goal: f64) -> &'static str {
        if self.median >= goal {
            "holds"
        } else if self.quartiles[1] >= goal {
            "within the spread"
        } else {
            "does not hold"
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.quartiles;
        write!(f, "{:.2} ({low:.2}–{high:.2})", self.median)
    }
}

/// A number that is shown with about three significant digits.
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0 < 9.95 { 2 } else { usize::from(self.0 < 99.5) };
        f.pad(&format!("{:.digits$}", self.0))
    }
}

/// A random number generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, (self.number() % (i as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        let quantiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&sorted, share));
        assert_eq!(quantiles, [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn verdicts_need_the_median_or_the_third_quartile() {
        let ratio = Ratio::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(ratio.verdict(2.0), "holds");
        assert_eq!(ratio.verdict(2.5), "within the spread");
        assert_eq!(ratio.verdict(2.6), "does not hold");
        assert_eq!(Ratio::of(std::iter::empty()).verdict(0.1), "does not hold");
    }

    #[test]
    fn shuffling_keeps_all_values() {
        let mut values: Vec<u32> = (0..100).collect();
        Random(1).shuffle(&mut values);
        assert_ne!(values, (0..100).collect::<Vec<u32>>());
        values.sort_unstable();
        assert_eq!(values, (0..100).collect::<Vec<u32>>());
    }
}
