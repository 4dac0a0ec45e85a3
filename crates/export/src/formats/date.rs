//! Times as calendar dates, in UTC, without a clock or a time zone.
//!
//! ```text
//! 1 700 000 000 123 456 789 ns  →  2023-11-14 T 22:13:20 . 123456
//!                                   civil()      of_day
//! ```

use ringtap_base::civil;

use crate::formats::lines::push_digits;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// Appends ISO 8601 with microseconds, rounded down, and the offset +0000.
pub(crate) fn push_iso(line: &mut Vec<u8>, ns: u64) {
    push_utc(line, ns);
    line.extend_from_slice(b"+0000");
}

/// Appends RFC 3339 with microseconds, rounded down.
pub(crate) fn push_rfc_3339(line: &mut Vec<u8>, ns: u64) {
    push_utc(line, ns);
    line.push(b'Z');
}

fn push_utc(line: &mut Vec<u8>, ns: u64) {
    push_date(line, ns / SECOND / DAY);
    line.push(b'T');
    push_clock(line, ns / SECOND, b':');
    line.push(b'.');
    push_digits::<6>(line, (ns % SECOND / 1000) as u32);
}

/// Appends year, month, day, hour, minute and second with `-` between them.
pub(crate) fn push_dashed(line: &mut Vec<u8>, ns: u64) {
    push_date(line, ns / SECOND / DAY);
    line.push(b'-');
    push_clock(line, ns / SECOND, b'-');
}

/// Appends seconds with six decimals, rounded down.
pub(crate) fn push_seconds(line: &mut Vec<u8>, ns: u64) {
    crate::formats::lines::push_number(line, ns / SECOND);
    line.push(b'.');
    push_digits::<6>(line, (ns % SECOND / 1000) as u32);
}

fn push_date(line: &mut Vec<u8>, day: u64) {
    let (year, month, day) = civil(day);
    push_digits::<4>(line, year);
    line.push(b'-');
    push_digits::<2>(line, month);
    line.push(b'-');
    push_digits::<2>(line, day);
}

fn push_clock(line: &mut Vec<u8>, seconds: u64, between: u8) {
    let of_day = (seconds % DAY) as u32;
    push_digits::<2>(line, of_day / 3600);
    line.push(between);
    push_digits::<2>(line, of_day / 60 % 60);
    line.push(between);
    push_digits::<2>(line, of_day % 60);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: fn(&mut Vec<u8>, u64), ns: u64) -> String {
        let mut line = Vec::new();
        push(&mut line, ns);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn known_moments() {
        assert_eq!(text(push_iso, 0), "1970-01-01T00:00:00.000000+0000");
        assert_eq!(text(push_iso, 1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456+0000");
        assert_eq!(text(push_iso, u64::MAX), "2554-07-21T23:34:33.709551+0000");
        assert_eq!(text(push_dashed, 1_709_251_199_999_999_999), "2024-02-29-23-59-59");
        assert_eq!(text(push_seconds, 1_300_475_167_096_535_999), "1300475167.096535");
        assert_eq!(text(push_seconds, 1_999), "0.000001");
    }
}
