//! How samples lie.

/// Quantiles of samples, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// A tenth is not above this.
    pub p10: f64,
    /// Half is not above this.
    pub median: f64,
    /// Nine tenths are not above this.
    pub p90: f64,
    /// Without the highest hundredth: interrupts are not what is measured.
    pub mean: f64,
    /// How many there were.
    pub samples: usize,
}

impl Spread {
    /// Of these samples, each less `overhead`. Nothing is below 0.
    pub fn of(samples: &mut [f64], overhead: f64) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        let less = |sample: f64| (sample - overhead).max(0.0);
        let at = |share: f64| {
            let last = samples.len().saturating_sub(1);
            samples.get((last as f64 * share).round() as usize).map_or(0.0, |&sample| less(sample))
        };
        let kept = &samples[..samples.len() - samples.len() / 100];
        Self {
            p10: at(0.1),
            median: at(0.5),
            p90: at(0.9),
            mean: kept.iter().map(|&sample| less(sample)).sum::<f64>() / kept.len().max(1) as f64,
            samples: samples.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_ranks_and_the_highest_hundredth_is_left_out_of_the_mean() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        samples[0] = 1e9;
        let spread = Spread::of(&mut samples, 1.0);
        assert_eq!((spread.p10, spread.median, spread.p90), (10.0, 50.0, 89.0));
        assert_eq!((spread.mean, spread.samples), (49.0, 100));
        assert_eq!(Spread::of(&mut [5.0], 7.0).median, 0.0);
        assert_eq!(Spread::of(&mut [], 7.0), Spread::default());
    }
}
