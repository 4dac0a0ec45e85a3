//! Latencies of answers: quantiles and a histogram.

use ringtap_traffic::Latency;
use serde::Serialize;

use ringtap_terminal::numbers::count;

/// Number of histogram counters: powers of two, from 1 ns to half an hour.
const POWERS: usize = 42;

/// The latencies of all answers.
pub(super) struct Times {
    latency: Latency,
    sum_ns: u128,
    powers: [u64; POWERS],
}

/// The summary of latencies, in nanoseconds. Field names are those of `--report json`.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) min: u64,
    pub(super) mean: u64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
    pub(super) max: u64,
    /// For each power of two with latencies: the exclusive upper bound, and their number.
    pub(super) histogram: Vec<(u64, u64)>,
}

impl Default for Times {
    fn default() -> Self {
        Self { latency: Latency::default(), sum_ns: 0, powers: [0; POWERS] }
    }
}

impl Times {
    pub(super) fn add(&mut self, time_ns: u64) {
        self.latency.add(time_ns);
        self.sum_ns += u128::from(time_ns);
        let power = (u64::BITS - time_ns.leading_zeros()) as usize;
        self.powers[power.min(POWERS - 1)] += 1;
    }

    /// `None` without latencies.
    pub(super) fn summary(&self) -> Option<Summary> {
        let (min, max) = self.latency.range()?;
        let quantile = |thousandths| self.latency.quantile(thousandths).unwrap_or(max);
        let filled = self.powers.iter().enumerate().filter(|&(_, &times)| times > 0);
        Some(Summary {
            min,
            mean: (self.sum_ns / u128::from(self.latency.count().max(1))) as u64,
            p50: quantile(500),
            p90: quantile(900),
            p99: quantile(990),
            p999: quantile(999),
            max,
            histogram: filled.map(|(power, &times)| (1 << power, times)).collect(),
        })
    }
}

impl Summary {
    /// The histogram as text: a line with a bar for each power of two.
    pub(super) fn bars(&self) -> String {
        let most = self.histogram.iter().map(|&(_, times)| times).max().unwrap_or(1);
        let bar = |&(below, times): &(u64, u64)| {
            let stars = "▇".repeat((times * 40).div_ceil(most) as usize);
            format!("  < {:>9}  {:>12}  {stars}\n", ms(below), count(times))
        };
        self.histogram.iter().map(bar).collect()
    }
}

/// A time in milliseconds, as in `0.123 ms`.
pub(super) fn ms(time_ns: u64) -> String {
    format!("{:.3} ms", time_ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_extremes_the_median_and_a_histogram_of_all_times() {
        let mut times = Times::default();
        assert!(times.summary().is_none());
        for time in [1, 3, 3, 1_000, u64::MAX] {
            times.add(time);
        }
        let summary = times.summary().unwrap();
        assert_eq!((summary.min, summary.max, summary.p50), (1, u64::MAX, 3));
        assert_eq!(summary.histogram, [(2, 1), (4, 2), (1024, 1), (1 << 41, 1)]);
        assert_eq!(summary.bars().lines().count(), 4);
    }
}
