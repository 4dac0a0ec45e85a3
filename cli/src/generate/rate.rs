//! The values of `--rate`, which sets when frames leave.
//!
//! | value | meaning |
//! |---|---|
//! | `250k`, `1M` | packets per second; in a file, of packet time |
//! | `100Mbit`, `1.5Gbit` | bits per second |
//! | `recorded` | at the intervals of the frames' timestamps |
//! | `2x`, `0.5x` | the same, twice as fast, half as fast |

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use ringtap_io::live::Pace;

use crate::units;
use ringtap_terminal::numbers;

/// A send rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Packets(NonZeroU64),
    Bits(NonZeroU64),
    /// In thousandths of the recorded speed.
    Recorded(NonZeroU64),
}

impl Rate {
    /// The pacing of frames for a rate.
    pub(super) fn pace(rate: Option<Self>) -> Pace {
        match rate {
            None => Pace::unlimited(),
            Some(Self::Packets(rate)) => Pace::packets_per_second(rate),
            Some(Self::Bits(rate)) => Pace::bits_per_second(rate),
            Some(Self::Recorded(speed)) => Pace::recorded(speed),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const SPEED: NonZeroU64 = NonZeroU64::new(1000).unwrap();
        let positive = |number: Result<u64, String>| number.ok().and_then(NonZeroU64::new);
        let rate = if text == "recorded" {
            Some(Self::Recorded(SPEED))
        } else if let Some(times) = text.strip_suffix('x') {
            // In thousandths, the unit of `Pace`; the least is one.
            let speed = times.parse::<f64>().ok().map(|times| (times * 1000.0).round());
            let speed = speed.filter(|speed| (1.0..1e12).contains(speed));
            speed.and_then(|speed| NonZeroU64::new(speed as u64)).map(Self::Recorded)
        } else if let Some(bits) = text.strip_suffix("bit") {
            positive(units::count(bits)).map(Self::Bits)
        } else {
            positive(units::count(text)).map(Self::Packets)
        };
        rate.ok_or_else(|| {
            format!("invalid rate {text:?}: use 250k or 1M (packets per second), 100Mbit or 1Gbit, recorded, 2x or 0.5x")
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(rate) => write!(f, "{} packets/s", numbers::rate(rate.get() as f64)),
            Self::Bits(rate) => f.write_str(&bits(rate.get() as f64)),
            Self::Recorded(speed) if speed.get() == 1000 => f.write_str("as recorded"),
            Self::Recorded(speed) => write!(f, "{}x as recorded", speed.get() as f64 / 1000.0),
        }
    }
}

/// Bits per second as text, as in `1.50 Gbit/s`.
pub(super) fn bits(bits_per_second: f64) -> String {
    let text = numbers::rate(bits_per_second);
    let unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    text + if unit { "bit/s" } else { " bit/s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positive(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).unwrap()
    }

    #[test]
    fn rates_are_parsed_and_formatted() {
        for (text, rate, shown) in [
            ("1000", Rate::Packets(positive(1_000)), "1.00 k packets/s"),
            ("1.5M", Rate::Packets(positive(1_500_000)), "1.50 M packets/s"),
            ("100Mbit", Rate::Bits(positive(100_000_000)), "100 Mbit/s"),
            ("9600bit", Rate::Bits(positive(9_600)), "9.60 kbit/s"),
            ("50bit", Rate::Bits(positive(50)), "50 bit/s"),
            ("recorded", Rate::Recorded(positive(1_000)), "as recorded"),
            ("2x", Rate::Recorded(positive(2_000)), "2x as recorded"),
            ("0.5x", Rate::Recorded(positive(500)), "0.5x as recorded"),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
            assert_eq!(rate.to_string(), shown);
        }
        for wrong in [
            "", "0", "x", "0x", "-1x", "0.0001x", "infx", "nanx", "bit", "0bit", "fast", "1e9",
            "1 M",
        ] {
            let error = wrong.parse::<Rate>().unwrap_err();
            assert!(error.contains("100Mbit") && error.contains("recorded"), "{wrong}: {error}");
        }
    }

    #[test]
    fn frames_are_due_at_the_requested_rate() {
        let due = |text: &str| {
            let mut pace = Rate::pace(text.parse().ok());
            [(7, 0), (1_000_007, 100), (2_000_007, 60)].map(|(ts, len)| pace.due(50, ts, len))
        };
        assert_eq!(due("1k"), [0, 1_000_000, 2_000_000]);
        assert_eq!(due("8kbit"), [0, 0, 100_000_000]);
        assert_eq!(due("recorded"), [0, 1_000_000, 2_000_000]);
        assert_eq!(due("0.5x"), [0, 2_000_000, 4_000_000]);
        assert_eq!(due("no rate at all"), [0; 3]);
    }
}
