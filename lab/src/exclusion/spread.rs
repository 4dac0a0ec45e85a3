//! Summary statistics of samples.

/// Quantiles, mean and number of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Mean without the highest 1 %, which contains interrupts.
    pub mean: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Spread {
    /// Statistics of `samples`, each less `overhead` but at least 0. Sorts `samples`.
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
    fn quantiles_use_ranks_and_the_mean_omits_the_highest_percent() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        samples[0] = 1e9;
        let spread = Spread::of(&mut samples, 1.0);
        assert_eq!((spread.p10, spread.median, spread.p90), (10.0, 50.0, 89.0));
        assert_eq!((spread.mean, spread.samples), (49.0, 100));
        assert_eq!(Spread::of(&mut [5.0], 7.0).median, 0.0);
        assert_eq!(Spread::of(&mut [], 7.0), Spread::default());
    }
}
