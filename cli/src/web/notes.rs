//! Alerts and the activity of the last interval, as the run reports them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ringtap_monitor::report::activity::Activity;
use ringtap_monitor::{Alert, AlertState, EndedInterval, Member, Subject};
use ringtap_terminal::table::Lean::Left;
use ringtap_terminal::table::{Cell, Table};

use super::flows::within;
use super::view::{View, of_one};

/// Most alerts kept.
const MOST: usize = 2_000;
/// Notes on their way to the page.
const WAITING: usize = 4_096;

/// What the run reports.
enum Note {
    Alert(Box<Alert>),
    Activity(Box<Activity>),
}

/// The run's end of the channel. No call waits; without room a note is lost for the page alone, and counted.
#[derive(Clone)]
pub(crate) struct Reporter {
    sender: SyncSender<Note>,
    lost: Arc<AtomicU64>,
}

impl Reporter {
    /// Reports a change of an alert.
    pub(crate) fn alert(&self, alert: &Alert) {
        self.send(Note::Alert(Box::new(alert.clone())));
    }

    /// Reports an interval.
    pub(crate) fn interval(&self, ended: &EndedInterval<'_>) {
        if let Some(activity) = ended.activity {
            self.send(Note::Activity(Box::new(activity.clone())));
        }
    }

    fn send(&self, note: Note) {
        if self.sender.try_send(note).is_err() {
            // Relaxed: a counter orders no other data.
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The latest notes.
pub(super) struct Notes {
    receiver: Receiver<Note>,
    lost: Arc<AtomicU64>,
    /// In the order of their beginnings.
    alerts: VecDeque<Alert>,
    /// The activity of the last interval, if it is measured.
    pub(super) activity: Option<Activity>,
}

impl Notes {
    /// None yet, and the other end of the channel.
    pub(super) fn new() -> (Self, Reporter) {
        let (sender, receiver) = sync_channel(WAITING);
        let reporter = Reporter { sender, lost: Arc::default() };
        let lost = Arc::clone(&reporter.lost);
        (Self { receiver, lost, alerts: VecDeque::new(), activity: None }, reporter)
    }

    /// Changes that were lost on their way.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes what the run has reported.
    pub(super) fn receive(&mut self) {
        while let Ok(note) = self.receiver.try_recv() {
            match note {
                Note::Activity(activity) => self.activity = Some(*activity),
                Note::Alert(alert) => self.add(*alert),
            }
        }
    }

    /// A change replaces what is known of its alert.
    fn add(&mut self, alert: Alert) {
        if let Some(own) = self.alerts.iter_mut().rev().find(|own| own.id == alert.id) {
            *own = alert;
            return;
        }
        if self.alerts.len() == MOST {
            // The oldest that is over, else the oldest.
            let place = self.alerts.iter().position(is_over).unwrap_or(0);
            self.alerts.remove(place);
        }
        self.alerts.push_back(alert);
    }

    /// The alerts of a view, and their number: open ones first, then the latest.
    pub(super) fn alerts(&self, view: &View, time: &dyn Fn(u64) -> String) -> (Table, usize) {
        let is_open = |alert: &&Alert| !is_over(alert);
        let matches = |alert: &&Alert| {
            view.host.is_none_or(|network| hosts(alert).iter().any(|host| within(network, *host)))
                && view.until.is_none_or(|until| alert.since.0 / 1_000_000_000 <= until)
        };
        let all: Vec<_> = self.alerts.iter().rev().filter(matches).collect();
        let (open, over): (Vec<&Alert>, Vec<&Alert>) = all.iter().copied().partition(is_open);
        let mut table = Table::with_head(&[
            ("since", Left),
            ("state", Left),
            ("alert", Left),
            ("host", Left),
            ("severity", Left),
        ]);
        for alert in open.into_iter().chain(over).take(view.rows) {
            let state = match is_over(alert) {
                true => format!("{} {}", alert.state.name(), time(alert.time.0)),
                false => alert.state.name().to_owned(),
            };
            let host = hosts(alert)[0];
            let to = view.link_with(|view| view.host = Some(of_one(host)));
            // Its flows, in the time of its evidence.
            let flows = view.link_with(|view| {
                let [from, until] = alert.evidence.map(|time| time.0 / 1_000_000_000);
                (view.host, view.table) = (Some(of_one(host)), Some("flows".into()));
                view.from = Some(from);
                view.until = is_over(alert).then_some(until + 1);
            });
            table.row([
                Cell::from(time(alert.since.0)).to(flows),
                state.into(),
                alert.to_string().into(),
                Cell::from(host.to_string()).to(to),
                alert.subject.kind().severity().name().into(),
            ]);
        }
        (table, all.len())
    }
}

fn is_over(alert: &Alert) -> bool {
    matches!(alert.state, AlertState::Ends | AlertState::Withdrawn)
}

/// The hosts of an alert, the one that it is about first.
fn hosts(alert: &Alert) -> Vec<IpAddr> {
    match &alert.subject {
        Subject::Scan { source, sample, .. } => {
            let target = |member: &Member| match member {
                Member::Target(target) => Some(*target),
                Member::Port(_) => None,
            };
            [*source].into_iter().chain(sample.iter().filter_map(target)).collect()
        }
        Subject::Spread { source } => vec![*source],
        Subject::Flood { target } => vec![*target],
        Subject::NewDevice { host }
        | Subject::NewServerPort { host, .. }
        | Subject::VolumeChange { host, .. } => vec![*host],
        Subject::Watched { host, hosts, flow, .. } => {
            let ends = [*host, flow.source(), flow.destination()];
            ends.into_iter().chain(hosts.iter().copied()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_monitor::ScanKind;
    use ringtap_monitor::report::Time;

    use super::*;

    fn change(id: u64, state: AlertState) -> Alert {
        let source = IpAddr::from([10, 0, (id >> 8) as u8, id as u8]);
        let (kind, sample) = (ScanKind::Horizontal, vec![Member::Port(22)]);
        let subject = Subject::Scan { kind, source, sample, scans: 1 };
        let (since, time) = (Time(id), Time(id + 1));
        let evidence = [since, time];
        Alert { id, state, subject, number: 30, flood: None, since, time, evidence }
    }

    #[test]
    fn a_change_replaces_the_one_before_and_open_alerts_stay() {
        let (mut notes, reporter) = Notes::new();
        reporter.alert(&change(1, AlertState::Begins));
        for id in 2..MOST as u64 + 100 {
            reporter.alert(&change(id, AlertState::Begins));
            reporter.alert(&change(id, AlertState::Ends));
            notes.receive();
        }
        reporter.alert(&change(1, AlertState::Continues));
        notes.receive();
        let time = |ns: u64| ns.to_string();
        let (table, all) = notes.alerts(&View::default(), &time);
        assert_eq!((all, notes.lost()), (MOST, 0));
        let csv = table.csv();
        let mut rows = csv.lines().skip(1);
        let first = rows.next().unwrap();
        assert!(first.starts_with("1,continues,10.0.0.1 scans port 22/tcp: 30"), "{first}");
        assert!(first.ends_with(",10.0.0.1,medium"), "{first}");
        assert!(rows.next().unwrap().contains("ends"), "{csv}");
        let view = View::parse("host=10.0.0.1").unwrap();
        assert_eq!(notes.alerts(&view, &time).1, 1);
    }

    #[test]
    fn changes_without_room_are_counted() {
        let (notes, reporter) = Notes::new();
        (0..WAITING as u64 + 7).for_each(|id| reporter.alert(&change(id, AlertState::Begins)));
        assert_eq!(notes.lost(), 7);
    }
}
