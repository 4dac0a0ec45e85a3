//! Times of reports and alerts.

use ringtap_base::civil;
use serde::{Serialize, Serializer};

/// Nanoseconds since 1970; in JSON a string in the form of RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

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
}
