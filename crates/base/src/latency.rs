//! A histogram of times in nanoseconds, with logarithmic bins.
//!
//! ```text
//!  0 … 63 ns: a counter each │ 64 … 127: 64 counters │ 128 … 255: 64 counters │ …
//! ```
//!
//! Invariant: memory is constant; a quantile is at most 1/64 (1.6 %) too high, never too low.

/// Counters for each power of two.
const PARTS: u64 = 64;
const BITS: u32 = PARTS.ilog2();
const COUNTERS: usize = (64 - BITS as usize + 1) * PARTS as usize;

/// A histogram of times from 0 to 2⁶⁴ − 1 ns, in 30 KiB.
#[derive(Clone, Debug)]
pub struct Latency {
    counters: Box<[u64]>,
    count: u64,
    least: u64,
    most: u64,
}

impl Default for Latency {
    fn default() -> Self {
        let counters = vec![0; COUNTERS].into_boxed_slice();
        Self { counters, count: 0, least: u64::MAX, most: 0 }
    }
}

impl Latency {
    /// Adds a time in nanoseconds.
    pub fn add(&mut self, time_ns: u64) {
        self.counters[at(time_ns)] += 1;
        self.count += 1;
        self.least = self.least.min(time_ns);
        self.most = self.most.max(time_ns);
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (counter, other) in self.counters.iter_mut().zip(&other.counters) {
            *counter += other;
        }
        self.count += other.count;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// Number of recorded times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest and the longest recorded time; `None` without any.
    pub fn range(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.least, self.most))
    }

    /// The quantile `thousandths` / 1000, 0 to 1: a time that this share of all recorded times does
    /// not exceed. `None` without any.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let (least, most) = self.range()?;
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut sum = 0;
        let reached = |&counter: &u64| {
            sum += u128::from(counter);
            sum >= rank
        };
        let found = self.counters.iter().position(reached).unwrap_or(COUNTERS - 1);
        Some(highest(found).clamp(least, most))
    }
}

/// The index of the counter of a time.
fn at(time: u64) -> usize {
    let shift = (u64::BITS - 1 - time.max(1).leading_zeros()).saturating_sub(BITS);
    // `time >> shift` is 64 to 127, or the time itself below 64.
    (u64::from(shift) * PARTS + (time >> shift)) as usize
}

/// The longest time that the counter at this index counts.
fn highest(at: usize) -> u64 {
    let at = at as u64;
    if at < 2 * PARTS {
        return at;
    }
    let shift = at / PARTS - 1;
    let lowest = (at - shift * PARTS) << shift;
    lowest + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_in_order_and_at_most_a_64th_too_high() {
        let mut before = 0;
        for bits in 0..64 {
            for time in [1 << bits, (1_u64 << bits) + (1 << bits) / 3] {
                let (counter, reported) = (at(time), highest(at(time)));
                assert!(counter < COUNTERS && counter >= before, "{time}");
                assert!(reported >= time && reported - time <= time / PARTS, "{time}: {reported}");
                before = counter;
            }
        }
        assert_eq!((highest(at(u64::MAX)), highest(at(0))), (u64::MAX, 0));
    }

    #[test]
    fn a_quantile_is_the_time_at_its_rank() {
        let mut latency = Latency::default();
        assert_eq!((latency.quantile(500), latency.range()), (None, None));
        (1..=50).for_each(|time| latency.add(time));
        assert_eq!(latency.quantile(500), Some(25));
        assert_eq!(latency.quantile(990), Some(50));
        assert_eq!((latency.quantile(0), latency.quantile(1000)), (Some(1), Some(50)));
        latency.add(1_000_000);
        assert_eq!((latency.range(), latency.count()), (Some((1, 1_000_000)), 51));
        assert_eq!(latency.quantile(1000), Some(1_000_000));
        let mut both = Latency::default();
        (101..=149).for_each(|time| both.add(time));
        both.merge(&latency);
        assert_eq!((both.range(), both.count()), (Some((1, 1_000_000)), 100));
        assert_eq!(both.quantile(500), Some(50));
    }
}
