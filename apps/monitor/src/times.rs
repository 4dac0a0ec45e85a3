//! Times as text in a report.

use crate::time::Time;
use crate::volume::Interval;

/// The format of times of a report.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// All on one day: the time of day is enough.
    one_day: bool,
}

impl Times {
    /// The format for these intervals.
    pub fn of(intervals: &[Interval]) -> Self {
        let day = |time: Time| time.0 / 86_400_000_000_000;
        let ends = intervals.first().zip(intervals.last());
        Self { one_day: ends.is_some_and(|(a, b)| day(a.start) == day(b.end)) }
    }

    /// A time, to the second.
    pub fn short(self, time: Time) -> String {
        let text = time.to_string();
        let from = if self.one_day { 11 } else { 0 };
        text.get(from..19).unwrap_or(&text).replace('T', " ")
    }

    /// From one time to another.
    pub fn range(self, first: Time, last: Time) -> String {
        let (first, last) = (self.short(first), self.short(last));
        if first == last { first } else { format!("{first} – {last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_name_the_day_only_when_there_are_several() {
        let at = |day: u64, second: u64| Time((day * 86_400 + second) * 1_000_000_000);
        let interval = |start, end| Interval { start, end, ..Interval::default() };
        let one = Times::of(&[interval(at(1, 10), at(1, 70))]);
        assert_eq!(one.range(at(1, 10), at(1, 70)), "00:00:10 – 00:01:10");
        assert_eq!(one.range(at(1, 10), at(1, 10)), "00:00:10");
        let two = Times::of(&[interval(at(1, 10), at(2, 10))]);
        assert_eq!(two.short(at(2, 10)), "1970-01-03 00:00:10");
    }
}
