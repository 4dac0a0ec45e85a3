//! Turns what analyses report into alerts with states.
//!
//! ```text
//! scans of a source ─ the threshold ─▶ begins ─ number doubled ─▶ continues ─┬─ 60 s without a new failed attempt ─▶ ends
//!                                    ▲                                 └─ late answers ─▶ withdrawn
//!                                    └─ more new failed attempts than the threshold, after an end
//! host ─ an interval over a limit ──▶ begins ─ a number doubled ─▶ continues ─ the first interval without it ─▶ ends
//! watched entry ─ a new host ─▶ begins ─ number doubled ─▶ continues ─ an hour without a new host ─▶ ends ─▶ begins
//! host ─ a new port ─▶ begins ─ as a watched entry
//! new device ─▶ begins ─ an hour ─▶ ends
//! ```
//!
//! All alerts that are open at the end of the run end there. Time is that of packets, and works at marks, so equal marks
//! give equal alerts. Memory is bounded: alerts without room are counted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::scans::{QUIET_NS, ScanAlerts, ScanLimits};
use super::{Alert, AlertKind, AlertState, Emit, Flood, Grown, Reached, ScanId, Signal, Subject};
use crate::time::Time;

/// The alert of what grows ends when nothing was new for this time. It is long, because each end allows
/// one more alert of an entry that hosts reach again and again.
const GROWTH_NS: u64 = 3_600_000_000_000;

/// Hosts of a watched entry, or ports of a host, that its alert lists.
const LISTED: usize = 8;

/// Most scans, hosts and watched entries that are followed.
const MOST: usize = 65_536;
/// Memory of a host or a watched entry that is followed, with its share of the nodes of a tree.
const HOST_BYTES: u64 = 700;
/// Most memory of what is followed.
pub(crate) const MOST_ALERT_BYTES: u64 = MOST as u64 * HOST_BYTES;

/// The alerts of a run.
pub(super) struct Tracker {
    most: usize,
    bytes: u64,
    /// The number of the last alert.
    last_id: u64,
    scans: ScanAlerts,
    /// Hosts over limits, and those with changed volumes.
    hosts: BTreeMap<(AlertKind, IpAddr), Host>,
    /// Watched entries that hosts reach, hosts with new ports, new devices.
    growing: BTreeMap<Grown, Growth>,
    /// All open scans had an attempt at this time or later.
    quiet_since_ns: u64,
    without_room: u64,
    /// The time of the latest mark.
    now: Time,
    /// The run is over: only ends matter.
    closing: bool,
}

/// A host over a limit.
struct Host {
    id: u64,
    subject: Subject,
    /// In the last interval.
    number: u64,
    flood: Option<Flood>,
    /// The number and the flood at the last change.
    reported: (u64, Option<Flood>),
    since: Time,
    /// The end of the last interval over a limit.
    until: Time,
}

/// A watched entry, the new ports of a host, or a new device.
struct Growth {
    id: u64,
    subject: Subject,
    /// Hosts of the entry, or ports, since it began.
    number: u64,
    /// The number at the last change.
    reported: u64,
    since: Time,
    /// When the last of them was new.
    grown: Time,
}

impl Tracker {
    /// Has these bytes for what it follows.
    pub(super) fn new(limits: ScanLimits, bytes: u64) -> Self {
        Self::with_room(limits, MOST, bytes)
    }

    fn with_room(limits: ScanLimits, most: usize, bytes: u64) -> Self {
        Self {
            most,
            bytes,
            last_id: 0,
            scans: ScanAlerts::new(limits),
            hosts: BTreeMap::new(),
            growing: BTreeMap::new(),
            quiet_since_ns: u64::MAX,
            without_room: 0,
            now: Time(0),
            closing: false,
        }
    }

    /// Scans are judged by other limits from now on.
    pub(super) fn set_limits(&mut self, limits: ScanLimits) {
        self.scans.set_limits(limits);
    }

    /// Alerts without room, which are not reported.
    pub(super) fn without_room(&self) -> u64 {
        self.without_room
    }

    /// A mark begins; its signals follow.
    pub(super) fn begin_mark(&mut self, time_ns: u64) {
        self.now = Time(time_ns);
    }

