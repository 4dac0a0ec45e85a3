//! The current rate of a run.

use std::time::Duration;

/// The rate since the last reading.
#[derive(Debug, Default)]
pub struct Rate {
    elapsed: Duration,
    packets: u64,
    per_second: f64,
}

impl Rate {
    /// Packets per second since the last reading. If it is less than `least` ago, the rate at that reading, or the mean of
    /// the run before the first.
    pub fn read(&mut self, elapsed: Duration, packets: u64, least: Duration) -> f64 {
        let period = elapsed.saturating_sub(self.elapsed);
        let rate = packets.saturating_sub(self.packets) as f64 / period.as_secs_f64().max(1e-9);
        if period >= least {
            *self = Self { elapsed, packets, per_second: rate };
        } else if self.elapsed.is_zero() {
            return rate;
        }
        self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_period() {
        let [second, half] = [1_000, 500].map(Duration::from_millis);
        let mut rate = Rate::default();
        assert_eq!(rate.read(second, 1_000_000, Duration::ZERO), 1e6);
        assert_eq!(rate.read(second * 2, 1_000_100, Duration::ZERO), 100.0);
        assert_eq!(rate.read(second * 4, 1_000_100, Duration::ZERO), 0.0);

        let mut rate = Rate::default();
        assert_eq!(rate.read(half, 500, second), 1_000.0, "the mean so far");
        assert_eq!(rate.read(second, 2_000, second), 2_000.0);
        assert_eq!(rate.read(second + half, 9_000, second), 2_000.0);
        assert_eq!(rate.read(second * 2, 9_000, second), 7_000.0);
    }
}
