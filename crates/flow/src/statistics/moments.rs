//! Count, sum and sum of squares of values, and the smallest and the largest one: exact, and merged in any order.

use crate::fields::Fields;

/// The moments of unsigned values. Sums that do not fit keep the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moments {
    pub(super) squares: u128,
    pub(super) count: u64,
    pub(super) sum: u64,
    /// Larger than `most` without values.
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Moments {
    /// No values.
    pub const NONE: Self = Self { squares: 0, count: 0, sum: 0, least: u64::MAX, most: 0 };

    /// Bytes of [`Moments::save`].
    pub(super) const SAVED: usize = 48;

    #[inline(always)]
    pub(super) fn add(&mut self, value: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The sum of their squares; at most 2⁶⁴ - 1.
    pub fn squares(&self) -> u64 {
        u64::try_from(self.squares).unwrap_or(u64::MAX)
    }

    /// The smallest value.
    pub fn minimum(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// The largest value.
    pub fn maximum(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// The mean, rounded down.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.count)
    }

    /// The standard deviation of a sample, that is with the divisor n - 1, rounded down; of two values and more.
    pub fn deviation(&self) -> Option<u64> {
        let (count, sum) = (u128::from(self.count), u128::from(self.sum));
        let others = count.checked_sub(1).filter(|others| *others > 0)?;
        let variance = match count.checked_mul(self.squares) {
            Some(all) => all.saturating_sub(sum * sum) / (count * others),
            // So large that the rounding of the mean does not matter.
            None => self.squares.saturating_sub(sum / count * sum) / others,
        };
        u64::try_from(variance.isqrt()).ok()
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.squares.to_le_bytes());
        for number in [self.count, self.sum, self.least, self.most] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(super) fn load(from: &mut Fields<'_>) -> Self {
        let squares = u128::from_le_bytes(from.take());
        let mut next = || u64::from_le_bytes(from.take());
        Self { squares, count: next(), sum: next(), least: next(), most: next() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::NONE;
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    #[test]
    fn moments_are_those_of_a_sample() {
        assert_eq!((of(&[]).mean(), of(&[]).minimum(), of(&[5]).deviation()), (None, None, None));
        let four = of(&[2, 4, 4, 10]);
        // The squares of the distances to 5 are 9, 1, 1 and 25: 36 / 3.
        assert_eq!((four.mean(), four.deviation()), (Some(5), Some(3)));
        assert_eq!((four.minimum(), four.maximum()), (Some(2), Some(10)));
        assert_eq!((four.count(), four.sum(), four.squares()), (4, 20, 136));
        let mut both = of(&[10, 4]);
        both.merge(&of(&[2, 4]));
        both.merge(&Moments::NONE);
        assert_eq!(both, four);
    }

    #[test]
    fn large_values_do_not_overflow() {
        let large = of(&[u64::MAX; 9]);
        assert_eq!((large.maximum(), large.sum()), (Some(u64::MAX), u64::MAX));
        assert!(large.deviation().is_some());
        // A day in nanoseconds, a million times, and as often nothing: half of it.
        let day = 86_400_000_000_000;
        let mut days = Moments { squares: 0, count: 2_000_000, sum: 0, least: 0, most: day };
        days.sum = 1_000_000_u64.saturating_mul(day);
        days.squares = 1_000_000 * u128::from(day) * u128::from(day);
        let deviation = days.deviation().unwrap();
        assert!(deviation.abs_diff(day / 2) < day / 1000 || days.sum == u64::MAX, "{deviation}");
    }

    #[test]
    fn saved_moments_are_the_same() {
        let mut bytes = Vec::new();
        let own = of(&[7, 1 << 40, 3]);
        own.save(&mut bytes);
        assert_eq!(bytes.len(), Moments::SAVED);
        assert_eq!(Moments::load(&mut Fields(&bytes)), own);
    }
}
