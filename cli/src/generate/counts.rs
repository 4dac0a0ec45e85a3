//! What became of a run that sent frames, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::rate;
use super::stamps::Stamps;
use ringtap_terminal::numbers::{self, bytes, count, of};

/// The names are those of `--report json`; docs/GENERATE.md defines them.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) interface: String,
    pub(super) method: &'static str,
    /// Frames that the source gave.
    pub(super) frames: u64,
    /// Of these, handed to the kernel, and their octets.
    pub(super) sent: u64,
    pub(super) octets: u64,
    /// Of those sent.
    pub(super) accepted: u64,
    pub(super) dropped: u64,
    pub(super) pending: u64,
    /// How often the kernel had no room; those frames were tried again.
    pub(super) refused: u64,
    pub(super) not_sent: NotSent,
    /// Frames that were longer on the wire than they are in the capture.
    pub(super) cut: u64,
    pub(super) stamps: Option<Stamps>,
    pub(super) seconds: f64,
    pub(super) packets_per_second: f64,
    pub(super) bits_per_second: f64,
    pub(super) rate: Option<Met>,
    pub(super) interrupted: bool,
}

/// Frames that were not handed to the kernel, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct NotSent {
    pub(super) too_long: u64,
    pub(super) too_short: u64,
    pub(super) not_ethernet: u64,
    /// The run ended before it was their turn.
    pub(super) left_over: u64,
}

/// How a rate was met.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Met {
    pub(super) asked: String,
    /// The most that a frame left after it was due.
    pub(super) latest_ms: f64,
}

impl Counts {
    /// Works out the rates.
    pub(super) fn close(&mut self, seconds: f64) {
        self.seconds = seconds;
        let seconds = seconds.max(1e-9);
        self.packets_per_second = self.sent as f64 / seconds;
        self.bits_per_second = self.octets as f64 * 8.0 / seconds;
    }

    /// Some lines for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{}, {}, sent by {} ({}) in {:.2} s ({} packets/s, {})\n",
            of(self.sent, "packet"),
            bytes(self.octets),
            self.interface,
            self.method,
            self.seconds,
            numbers::rate(self.packets_per_second),
            rate::bits(self.bits_per_second),
        );
        if let Some(Met { asked, latest_ms }) = &self.rate {
            let _ =
                writeln!(text, "rate: {asked}; no packet left more than {latest_ms:.1} ms late");
        }
        if let Some(stamps) = &self.stamps {
            let _ = writeln!(text, "stamped {} as run {:04x}", count(stamps.stamped), stamps.run);
        }
        text
    }

    /// What did not go as it should.
    pub(super) fn complaints(&self) -> Vec<String> {
        let NotSent { too_long, too_short, not_ethernet, left_over } = self.not_sent;
        let told = [
            (too_long, format!("not sent: longer than {} takes", self.interface)),
            (too_short, "not sent: shorter than an Ethernet header".into()),
            (not_ethernet, "not sent: not Ethernet".into()),
            (left_over, "not sent: the run ended before".into()),
            (self.dropped, format!("dropped by {}", self.interface)),
            (self.pending, "handed over, and not taken when the run ended".into()),
            (self.cut, "sent as short as captured; longer on the wire".into()),
        ];
        let told = told.into_iter().filter(|(number, _)| *number > 0);
        let told = told.map(|(number, what)| format!("{} {what}", of(number, "frame")));
        told.chain(self.stamps.and_then(|stamps| stamps.complaint())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_said_and_nothing_else() {
        assert!(Counts::default().complaints().is_empty());
        let not_sent = NotSent { too_long: 1, left_over: 2_000, ..NotSent::default() };
        let counts = Counts { interface: "eth0".into(), not_sent, ..Counts::default() };
        let said = counts.complaints();
        assert_eq!(said[0], "1 frame not sent: longer than eth0 takes");
        assert_eq!(said[1..], ["2,000 frames not sent: the run ended before"]);
    }
}
