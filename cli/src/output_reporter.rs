//! Says on stderr when an output fails, when it loses records and when it works again, while the run goes on.

use std::time::Duration;

use ringtap_export::{Handle, Reason, Status};

use ringtap_terminal::numbers::count;

/// An output that goes on failing or losing is reported again after this time.
const AGAIN: Duration = Duration::from_secs(30);

/// Losses that an output is to blame for. What its protocol cannot express, and what a reader that has left did not read,
/// is in the report.
const LOSSES: [Reason; 4] = [Reason::NoRoom, Reason::Failed, Reason::Refused, Reason::TooLate];

pub(crate) struct OutputReporter {
    handle: Handle,
    outputs: Vec<Reported>,
}

/// What was reported of one output.
#[derive(Default)]
struct Reported {
    failing: bool,
    lost: u64,
    /// Of these, for lack of room.
    no_room: u64,
    /// When its losses or its failure were reported last.
    at: Option<Duration>,
}

/// A line to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Warning(String),
    Note(String),
}

impl OutputReporter {
    pub(crate) fn new(handle: Handle) -> Self {
        let outputs = handle.status().iter().map(|_| Reported::default()).collect();
        Self { handle, outputs }
    }

    pub(crate) fn status(&self) -> Vec<Status> {
        self.handle.status()
    }

    /// The lines to print at `elapsed` after the start.
    pub(crate) fn check(&mut self, elapsed: Duration) -> Vec<Line> {
        let status = self.handle.status();
        let all = status.iter().zip(&mut self.outputs);
        all.filter_map(|(status, reported)| reported.check(status, elapsed)).collect()
    }
}

impl Reported {
    fn check(&mut self, status: &Status, elapsed: Duration) -> Option<Line> {
        let (name, no_room) = (&status.name, status.lost(Reason::NoRoom));
        let lost = LOSSES.map(|reason| status.lost(reason)).iter().sum();
        let due = self.at.is_none_or(|at| elapsed.saturating_sub(at) >= AGAIN);
        let new = u64::saturating_sub(lost, self.lost);
        let losses = match new {
            0 => String::new(),
            new => format!("; {} flow records lost", count(new)),
        };
        let line = if status.failing && (!self.failing || due) {
            let error = status.last_error.as_ref().map_or("", |(error, _)| error);
            Line::Warning(format!("{name}: {error}; trying again{losses}"))
        } else if !status.failing && self.failing {
            Line::Note(format!("{name}: works again{losses}"))
        } else if new > 0 && due {
            let what = if no_room > self.no_room { "it cannot keep up" } else { "it fails" };
            Line::Warning(format!("{name}: {what}{losses}"))
        } else {
            return None;
        };
        *self = Self { failing: status.failing, lost, no_room, at: Some(elapsed) };
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringtap_export::Reason;

    fn status(failing: bool, lost: u64) -> Status {
        losing(Reason::NoRoom, failing, lost)
    }

    fn losing(why: Reason, failing: bool, lost: u64) -> Status {
        Status {
            name: "json:a".into(),
            made: 100,
            sent: 0,
            lost: Reason::ALL.map(|reason| (reason, if reason == why { lost } else { 0 })),
            queued_bytes: 0,
            failing,
            last_error: Some(("No space left on device".into(), std::time::UNIX_EPOCH)),
        }
    }

    #[test]
    fn a_failure_is_reported_once_and_again_later_and_so_is_its_end() {
        let mut reported = Reported::default();
        let mut at = |seconds, failing, lost| {
            reported.check(&status(failing, lost), Duration::from_secs(seconds))
        };
        assert_eq!(at(1, false, 0), None);
        let first = "json:a: No space left on device; trying again";
        assert_eq!(at(2, true, 0), Some(Line::Warning(first.into())));
        assert_eq!(at(3, true, 5_000), None);
        let again = format!("{first}; 6,000 flow records lost");
        assert_eq!(at(32, true, 6_000), Some(Line::Warning(again)));
        let over = "json:a: works again; 1 flow records lost";
        assert_eq!(at(33, false, 6_001), Some(Line::Note(over.into())));
        assert_eq!(at(34, false, 6_002), None);
        let slow = "json:a: it cannot keep up; 2 flow records lost";
        assert_eq!(at(63, false, 6_003), Some(Line::Warning(slow.into())));
    }

    #[test]
    fn only_an_output_without_room_cannot_keep_up() {
        let line = |why| {
            Reported::default().check(&losing(why, false, 5), Duration::from_secs(1)).map(|line| {
                match line {
                    Line::Warning(text) | Line::Note(text) => text,
                }
            })
        };
        for why in [Reason::Ipv6, Reason::TimeSpan, Reason::CounterRange, Reason::ReaderGone] {
            assert_eq!(line(why), None, "{why:?}");
        }
        let refused = "json:a: it fails; 5 flow records lost";
        assert_eq!(line(Reason::Refused).as_deref(), Some(refused));
        let slow = "json:a: it cannot keep up; 5 flow records lost";
        assert_eq!(line(Reason::NoRoom).as_deref(), Some(slow));
    }
}
