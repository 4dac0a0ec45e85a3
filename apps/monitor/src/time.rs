//! Times of reports and alerts.

use ringtap_base::{civil, day_of};
use serde::{Serialize, Serializer};

/// Nanoseconds since 1970; in JSON a string in the form of RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// Reads a time in a form of ISO 8601 with its zone, as in `2027-01-31T12:00Z` or `2027-01-31T12:00:00.5+01:00`; a date
    /// begins in UTC.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't']).unwrap_or((text, "00:00Z"));
        let zone = rest.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = rest.split_at(zone);
        let day = {
            let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
            let number = day_of(year, month, day)?;
            (civil(number) == (year, month, day)).then_some(number)?
        };
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [hour, minute, second] = match numbers(time, ':', [2, 2, 2]) {
            Some(all) => all,
            None => {
                let [hour, minute] = numbers(time, ':', [2, 2])?;
                [hour, minute, 0]
            }
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fraction =
            Some(fraction).filter(|part| (1..=9).contains(&part.len()) && digits(part))?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let [zone_hour, zone_minute] = match zone {
            "Z" | "z" => [0, 0],
            offset => numbers(&offset[1..], ':', [2, 2])?,
        };
        if zone_hour > 23 || zone_minute > 59 {
            return None;
        }
        let of = |hour: u32, minute: u32| 3_600 * u64::from(hour) + 60 * u64::from(minute);
        let here = 86_400 * day + of(hour, minute) + u64::from(second);
        let offset = of(zone_hour, zone_minute);
        let seconds = if zone.starts_with('-') { here + offset } else { here.checked_sub(offset)? };
        let ns: u64 = format!("{fraction:0<9}").parse().ok()?;
        Some(Self(seconds.checked_mul(1_000_000_000)?.checked_add(ns)?))
    }
}

/// Numbers of these lengths, separated by a character.
fn numbers<const N: usize>(text: &str, by: char, lengths: [usize; N]) -> Option<[u32; N]> {
    let mut words = text.split(by);
    let mut all = [0; N];
    for (number, length) in all.iter_mut().zip(lengths) {
        let word = words.next().filter(|word| word.len() == length)?;
        *number = word.parse().ok().filter(|_| !word.starts_with('+'))?;
    }
    words.next().is_none().then_some(all)
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let (year, month, day) = civil(seconds / 86_400);
        let [hour, minute, second] = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60];
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn times_have_the_form_of_rfc_3339() {
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000000000Z");
        let time = Time(1_709_251_199_000_000_042);
        assert_eq!(time.to_string(), "2024-02-29T23:59:59.000000042Z");
        assert_eq!(Time(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn times_are_read_in_their_forms() {
        let time = Time(1_709_251_199_000_000_000);
        for text in [
            "2024-02-29T23:59:59Z",
            "2024-02-29t23:59:59.000z",
            "2024-03-01T00:59:59+01:00",
            "2024-02-29T18:29:59-05:30",
        ] {
            assert_eq!(Time::parse(text), Some(time), "{text}");
        }
        for time in [0, 1_709_251_199_000_000_042, u64::MAX].map(Time) {
            assert_eq!(Time::parse(&time.to_string()), Some(time));
        }
        assert_eq!(Time::parse("2024-03-01"), Time::parse("2024-03-01T00:00Z"));
        assert_eq!(Time::parse("2024-03-01"), Some(Time(1_709_251_200_000_000_000)));
        for text in [
            "",
            "2024-02-30",
            "2024-2-03",
            "+024-02-03",
            "1969-12-31",
            "2600-01-01",
            "2024-02-03T",
            "2024-02-03T12:00",
            "2024-02-03T24:00Z",
            "2024-02-03T12:00:00.Z",
            "2024-02-03T12:00:00.1234567890Z",
            "2024-02-03T12:00:00+1:00",
            "2024-02-03T12:00Zx",
            "2024-02-03 12:00Z",
            "1970-01-01T00:00+01:00",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
