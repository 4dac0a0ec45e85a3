//! Alerts as lines on stderr, at most a few a minute.

use std::time::Duration;

use anstyle::AnsiColor;
use ringtap_base::text::shown;
use ringtap_monitor::{Alert, AlertState, Subject};
use ringtap_terminal::console::bold;
use ringtap_terminal::numbers::count;

/// Lines printed in each minute of the run.
const MOST: u64 = 20;

/// Counts the lines of a minute.
#[derive(Default)]
pub(crate) struct AlertLines {
    /// The minute of the run.
    minute: u64,
    printed: u64,
    /// Changes that were not printed since the last line about them.
    suppressed: u64,
    /// Whether a scan has one line, when it has ended.
    lists_scans_once: bool,
}

impl AlertLines {
    /// With `lists_scans_once`, a scan has one line, when it has ended.
    pub(crate) fn new(lists_scans_once: bool) -> Self {
        Self { lists_scans_once, ..Self::default() }
    }

    /// The lines for a change at `elapsed` after the start of the run.
    pub(crate) fn add(&mut self, alert: &Alert, elapsed: Duration) -> Vec<String> {
        let mut lines: Vec<_> = self.turn(elapsed).into_iter().collect();
        let is_once = self.lists_scans_once && matches!(alert.subject, Subject::Scan { .. });
        if is_once && alert.state != AlertState::Ends {
            return lines;
        }
        if self.printed < MOST {
            self.printed += 1;
            lines.push(if is_once { whole_line(alert) } else { line(alert) });
        } else {
            self.suppressed += 1;
        }
        lines
    }

    /// The line about suppressed changes, when their minute is over.
    pub(crate) fn turn(&mut self, elapsed: Duration) -> Option<String> {
        let minute = elapsed.as_secs() / 60;
        if minute == self.minute {
            return None;
        }
        (self.minute, self.printed) = (minute, 0);
        let more = std::mem::take(&mut self.suppressed);
        let text = || format!("{} more in the last minute", count(more));
        (more > 0).then(|| labelled(&text()))
    }

    /// The line about suppressed changes at the end of the run.
    pub(crate) fn close(&mut self) -> Option<String> {
        let more = std::mem::take(&mut self.suppressed);
        let text = || format!("{} more; the report has all scans and watched entries", count(more));
        (more > 0).then(|| labelled(&text()))
    }
}

fn line(alert: &Alert) -> String {
    let severity = alert.subject.kind().severity().name();
    labelled(&format!("{} {}: {alert} ({severity})", alert.time, alert.state.name()))
}

/// The line for an alert that has ended.
fn whole_line(alert: &Alert) -> String {
    let severity = alert.subject.kind().severity().name();
    let [first, _] = alert.evidence;
    labelled(&format!("{first} to {}: {alert} ({severity})", alert.time))
}

fn labelled(text: &str) -> String {
    let style = bold(AnsiColor::Magenta);
    format!("{style}alert:{style:#} {}", shown(text))
}

#[cfg(test)]
mod tests {
    use ringtap_monitor::report::Time;
    use ringtap_monitor::{Member, ScanKind};

    use super::*;

    #[test]
    fn a_minute_has_a_number_of_lines_and_the_rest_is_counted() {
        let subject = Subject::Spread { source: [10, 0, 0, 1].into() };
        let (since, time) = (Time(0), Time(0));
        let state = AlertState::Begins;
        let (flood, evidence) = (None, [time; 2]);
        let alert = Alert { id: 1, state, subject, number: 9, flood, since, time, evidence };
        let mut lines = AlertLines::default();
        let mut add = |seconds: u64, times: u64| -> Vec<String> {
            let all = (0..times).flat_map(|_| lines.add(&alert, Duration::from_secs(seconds)));
            all.map(|line| plain(&line)).collect()
        };
        let one = "alert: 1970-01-01T00:00:00.000000000Z begins: 10.0.0.1 sent to 9 hosts (medium)";
        assert_eq!(add(1, MOST), vec![one; MOST as usize]);
        assert_eq!(add(59, 1_200), Vec::<String>::new());
        assert_eq!(add(60, 1), ["alert: 1,200 more in the last minute", one]);
        assert_eq!(add(61, MOST + 1).len() as u64, MOST - 1);
        assert_eq!(lines.turn(Duration::from_secs(119)), None);
        let close = lines.close().map(|line| plain(&line));
        let text = "alert: 2 more; the report has all scans and watched entries";
        assert_eq!(close.as_deref(), Some(text));
        assert_eq!(lines.close(), None);
    }

    #[test]
    fn scans_of_files_have_one_line_each() {
        let alert = |state| {
            let sample = vec![Member::Port(22)];
            let (kind, source) = (ScanKind::Horizontal, [10, 0, 0, 1].into());
            let subject = Subject::Scan { kind, source, sample, scans: 1 };
            let (since, time) = (Time(0), Time(2_000_000_000));
            let (number, flood, evidence) = (30, None, [since, time]);
            Alert { id: 1, state, subject, number, flood, since, time, evidence }
        };
        let mut lines = AlertLines::new(true);
        let mut all = AlertState::ALL.into_iter().flat_map(|state| {
            lines.add(&alert(state), Duration::ZERO).into_iter().map(|line| plain(&line))
        });
        let one = "alert: 1970-01-01T00:00:00.000000000Z to 1970-01-01T00:00:02.000000000Z: \
                   10.0.0.1 scans port 22/tcp: 30 targets failed (medium)";
        assert_eq!((all.next().as_deref(), all.next()), (Some(one), None));
        drop(all);
        let spread = Subject::Spread { source: [10, 0, 0, 1].into() };
        let other = Alert { subject: spread, ..alert(AlertState::Begins) };
        assert_eq!(lines.add(&other, Duration::ZERO).len(), 1);
        let each = AlertState::ALL
            .map(|state| AlertLines::new(false).add(&alert(state), Duration::ZERO).len());
        assert_eq!(each, [1; 4]);
    }

    #[test]
    fn only_a_build_with_colours_has_escape_sequences() {
        assert_eq!(labelled("a").contains('\x1b'), cfg!(feature = "color"));
        assert_eq!(plain(&labelled("a")), "alert: a");
    }

    /// The line without its style.
    fn plain(line: &str) -> String {
        let rest = line.split_once("alert:").and_then(|(_, rest)| rest.split_once(' '));
        format!("alert: {}", rest.map_or("", |(_, text)| text))
    }
}
