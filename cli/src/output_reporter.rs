//! Messages during a run about outputs that fail, lose records or recover.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringtap_export::{Handle, Reason, Status};

use ringtap_terminal::numbers::{bytes, count};

/// Interval at which a lasting failure or loss is reported again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Losses caused by an output. Other losses are only in the report: records that the protocol
/// cannot express, and records after the reader of stdout closed it.
const LOSSES: [Reason; 5] =
    [Reason::NoRoom, Reason::Failed, Reason::Refused, Reason::TooLate, Reason::TooMany];

/// Compares the status of all outputs with the last report.
pub(crate) struct OutputReporter {
    handle: Handle,
    /// By name.
    outputs: BTreeMap<String, Reported>,
    spaces: Spaces,
}

/// The file systems of outputs whose space is low, by their numbers, with a folder on them.
#[derive(Default)]
struct Spaces(BTreeMap<u64, Arc<Path>>);

/// The last report about an output.
#[derive(Default)]
struct Reported {
    failing: bool,
    lost: u64,
    /// Records lost because the buffer was full.
    no_room: u64,
    /// Alerts lost because too many began.
    too_many: u64,
    /// Time of the last report.
    at: Option<Duration>,
}

/// A line to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Warning(String),
    /// A warning that the end of the run does not repeat.
    Space(String),
    Note(String),
}

impl OutputReporter {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, outputs: BTreeMap::new(), spaces: Spaces::default() }
    }

    pub(crate) fn status(&self) -> Vec<Status> {
        self.handle.status()
    }

    /// The lines to print at `elapsed` after the start.
    pub(crate) fn check(&mut self, elapsed: Duration) -> Vec<Line> {
        let status = self.handle.status();
        let mut lines = self.spaces.check(&status);
        self.outputs.retain(|name, _| status.iter().any(|own| own.name == *name));
        for own in &status {
            let reported = self.outputs.entry(own.name.clone()).or_default();
            lines.extend(reported.check(own, elapsed));
        }
        lines
    }
}

impl Spaces {
    /// A line for each file system whose space is low now, or was.
    fn check(&mut self, status: &[Status]) -> Vec<Line> {
        let all: Vec<_> = status.iter().filter_map(|one| one.space.as_ref()).collect();
        let mut lines = Vec::new();
        for space in all.iter().filter(|space| space.is_low) {
            if self.0.contains_key(&space.device) {
                continue;
            }
            self.0.insert(space.device, Arc::clone(&space.folder));
            let share = 100.0 * space.free as f64 / space.total.max(1) as f64;
            let what = if space.removes {
                "no old file is left that --keep-free may remove"
            } else {
                "free some, or use --keep-free to remove old files"
            };
            let (folder, free) = (space.folder.display(), bytes(space.free));
            lines.push(Line::Space(format!(
                "{folder}: its disk has {free} free ({share:.1} %); {what}"
            )));
        }
        self.0.retain(|device, folder| {
            let mut here = all.iter().filter(|space| space.device == *device);
            let is_low = here.clone().any(|space| space.is_low);
            if let (false, Some(space)) = (is_low, here.next()) {
                let (folder, free) = (folder.display(), bytes(space.free));
                lines.push(Line::Note(format!("{folder}: its disk has {free} free again")));
            }
            is_low
        });
        lines
    }
}

