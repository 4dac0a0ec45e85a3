//! Days as calendar dates, and times as text. The year begins in March here, so a leap day is the last of its year and
//! month lengths follow one formula.

use std::fmt;

/// Nanoseconds since 1970, printed in the form of RFC 3339: `2026-11-27T10:00:00.000000000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc3339(pub u64);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let (year, month, day) = civil(seconds / 86_400);
        let [hour, minute, second] = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60];
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

/// Year, month and day of the nth day after 1970-01-01 in the Gregorian calendar; years have four digits until 2554,
/// where nanoseconds in 64 bits end.
pub fn civil(day: u64) -> (u32, u32, u32) {
    const CENTURIES: u32 = 146_097; // days in 400 years
    let day = day as u32 + 719_468; // since 0000-03-01
    let (cycle, of_cycle) = (day / CENTURIES, day % CENTURIES);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153; // 0 is March
    let day = of_year - (153 * month + 2) / 5 + 1;
    let january = u32::from(month >= 10);
    (400 * cycle + year + january, month + 3 - 12 * january, day)
}

/// The number of the day with this date since 1970-01-01; `None` if it is before, or no month and day.
pub fn day_of(year: u32, month: u32, day: u32) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = u64::from(year).checked_sub(u64::from(month < 3))?;
    let of_year = (153 * u64::from((month + 9) % 12) + 2) / 5 + u64::from(day) - 1;
    (365 * year + year / 4 - year / 100 + year / 400 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_form_of_rfc_3339() {
        assert_eq!(Rfc3339(0).to_string(), "1970-01-01T00:00:00.000000000Z");
        let time = Rfc3339(1_709_251_199_000_000_042);
        assert_eq!(time.to_string(), "2024-02-29T23:59:59.000000042Z");
        assert_eq!(Rfc3339(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }

    /// Every day there is follows the one before it.
    #[test]
    fn days_are_counted_as_the_calendar_does() {
        let leap =
            |y: u32| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..=u64::MAX / 1_000_000_000 / 86_400 {
            assert_eq!(civil(number), (year, month, day));
            assert_eq!(day_of(year, month, day), Some(number));
            let days = match month {
                2 => 28 + u32::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > days {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (2554, 7, 22));
        for (year, month, day) in
            [(1969, 12, 31), (0, 1, 1), (2000, 0, 1), (2000, 13, 1), (2000, 1, 32)]
        {
            assert_eq!(day_of(year, month, day), None);
        }
    }
}