    /// The signals at the end of the run follow.
    pub(super) fn begin_end(&mut self) {
        self.closing = true;
    }

    pub(super) fn take(&mut self, signal: Signal, emit: Emit<'_>) {
        match signal {
            Signal::Scan { time, scan, number, crossed, first } => {
                self.scan(&scan, number, crossed, [first, time]);
            }
            Signal::NoScan(scan) => self.scans.remove(&scan, self.now, emit),
            Signal::Interval { start, end, reached, of_volumes } => {
                self.interval([start, end], reached, of_volumes, emit);
            }
            Signal::New { time, subject } => self.grow(subject, time, emit),
            Signal::Hits { time, entry, hits } => {
                self.hit(&(AlertKind::Watched, entry), hits, time, emit);
            }
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn followed(&self) -> usize {
        self.scans.len() + self.hosts.len() + self.growing.len()
    }

    fn has_room(&self) -> bool {
        let hosts = (self.hosts.len() + self.growing.len()) as u64;
        let bytes = self.scans.bytes() + HOST_BYTES * (hosts + 1);
        self.followed() < self.most && bytes <= self.bytes
    }

    /// Makes room for one more; false if there is none.
    fn make_room(&mut self) -> bool {
        if self.has_room() {
            return true;
        }
        self.scans.drop_ended();
        self.has_room()
    }

    fn scan(&mut self, scan: &ScanId, number: u64, crossed: bool, times: [Time; 2]) {
        if self.scans.has(scan) || self.make_room() {
            self.scans.add(scan, number, times);
            self.quiet_since_ns = self.quiet_since_ns.min(times[1].0);
        } else {
            self.without_room += u64::from(crossed);
        }
    }

    /// Reports the changes of scans.
    fn settle(&mut self, emit: Emit<'_>) {
        let Self { scans, last_id, closing, .. } = self;
        scans.settle(last_id, *closing, emit);
    }

    /// Something was seen for the first time. What comes in the order of time gives equal changes at any marks.
    fn grow(&mut self, subject: Subject, time: Time, emit: Emit<'_>) {
        let grown = subject.grown();
        self.end_growth(&grown, |ends| ends <= time, emit);
        if let Some(own) = self.growing.get_mut(&grown) {
            own.number += 1;
            own.grown = own.grown.max(time);
            match (&mut own.subject, subject) {
                (
                    Subject::Watched { hosts, at_least: own, .. },
                    Subject::Watched { host, at_least, .. },
                ) => {
                    hosts.extend((hosts.len() < LISTED).then_some(host));
                    *own |= at_least;
                }
                (
                    Subject::NewServerPort { services: own, .. },
                    Subject::NewServerPort { services, .. },
                ) => {
                    let room = LISTED.saturating_sub(own.len());
                    own.extend(services.into_iter().take(room));
                }
                _ => {}
            }
            if own.number >= own.reported.saturating_mul(2) {
                own.reported = own.number;
                emit(&own.alert(AlertState::Continues, time));
            }
            return;
        }
        if !self.make_room() {
            self.without_room += 1;
            return;
        }
        let id = self.next_id();
        let (number, reported) = (1, 1);
        let growth = Growth { id, subject, number, reported, since: time, grown: time };
        emit(&growth.alert(AlertState::Begins, time));
        self.quiet_since_ns = self.quiet_since_ns.min(growth.quiet_ns());
        self.growing.insert(grown, growth);
    }

    /// Hits of a watched entry in the second that ended at this time: those after the end of its alert do not count.
    fn hit(&mut self, entry: &Grown, hits: u64, time: Time, emit: Emit<'_>) {
        self.end_growth(entry, |ends| ends < time, emit);
        if let Some(own) = self.growing.get_mut(entry)
            && let Subject::Watched { hits: own, .. } = &mut own.subject
        {
            *own += hits;
        }
    }

    /// Ends the alert of what grows, if it is over.
    fn end_growth(&mut self, of: &Grown, is_over: impl Fn(Time) -> bool, emit: Emit<'_>) {
        if let Some(own) = self.growing.get(of).filter(|own| is_over(own.ends())) {
            emit(&own.alert(AlertState::Ends, own.ends()));
            self.growing.remove(of);
        }
    }

    /// Handles the hosts over limits in an interval, or those with changed volumes.
    fn interval(
        &mut self,
        [start, end]: [Time; 2],
        mut reached: Vec<Reached>,
        of_volumes: bool,
        emit: Emit<'_>,
    ) {
        reached.sort_unstable();
        for Reached { subject, number, flood } in reached {
            let key = (subject.kind(), subject.host());
            if let Some(own) = self.hosts.get_mut(&key) {
                (own.subject, own.number, own.flood, own.until) = (subject, number, flood, end);
                if own.has_doubled() && !self.closing {
                    own.reported = (own.number, own.flood.clone());
                    emit(&own.alert(AlertState::Continues, end));
                }
            } else if self.make_room() {
                let id = self.next_id();
                let reported = (number, flood.clone());
                let host = Host { id, subject, number, flood, reported, since: start, until: end };
                emit(&host.alert(AlertState::Begins, end));
                self.hosts.insert(key, host);
            } else {
                self.without_room += 1;
            }
        }
        let is_over = |(kind, _): &(AlertKind, IpAddr), host: &mut Host| {
            (*kind == AlertKind::VolumeChange) == of_volumes && host.until != end
        };
        let mut over: Vec<_> = self.hosts.extract_if(.., is_over).map(|(_, host)| host).collect();
        over.sort_unstable_by_key(|host| host.id);
        over.iter().for_each(|host| emit(&host.alert(AlertState::Ends, end)));
    }

    /// Reports the changes of scans, and ends those without new attempts, after the signals of a mark.
    pub(super) fn end_mark(&mut self, emit: Emit<'_>) {
        self.settle(emit);
        if self.now.0.saturating_sub(self.quiet_since_ns) < QUIET_NS {
            return;
        }
        let mut over = Vec::new();
        self.quiet_since_ns = self.scans.end_quiet(self.now, &mut over);
        let quiet = self.growing.extract_if(.., |_, own| own.ends() <= self.now);
        over.extend(quiet.map(|(_, own)| own.alert(AlertState::Ends, own.ends())));
        let next = self.growing.values().map(Growth::quiet_ns).min();
        self.quiet_since_ns = self.quiet_since_ns.min(next.unwrap_or(u64::MAX));
        over.sort_unstable_by_key(|alert| (alert.time, alert.id));
        over.iter().for_each(emit);
    }

    /// Ends all open alerts, after the signals at the end of the run.
    pub(super) fn end(&mut self, emit: Emit<'_>) {
        self.settle(emit);
        let hosts = std::mem::take(&mut self.hosts);
        let mut over: Vec<_> = self
            .scans
            .end()
            .into_iter()
            .chain(
                std::mem::take(&mut self.growing)
                    .values()
                    .map(|own| own.alert(AlertState::Ends, own.grown)),
            )
            .chain(hosts.values().map(|host| host.alert(AlertState::Ends, host.until)))
            .collect();
        over.sort_unstable_by_key(|alert| alert.id);
        over.iter().for_each(emit);
    }
}

impl Growth {
    /// When it ends if nothing else is new.
    fn ends(&self) -> Time {
        Time(self.grown.0.saturating_add(GROWTH_NS))
    }

    /// The time after which [`QUIET_NS`] remain until it ends.
    fn quiet_ns(&self) -> u64 {
        self.grown.0.saturating_add(GROWTH_NS - QUIET_NS)
    }

    fn alert(&self, state: AlertState, time: Time) -> Alert {
        Alert {
            id: self.id,
            state,
            subject: self.subject.clone(),
            number: self.number,
            flood: None,
            since: self.since,
            time,
            evidence: [self.since, time],
        }
    }
}

impl Host {
    fn alert(&self, state: AlertState, time: Time) -> Alert {
        Alert {
            id: self.id,
            state,
            subject: self.subject.clone(),
            number: self.number,
            flood: self.flood.clone(),
            since: self.since,
            time,
            evidence: [self.since, time],
        }
    }

    /// Whether a number is twice that of the last change.
    fn has_doubled(&self) -> bool {
        let numbers = |number: u64, flood: &Option<Flood>| {
            let flood = flood.as_ref();
            let bits = flood.map_or(0, |flood| flood.bits_per_second);
            [number, bits, flood.map_or(0, |flood| flood.sources)]
        };
        let before = numbers(self.reported.0, &self.reported.1);
        let now = numbers(self.number, &self.flood);
        now.iter().zip(before).any(|(now, before)| before > 0 && *now >= before.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use ringtap_enrich::EntryKind;
    use ringtap_flow::FlowKey;
    use ringtap_wire::PacketRecord;

    use super::AlertState::{Begins, Continues, Ends, Withdrawn};
    use super::*;
    use crate::alerts::{Member, ScanKind, Service};

    const SECOND: u64 = 1_000_000_000;
    const THRESHOLD: u32 = 20;
    const LIMITS: ScanLimits = ScanLimits { thresholds: [THRESHOLD, 2], udp_idle_ns: 30 * SECOND };

    /// A tracker and its changes: number of the alert, change, size, seconds.
    struct Followed {
        tracker: Tracker,
        changes: Vec<(u64, AlertState, u64, u64)>,
    }

    impl Followed {
        fn new(most: usize) -> Self {
            let tracker = Tracker::with_room(LIMITS, most, MOST_ALERT_BYTES);
            Self { tracker, changes: Vec::new() }
        }

        /// A mark with these signals; returns the changes at it.
        fn mark(&mut self, seconds: u64, signals: Vec<Signal>) -> Vec<(u64, AlertState, u64, u64)> {
            let Self { tracker, changes } = self;
            let emit = &mut |alert: &Alert| {
                changes.push((alert.id, alert.state, alert.number, alert.time.0 / SECOND));
            };
            tracker.begin_mark(seconds * SECOND);
            signals.into_iter().for_each(|signal| tracker.take(signal, emit));
            tracker.end_mark(emit);
            std::mem::take(changes)
        }

        fn end(&mut self) -> Vec<(u64, AlertState, u64, u64)> {
            let Self { tracker, changes } = self;
            tracker.end(&mut |alert| {
                changes.push((alert.id, alert.state, alert.number, alert.time.0 / SECOND));
            });
            std::mem::take(changes)
        }
    }

    /// A scan by a source of its own.
    fn id(port: u16) -> ScanId {
        let [high, low] = port.to_be_bytes();
        let source = IpAddr::from([10, 0, high, low]);
        ScanId { kind: ScanKind::Horizontal, source, member: Member::Port(port) }
    }

    fn scan(port: u16, seconds: u64, number: u64, crossed: bool) -> Signal {
        let time = Time(seconds * SECOND);
        Signal::Scan { time, scan: id(port), number, crossed, first: time }
    }

    fn interval(number: u64, rates: &[(u8, u64)]) -> Signal {
        let reached = rates.iter().map(|&(host, number)| Reached {
            subject: Subject::Flood { target: IpAddr::from([10, 0, 0, host]) },
            number,
            flood: Some(Flood { packets_per_second: number, sources: 5, ..Flood::default() }),
        });
        let [start, end] = [number, number + 1].map(|number| Time(number * 10 * SECOND));
        Signal::Interval { start, end, reached: reached.collect(), of_volumes: false }
    }

    #[test]
    fn a_scan_continues_when_it_has_doubled_ends_when_quiet_and_begins_again() {
        let mut all = Followed::new(MOST);
        assert_eq!(all.mark(15, vec![scan(22, 3, 21, true)]), [(1, Begins, 21, 3)]);
        assert_eq!(all.mark(30, vec![scan(22, 29, 41, false)]), []);
        assert_eq!(all.mark(45, vec![scan(22, 44, 42, false)]), [(1, Continues, 42, 44)]);
        assert_eq!(all.mark(60, vec![scan(22, 59, 84, false)]), [(1, Continues, 84, 59)]);
        // Answers are no activity.
        assert_eq!(all.mark(90, vec![scan(22, 59, 80, false)]), []);
        assert_eq!(all.mark(118, vec![]), []);
        assert_eq!(all.mark(119, vec![]), [(1, Ends, 80, 119)]);
        // As many as the threshold are no new scan.
        assert_eq!(all.mark(200, vec![scan(22, 199, 90, false)]), []);
        assert_eq!(all.mark(215, vec![scan(22, 214, 100, false)]), []);
        assert_eq!(all.mark(230, vec![scan(22, 229, 101, false)]), [(2, Begins, 101, 229)]);
        assert_eq!(all.mark(245, vec![Signal::NoScan(id(22))]), [(2, Withdrawn, 101, 245)]);
        assert_eq!(all.mark(260, vec![scan(22, 250, 21, true)]), [(3, Begins, 21, 250)]);
        all.tracker.begin_end();
        assert_eq!(all.mark(265, vec![scan(22, 264, 500, false)]), []);
        assert_eq!(all.end(), [(3, Ends, 500, 264)]);
        assert_eq!(all.end(), []);
    }

    #[test]
    fn the_scans_of_a_source_are_one_alert_of_each_kind() {
        let source = IpAddr::from([10, 0, 0, 1]);
        let of = |member| match member {
            0..100 => (ScanKind::Vertical, Member::Target([10, 0, 1, member as u8].into())),
            port => (ScanKind::Horizontal, Member::Port(port)),
        };
        let id = |member| {
            let (kind, member) = of(member);
            ScanId { kind, source, member }
        };
        let signal = |member, seconds: u64, number| {
            let time = Time(seconds * SECOND);
            Signal::Scan { time, scan: id(member), number, crossed: true, first: time }
        };
        let mut all = Followed::new(MOST);
        let first = (0..10).map(|member| signal(member, 3 + u64::from(member), 21));
        let mut signals: Vec<_> = first.collect();
        signals.extend([signal(100, 13, 30), signal(101, 14, 40)]);
        assert_eq!(all.mark(15, signals), [(1, Begins, 210, 12), (2, Begins, 70, 14)]);
        assert_eq!(all.tracker.followed(), 12);
        // A further target, and more attempts on two of them.
        let more = vec![signal(50, 20, 100), signal(0, 21, 120), signal(1, 22, 32)];
        assert_eq!(all.mark(30, more), [(1, Continues, 420, 22)]);
        // One of the ports answers, then the other.
        assert_eq!(all.mark(45, vec![Signal::NoScan(id(100))]), []);
        assert_eq!(all.mark(46, vec![Signal::NoScan(id(101))]), [(2, Withdrawn, 40, 46)]);
        assert_eq!(all.mark(82, vec![]), [(1, Ends, 420, 82)]);
        // More by the threshold, over all targets.
        assert_eq!(all.mark(90, vec![signal(0, 89, 130), signal(1, 89, 42)]), []);
        assert_eq!(all.mark(95, vec![signal(2, 94, 22)]), [(3, Begins, 441, 94)]);
        assert_eq!(all.end(), [(3, Ends, 441, 94)]);
        assert_eq!(all.tracker.followed(), 0);
    }

    #[test]
    fn scans_of_udp_have_their_threshold_and_end_later() {
        let source = IpAddr::from([10, 0, 0, 1]);
        let scan = |port, seconds: u64, number| {
            let (kind, member) = (ScanKind::UdpHorizontal, Member::Port(port));
            let (time, scan) = (Time(seconds * SECOND), ScanId { kind, source, member });
            Signal::Scan { time, scan, number, crossed: true, first: time }
        };
        let mut all = Followed::new(MOST);
        assert_eq!(all.mark(45, vec![scan(53, 10, 3)]), [(1, Begins, 3, 10)]);
        // Their attempts are known when the flows have ended.
        assert_eq!(all.mark(99, vec![]), []);
        assert_eq!(all.mark(100, vec![]), [(1, Ends, 3, 100)]);
        assert_eq!(all.mark(110, vec![scan(53, 70, 5)]), []);
        assert_eq!(all.mark(120, vec![scan(54, 80, 1)]), [(2, Begins, 6, 80)]);
        assert_eq!(all.end(), [(2, Ends, 6, 80)]);
    }

    #[test]
    fn an_alert_of_scans_lists_the_lowest_of_them() {
        let mut tracker = Tracker::new(LIMITS, MOST_ALERT_BYTES);
        let mut subjects = Vec::new();
        for port in (1..=20).rev() {
            let scan = ScanId { member: Member::Port(port), ..id(1) };
            let (number, crossed) = (21, true);
            let signal = Signal::Scan { time: Time(9), scan, number, crossed, first: Time(4) };
            tracker.take(signal, &mut |_| panic!("before the mark"));
        }
        tracker.end_mark(&mut |alert| {
            assert_eq!(alert.evidence, [Time(4), Time(9)]);
            subjects.push(alert.subject.clone());
        });
        let sample = (1..=8).map(Member::Port).collect();
        let ScanId { kind, source, .. } = id(1);
        assert_eq!(subjects, [Subject::Scan { kind, source, sample, scans: 20 }]);
    }

    #[test]
    fn a_host_over_a_limit_ends_with_the_first_interval_without_it() {
        let mut all = Followed::new(MOST);
        let begin = all.mark(20, vec![interval(1, &[(2, 100), (1, 300)])]);
        assert_eq!(begin, [(1, Begins, 300, 20), (2, Begins, 100, 20)]);
        assert_eq!(all.mark(30, vec![interval(2, &[(1, 599), (2, 150)])]), []);
        let next = all.mark(40, vec![interval(3, &[(1, 600), (3, 7)])]);
        assert_eq!(next, [(1, Continues, 600, 40), (3, Begins, 7, 40), (2, Ends, 150, 40)]);
        assert_eq!(all.mark(50, vec![interval(4, &[])]), [(1, Ends, 600, 50), (3, Ends, 7, 50)]);
        assert_eq!(all.mark(60, vec![interval(5, &[(1, 50)])]), [(4, Begins, 50, 60)]);
        assert_eq!(all.end(), [(4, Ends, 50, 60)]);
    }

    fn watched(entry: &str, seconds: u64, host: u8) -> Signal {
        let host = IpAddr::from([10, 0, 0, host]);
        let subject = Subject::Watched {
            host,
            hosts: vec![host],
            hits: 0,
            at_least: false,
            entry: entry.into(),
            kind: EntryKind::Network,
            label: String::new(),
            field: "sourceAddress",
            flow: FlowKey::of(&PacketRecord::EMPTY),
        };
        Signal::New { time: Time(seconds * SECOND), subject }
    }

    #[test]
    fn a_watched_entry_is_one_alert_of_many_hosts() {
        let signals = || (1..=45).map(|host| watched("a", 60 * u64::from(host), host));
        let mut changes = vec![(1, Begins, 1, 60)];
        changes.extend([2, 4, 8, 16, 32].map(|hosts| (1, Continues, hosts, 60 * hosts)));
        changes.push((1, Ends, 45, 2_700));
        // At a mark for each host, at one for all, and at the end of the run.
        let mut each = Followed::new(MOST);
        let mut found: Vec<_> = signals()
            .zip(1..)
            .flat_map(|(signal, host)| each.mark(60 * host, vec![signal]))
            .collect();
        found.extend(each.end());
        assert_eq!(found, changes);
        let mut one = Followed::new(MOST);
        let mut found = one.mark(2_700, signals().collect());
        found.extend(one.end());
        assert_eq!(found, changes);
        let mut last = Followed::new(MOST);
        last.tracker.begin_end();
        let mut found = last.mark(2_700, signals().collect());
        found.extend(last.end());
        assert_eq!(found, changes);
    }

    #[test]
    fn a_watched_entry_ends_after_an_hour_without_a_further_host() {
        let hosts = |all: &Followed| {
            let Subject::Watched { host, hosts, .. } =
                &all.tracker.growing[&(AlertKind::Watched, "a".into())].subject
            else {
                panic!("another subject")
            };
            (*host, hosts.len())
        };
        let mut all = Followed::new(MOST);
        all.mark(100, (1..=45).map(|host| watched("a", 100, host)).collect());
        assert_eq!(hosts(&all), ([10, 0, 0, 1].into(), LISTED));
        // A scan ends after a minute.
        assert_eq!(all.mark(200, vec![scan(22, 200, 21, true)]), [(2, Begins, 21, 200)]);
        assert_eq!(all.mark(300, vec![]), [(2, Ends, 21, 260)]);
        assert_eq!(all.mark(3_699, vec![watched("b", 3_699, 1)]), [(3, Begins, 1, 3_699)]);
        assert_eq!(all.mark(3_700, vec![]), [(1, Ends, 45, 3_700)]);
        assert_eq!(all.mark(3_800, vec![watched("a", 3_800, 46)]), [(4, Begins, 1, 3_800)]);
        assert_eq!(hosts(&all), ([10, 0, 0, 46].into(), 1));
        // The same if a host comes after the hour, before the mark at which it would have ended.
        let again = all.mark(7_500, vec![watched("a", 7_450, 47)]);
        assert_eq!(again, [(4, Ends, 1, 7_400), (5, Begins, 1, 7_450), (3, Ends, 1, 7_299)]);
        assert_eq!(all.end(), [(5, Ends, 1, 7_450)]);

        let mut all = Followed::new(1);
        assert_eq!(all.mark(1, vec![watched("a", 1, 1)]).len(), 1);
        for host in 1..=5 {
            assert_eq!(all.mark(2, vec![watched("b", 2, host)]), []);
        }
        assert_eq!(all.tracker.without_room(), 5);
    }

    #[test]
    fn the_new_ports_of_a_host_are_one_alert_and_each_device_is_one() {
        let host = |last: u8| IpAddr::from([10, 0, 0, last]);
        let port = |last, port, seconds: u64| {
            let services = vec![Service { protocol: 6, port }];
            let subject = Subject::NewServerPort { host: host(last), services };
            Signal::New { time: Time(seconds * SECOND), subject }
        };
        let device = |last, seconds: u64| {
            let subject = Subject::NewDevice { host: host(last) };
            Signal::New { time: Time(seconds * SECOND), subject }
        };
        let mut all = Followed::new(MOST);
        let ports = (1..=9).map(|number| port(1, 80 + number, 10 + u64::from(number)));
        let mut signals: Vec<_> = ports.collect();
        signals.extend([device(1, 30), device(2, 31), port(2, 22, 32)]);
        let changes = [
            (1, Begins, 1, 11),
            (1, Continues, 2, 12),
            (1, Continues, 4, 14),
            (1, Continues, 8, 18),
            (2, Begins, 1, 30),
            (3, Begins, 1, 31),
            (4, Begins, 1, 32),
        ];
        assert_eq!(all.mark(40, signals), changes);
        let key = (AlertKind::NewServerPort, host(1).to_string());
        let Subject::NewServerPort { services, .. } = &all.tracker.growing[&key].subject else {
            panic!("another subject")
        };
        assert_eq!(
            services.iter().map(|own| own.port).collect::<Vec<_>>(),
            (81..=88).collect::<Vec<_>>()
        );
        let ends =
            [(1, Ends, 9, 3_619), (2, Ends, 1, 3_630), (3, Ends, 1, 3_631), (4, Ends, 1, 3_632)];
        assert_eq!(all.mark(3_700, vec![]), ends);
        let again = all.mark(4_000, vec![port(1, 99, 3_990), port(1, 100, 3_991)]);
        assert_eq!(again, [(5, Begins, 1, 3_990), (5, Continues, 2, 3_991)]);
        assert_eq!(all.tracker.growing[&key].number, 2);
    }

    #[test]
    fn changed_volumes_end_apart_from_limits() {
        let volume = |number: u64, octets: Option<u64>| {
            let [start, end] = [number, number + 1].map(|number| Time(number * 10 * SECOND));
            let reached = octets.map(|number| Reached {
                subject: Subject::VolumeChange {
                    host: [10, 0, 0, 1].into(),
                    median: number / 3,
                    interval_ns: 10 * SECOND,
                },
                number,
                flood: None,
            });
            let reached = reached.into_iter().collect();
            Signal::Interval { start, end, reached, of_volumes: true }
        };
        let mut all = Followed::new(MOST);
        let begin = all.mark(20, vec![interval(1, &[(1, 100)]), volume(1, Some(900))]);
        assert_eq!(begin, [(1, Begins, 100, 20), (2, Begins, 900, 20)]);
        // The same host with another median; neither kind ends the other.
        assert_eq!(all.mark(30, vec![volume(2, Some(1_000)), interval(2, &[(1, 100)])]), []);
        let next = all.mark(40, vec![interval(3, &[]), volume(3, Some(1_900))]);
        assert_eq!(next, [(1, Ends, 100, 40), (2, Continues, 1_900, 40)]);
        assert_eq!(all.mark(50, vec![interval(4, &[]), volume(4, None)]), [(2, Ends, 1_900, 50)]);
    }

    #[test]
    fn hits_count_until_the_end_of_their_alert_at_any_marks() {
        let hits = |seconds: u64| Signal::Hits {
            time: Time(seconds * SECOND),
            entry: "a".into(),
            hits: seconds,
        };
        let of = |marks: &[(u64, Vec<Signal>)]| {
            let (mut tracker, mut changes) = (Tracker::new(LIMITS, MOST_ALERT_BYTES), Vec::new());
            let mut emit = |alert: &Alert| {
                let Subject::Watched { hits, .. } = &alert.subject else { panic!("{alert:?}") };
                changes.push((alert.state, alert.time.0 / SECOND, *hits));
            };
            for (seconds, signals) in marks {
                tracker.begin_mark(seconds * SECOND);
                signals.iter().for_each(|signal| tracker.take(signal.clone(), &mut emit));
                tracker.end_mark(&mut emit);
            }
            tracker.end(&mut emit);
            changes
        };
        let all = vec![
            hits(99),
            watched("a", 100, 1),
            hits(101),
            watched("a", 102, 2),
            hits(3_702),
            hits(3_703),
            watched("a", 9_000, 3),
            hits(9_001),
        ];
        let expected = [
            (Begins, 100, 0),
            (Continues, 102, 101),
            (Ends, 3_702, 3_803),
            (Begins, 9_000, 0),
            (Ends, 9_000, 9_001),
        ];
        assert_eq!(of(&[(9_002, all.clone())]), expected);
        for at in 0..all.len() {
            let (before, after) = all.split_at(at);
            let last = |signals: &[Signal]| match signals.last() {
                Some(Signal::Hits { time, .. } | Signal::New { time, .. }) => time.0 / SECOND,
                _ => 0,
            };
            let marks = [(last(before), before.to_vec()), (9_002, after.to_vec())];
            assert_eq!(of(&marks), expected, "{at}");
        }
    }

    #[test]
    fn what_is_followed_has_bounded_memory() {
        let begins = |bytes: u64, signals: Vec<Signal>| {
            let mut all = Followed { tracker: Tracker::new(LIMITS, bytes), changes: Vec::new() };
            let begins = all.mark(1, signals).len();
            (begins, all.tracker.without_room())
        };
        let alone = || (1..=100).map(|port| scan(port, 1, 21, true)).collect();
        assert_eq!(begins(MOST_ALERT_BYTES, alone()), (100, 0));
        let (some, others) = begins(20 << 10, alone());
        assert!((20..40).contains(&some) && some as u64 + others == 100, "{some} {others}");
        // All scans of a source take less.
        let of_source = (1..=100).map(|port| {
            let (time, scan) = (Time(SECOND), ScanId { member: Member::Port(port), ..id(1) });
            Signal::Scan { time, scan, number: 21, crossed: true, first: time }
        });
        assert_eq!(begins(20 << 10, of_source.collect()), (1, 0));
        let hosts: Vec<_> = (0..100).map(|host| (host, 1)).collect();
        assert_eq!(begins(7_000, vec![interval(0, &hosts)]), (10, 90));
    }

    #[test]
    fn alerts_without_room_are_counted_once_and_ended_ones_make_room() {
        let mut all = Followed::new(2);
        let begin = all.mark(1, (1..=4).map(|port| scan(port, 1, 21, true)).collect());
        assert_eq!(begin, [(1, Begins, 21, 1), (2, Begins, 21, 1)]);
        assert_eq!(all.mark(2, vec![scan(3, 2, 30, false), interval(0, &[(1, 5)])]), []);
        assert_eq!(all.tracker.without_room(), 3);
        assert_eq!(all.mark(61, vec![scan(2, 30, 22, false)]), [(1, Ends, 21, 61)]);
        assert_eq!(all.mark(62, vec![scan(3, 62, 40, false)]), [(3, Begins, 40, 62)]);
        assert_eq!(all.tracker.without_room(), 3);
        assert_eq!(all.end(), [(2, Ends, 22, 30), (3, Ends, 40, 62)]);
    }
}
