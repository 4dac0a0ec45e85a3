//! Times of questions: `2026-11-26T10:02:03Z`, `2026-11-26 10:02`, `2026-11-26`, `10:02`, `-1h`, `now`.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use ringtap_terminal::units;

/// The zone of times that name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// UTC.
    #[default]
    Utc,
    /// The zone of the machine, or of `TZ`.
    Local,
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid time {0:?}: use 2026-11-26T10:02:03Z, 2026-11-26 10:02, 2026-11-26, 10:02, -1h or now"
)]
pub struct InvalidTime(String);

/// The present moment, in milliseconds since 1970.
pub fn now() -> i64 {
    Utc::now().timestamp_millis()
}

/// Milliseconds since 1970; `now` is the moment that times are relative to.
///
/// # Errors
/// The text is no time, or one that the clocks of the zone leave out.
pub fn parse(text: &str, now: i64, zone: Zone) -> Result<i64, InvalidTime> {
    let invalid = || InvalidTime(text.to_owned());
    let ms = match zone {
        Zone::Utc => in_zone(text, now, &Utc),
        Zone::Local => in_zone(text, now, &Local),
    };
    ms.filter(|ms| (0..=MOST).contains(ms)).ok_or_else(invalid)
}

/// The last moment of the year 9999.
const MOST: i64 = 253_402_300_799_999;

fn in_zone<Z: TimeZone>(text: &str, now: i64, zone: &Z) -> Option<i64> {
    if text == "now" {
        return Some(now);
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ms = units::duration_ns(ago).ok()? / 1_000_000;
        return now.checked_sub(i64::try_from(ms).ok()?);
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let at = if let Some(time) = time_of_day(text) {
        let today = zone.timestamp_millis_opt(now).single()?.date_naive();
        today.and_time(time)
    } else if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        // A day may begin later than at midnight.
        return (0..24 * 4).find_map(|quarter| {
            let at = date.and_time(NaiveTime::MIN) + chrono::TimeDelta::minutes(15 * quarter);
            zone.from_local_datetime(&at).earliest().map(|at| at.timestamp_millis())
        });
    } else {
        let (date, time) = text.split_once(['T', ' '])?;
        NaiveDateTime::new(NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?, time_of_day(time)?)
    };
    zone.from_local_datetime(&at).earliest().map(|at| at.timestamp_millis())
}

fn time_of_day(text: &str) -> Option<NaiveTime> {
    let formats = ["%H:%M", "%H:%M:%S", "%H:%M:%S%.f"];
    formats.into_iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())
}

/// A time in SQL.
pub(crate) fn sql(ms: i64) -> String {
    let at = Utc.timestamp_millis_opt(ms).single().unwrap_or_default();
    format!("TIMESTAMPTZ '{}'", at.format("%Y-%m-%d %H:%M:%S%.3f+00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_687_509_250;

    #[test]
    fn times_are_read_in_their_forms() {
        for (text, ms) in [
            ("2026-11-26T10:05:09.250Z", NOW),
            ("2026-11-26T11:05:09.25+01:00", NOW),
            ("2026-11-26 10:05:09.25", NOW),
            ("2026-11-26T10:05", NOW - 9_250),
            ("10:05", NOW - 9_250),
            ("2026-11-26", 1_795_651_200_000),
            ("-1h", NOW - 3_600_000),
            ("-1d", NOW - 86_400_000),
            ("now", NOW),
            ("1970-01-01", 0),
        ] {
            assert_eq!(parse(text, NOW, Zone::Utc), Ok(ms), "{text}");
        }
        for text in [
            "",
            "soon",
            "25:00",
            "2026-13-01",
            "1969-12-31",
            "-100000d",
            "-",
            "2026-11-26T",
            "10000-01-01",
        ] {
            let error = parse(text, NOW, Zone::Utc).expect_err(text);
            assert!(error.to_string().contains("-1h"), "{error}");
        }
        assert_eq!(sql(NOW), "TIMESTAMPTZ '2026-11-26 10:05:09.250+00'");
    }
}
