//! The report of sending frames, as text and JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::rate;
use super::stamps::Stamps;
use ringtap_terminal::numbers::{self, bytes, count, of};

/// Counters of a run. Field names are those of `--report json`; docs/GENERATE.md defines them.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) interface: String,
    pub(super) method: &'static str,
    /// Frames read from the source.
    pub(super) frames: u64,
    /// Frames handed to the kernel, and their octets.
    pub(super) sent: u64,
    pub(super) octets: u64,
    /// Frames sent that the interface accepted, dropped, or has not finished.
    pub(super) accepted: u64,
    pub(super) dropped: u64,
    pub(super) pending: u64,
    /// Attempts for which the kernel had no room; those frames were sent later.
    pub(super) refused: u64,
    pub(super) not_sent: NotSent,
    /// Frames that were truncated in the capture.
    pub(super) cut: u64,
    pub(super) stamps: Option<Stamps>,
    pub(super) seconds: f64,
    pub(super) packets_per_second: f64,
    pub(super) bits_per_second: f64,
    pub(super) rate: Option<Pacing>,
    pub(super) interrupted: bool,
}

/// Frames that were not handed to the kernel, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct NotSent {
    pub(super) too_long: u64,
    pub(super) too_short: u64,
    pub(super) not_ethernet: u64,
    /// Frames not sent before the run ended.
    pub(super) left_over: u64,
}

/// The requested rate and the largest delay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pacing {
    /// The requested rate.
    pub(super) requested: String,
    /// Largest delay of a frame, milliseconds.
    pub(super) latest_ms: f64,
}

impl Counts {
    /// Computes the rates.
    pub(super) fn close(&mut self, seconds: f64) {
        self.seconds = seconds;
        let seconds = seconds.max(1e-9);
        self.packets_per_second = self.sent as f64 / seconds;
        self.bits_per_second = self.octets as f64 * 8.0 / seconds;
    }

    /// The text form.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}, {}, sent on {} ({}) in {:.2} s ({} packets/s, {})\n",
            of(self.sent, "packet"),
            bytes(self.octets),
            self.interface,
            self.method,
            self.seconds,
            numbers::rate(self.packets_per_second),
            rate::bits(self.bits_per_second),
        );
        if let Some(Pacing { requested, latest_ms }) = &self.rate {
            let _ = writeln!(text, "rate: {requested}; largest delay {latest_ms:.1} ms");
        }
        if let Some(stamps) = &self.stamps {
            let _ = writeln!(text, "stamped {} as run {:04x}", count(stamps.stamped), stamps.run);
        }
        text
    }

    /// Warnings about frames that were not sent, or not sent whole.
    pub(super) fn warnings(&self) -> Vec<String> {
        let NotSent { too_long, too_short, not_ethernet, left_over } = self.not_sent;
        let counters = [
            (too_long, format!("not sent: too long for {}", self.interface)),
            (too_short, "not sent: shorter than an Ethernet header".into()),
            (not_ethernet, "not sent: not Ethernet".into()),
            (left_over, "not sent: the run ended".into()),
            (self.dropped, format!("dropped by {}", self.interface)),
            (self.pending, "still pending when the run ended".into()),
            (self.cut, "sent truncated as captured; longer on the wire".into()),
        ];
        let nonzero = counters.into_iter().filter(|(number, _)| *number > 0);
        let warnings = nonzero.map(|(number, what)| format!("{} {what}", of(number, "frame")));
        warnings.chain(self.stamps.and_then(|stamps| stamps.warning())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_problems_are_reported() {
        assert!(Counts::default().warnings().is_empty());
        let not_sent = NotSent { too_long: 1, left_over: 2_000, ..NotSent::default() };
        let counts = Counts { interface: "eth0".into(), not_sent, ..Counts::default() };
        let warnings = counts.warnings();
        assert_eq!(warnings[0], "1 frame not sent: too long for eth0");
        assert_eq!(warnings[1..], ["2,000 frames not sent: the run ended"]);
    }
}