impl Reported {
    fn check(&mut self, status: &Status, elapsed: Duration) -> Option<Line> {
        let [no_room, too_many] = [Reason::NoRoom, Reason::TooMany].map(|why| status.lost(why));
        let name = &status.name;
        let lost = LOSSES.map(|reason| status.lost(reason)).iter().sum();
        let due = self.at.is_none_or(|at| elapsed.saturating_sub(at) >= REPEAT_INTERVAL);
        let new = u64::saturating_sub(lost, self.lost);
        let losses = match new {
            0 => String::new(),
            1 => format!("; 1 {} lost", status.items.name().trim_end_matches('s')),
            new => format!("; {} {} lost", count(new), status.items.name()),
        };
        let line = if status.failing && (!self.failing || due) {
            let error = status.last_error.as_ref().map_or("", |(error, _)| error);
            let next = if status.retrying { "; trying again" } else { "" };
            Line::Warning(format!("{name}: {error}{next}{losses}"))
        } else if !status.failing && self.failing {
            Line::Note(format!("{name}: works again{losses}"))
        } else if new > 0 && due {
            let what = match (no_room > self.no_room, too_many > self.too_many) {
                (true, _) => "too slow",
                (_, true) => "too many alerts",
                _ => "writing fails",
            };
            Line::Warning(format!("{name}: {what}{losses}"))
        } else {
            return None;
        };
        *self = Self { failing: status.failing, lost, no_room, too_many, at: Some(elapsed) };
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use ringtap_export::{Items, Space};

    use super::*;

    fn status(failing: bool, lost: u64) -> Status {
        losing(Reason::NoRoom, failing, lost)
    }

    fn losing(why: Reason, failing: bool, lost: u64) -> Status {
        Status {
            name: "json:a".into(),
            items: Items::Flows,
            made: 100,
            sent: 0,
            lost: Reason::ALL.map(|reason| (reason, if reason == why { lost } else { 0 })),
            queued_bytes: 0,
            files_removed: 0,
            space: None,
            failing,
            retrying: failing,
            last_error: Some(("No space left on device".into(), std::time::UNIX_EPOCH)),
        }
    }

    #[test]
    fn a_failure_is_reported_once_and_repeated_at_the_interval_and_its_end_is_reported() {
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
        let over = "json:a: works again; 1 flow record lost";
        assert_eq!(at(33, false, 6_001), Some(Line::Note(over.into())));
        assert_eq!(at(34, false, 6_002), None);
        let slow = "json:a: too slow; 2 flow records lost";
        assert_eq!(at(63, false, 6_003), Some(Line::Warning(slow.into())));
    }

    #[test]
    fn a_disk_with_low_space_is_reported_once_until_it_has_more() {
        let on = |device, free, is_low| {
            let folder = Path::new(if device == 1 { "/a" } else { "/b" }).into();
            let (total, removes) = (100 << 20, device == 1);
            let space = Space { folder, device, free, total, is_low, removes };
            Status { space: Some(space), ..status(false, 0) }
        };
        let mut spaces = Spaces::default();
        assert_eq!(spaces.check(&[on(1, 9 << 20, false), status(false, 0)]), []);
        // Both outputs have the same disk, and only one has seen it.
        let lines = spaces.check(&[on(1, 9 << 20, false), on(1, 4 << 20, true)]);
        let text = "/a: its disk has 4.00 MiB free (4.0 %); no old file is left that --keep-free may remove";
        assert_eq!(lines, [Line::Space(text.into())]);
        assert_eq!(spaces.check(&[on(1, 3 << 20, true), on(1, 4 << 20, true)]), []);
        let text = "/b: its disk has 2.00 MiB free (2.0 %); free some, or use --keep-free to remove old files";
        assert_eq!(
            spaces.check(&[on(1, 3 << 20, true), on(2, 2 << 20, true)]),
            [Line::Space(text.into())]
        );
        let lines = spaces.check(&[on(1, 8 << 20, false), on(2, 2 << 20, true)]);
        assert_eq!(lines, [Line::Note("/a: its disk has 8.00 MiB free again".into())]);
    }

    #[test]
    fn only_a_full_buffer_is_reported_as_too_slow() {
        let line = |why| {
            Reported::default().check(&losing(why, false, 5), Duration::from_secs(1)).map(|line| {
                match line {
                    Line::Warning(text) | Line::Space(text) | Line::Note(text) => text,
                }
            })
        };
        for why in [Reason::Ipv6, Reason::TimeSpan, Reason::CounterRange, Reason::ReaderGone] {
            assert_eq!(line(why), None, "{why:?}");
        }
        let refused = "json:a: writing fails; 5 flow records lost";
        assert_eq!(line(Reason::Refused).as_deref(), Some(refused));
        let many = "json:a: too many alerts; 5 flow records lost";
        assert_eq!(line(Reason::TooMany).as_deref(), Some(many));
        let slow = "json:a: too slow; 5 flow records lost";
        assert_eq!(line(Reason::NoRoom).as_deref(), Some(slow));
        let alerts = losing(Reason::Failed, true, 1);
        let alerts = Status { items: Items::Alerts, retrying: false, queued_bytes: 9, ..alerts };
        let line = Reported::default().check(&alerts, Duration::from_secs(1));
        let text = "json:a: No space left on device; 1 alert lost";
        assert_eq!(line, Some(Line::Warning(text.into())));
        let states = Status { items: Items::States, ..status(false, 5) };
        let line = Reported::default().check(&states, Duration::from_secs(1));
        assert_eq!(line, Some(Line::Warning("json:a: too slow; 5 states lost".into())));
    }
}
