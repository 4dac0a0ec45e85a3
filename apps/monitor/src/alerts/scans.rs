//! Alerts of scans: one for a source and kind, whatever number of targets or ports it scans.
//!
//! An analysis reports each pair of source and target, or of source and port, by itself; their failed attempts add up here.
//! A group changes at most once at a mark. Ended groups are kept while there is room, so that only further failed attempts
//! begin a new alert.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{Alert, AlertState, Emit, Member, ScanId, ScanKind, Subject};
use crate::analyses::scans::rows::ScanProtocol;
use crate::time::Time;

/// A scan ends when it has no new failed attempt for this time.
pub(super) const QUIET_NS: u64 = 60_000_000_000;

/// What decides when the scans of a source are an alert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanLimits {
    /// More failed attempts than this are a scan, by [`ScanProtocol`].
    pub(crate) thresholds: [u32; 2],
    /// A flow of UDP without an answer ends this long after its last packet, and is a failed attempt only then.
    pub(crate) udp_idle_ns: u64,
}

impl ScanLimits {
    fn threshold(&self, kind: ScanKind) -> u64 {
        self.thresholds[kind.protocol() as usize].into()
    }

    /// The time beyond [`QUIET_NS`] until scans are known to be over.
    fn late_ns(&self, kind: ScanKind) -> u64 {
        match kind.protocol() {
            ScanProtocol::Tcp => 0,
            ScanProtocol::Udp => self.udp_idle_ns,
        }
    }
}

/// Targets or ports that an alert lists.
const LISTED: usize = 8;

type Key = (ScanKind, IpAddr);

/// Memory of the scans of a source, and of each.
const GROUP_BYTES: usize = 600;
const MEMBER_BYTES: usize = 80;

/// All scans that are open or ended.
pub(super) struct ScanAlerts {
    limits: ScanLimits,
    groups: BTreeMap<Key, Group>,
    /// Members of all groups, and of ended ones.
    members: usize,
    ended: usize,
    /// Groups with signals since the last mark, in the order of their first.
    changed: Vec<Key>,
}

/// The scans of a source.
#[derive(Default)]
struct Group {
    /// 0 before the first alert.
    id: u64,
    open: bool,
    /// Failed attempts of each, and how many of them do not count for the next alert.
    members: BTreeMap<Member, [u64; 2]>,
    /// Their sums.
    sums: [u64; 2],
    /// The failed attempts at the last change.
    reported: u64,
    since: Time,
    /// The earliest attempt.
    first: Time,
    /// When the number grew last.
    grown: Time,
    is_changed: bool,
}

impl ScanAlerts {
    pub(super) fn new(limits: ScanLimits) -> Self {
        let (groups, changed) = (BTreeMap::new(), Vec::new());
        Self { limits, groups, members: 0, ended: 0, changed }
    }

    /// Scans are judged by other limits from now on.
    pub(super) fn set_limits(&mut self, limits: ScanLimits) {
        self.limits = limits;
    }

    pub(super) fn len(&self) -> usize {
        self.members
    }

    /// Memory, with the share of the nodes of trees.
    pub(super) fn bytes(&self) -> u64 {
        (self.groups.len() * GROUP_BYTES + self.members * MEMBER_BYTES) as u64
    }

    pub(super) fn has(&self, scan: &ScanId) -> bool {
        let group = self.groups.get(&(scan.kind, scan.source));
        group.is_some_and(|group| group.members.contains_key(&scan.member))
    }

    /// Drops ended groups.
    pub(super) fn drop_ended(&mut self) {
        if self.ended > 0 {
            self.groups.retain(|_, group| group.open || group.is_changed);
            self.members = self.groups.values().map(|group| group.members.len()).sum();
            let ended = self.groups.values().filter(|group| !group.open && group.id > 0);
            self.ended = ended.map(|group| group.members.len()).sum();
        }
    }

    /// A scan has this number of failed attempts, from the first of these times to the second one.
    pub(super) fn add(&mut self, scan: &ScanId, number: u64, [first, time]: [Time; 2]) {
        let key = (scan.kind, scan.source);
        let group = self.groups.entry(key).or_default();
        if !group.members.contains_key(&scan.member) {
            self.members += 1;
            self.ended += usize::from(group.is_ended());
        }
        group.first = if group.members.is_empty() { first } else { group.first.min(first) };
        group.set(scan.member, number, time);
        if !std::mem::replace(&mut group.is_changed, true) {
            self.changed.push(key);
        }
    }

    /// Late answers: it is no scan. Without another scan of the source, the alert is withdrawn.
    pub(super) fn remove(&mut self, scan: &ScanId, now: Time, emit: Emit<'_>) {
        let key = (scan.kind, scan.source);
        let Some(group) = self.groups.get_mut(&key) else { return };
        let before = group.sums[0];
        let Some(numbers) = group.members.remove(&scan.member) else { return };
        self.members -= 1;
        self.ended -= usize::from(group.is_ended());
        group.sums[0] -= numbers[0];
        group.sums[1] -= numbers[1];
        if group.members.is_empty() {
            if group.open {
                let time = now.max(group.grown);
                let sample = [(scan.member, [before, 0])].into();
                let last = Group { members: sample, sums: [before, 0], ..*group };
                emit(&last.alert(AlertState::Withdrawn, key, time));
            }
            self.groups.remove(&key);
        }
    }

    /// Reports the changes of a mark. With `closing`, only new alerts matter.
    pub(super) fn settle(&mut self, last_id: &mut u64, closing: bool, emit: Emit<'_>) {
        for key in std::mem::take(&mut self.changed) {
            let Some(group) = self.groups.get_mut(&key) else { continue };
            group.is_changed = false;
            let [number, counted] = group.sums;
            if group.open {
                if number >= group.reported.saturating_mul(2) && !closing {
                    group.reported = number;
                    emit(&group.alert(AlertState::Continues, key, group.grown));
                }
            } else if group.id == 0 || number - counted > self.limits.threshold(key.0) {
                self.ended -= if group.id > 0 { group.members.len() } else { 0 };
                *last_id += 1;
                (group.id, group.open, group.reported) = (*last_id, true, number);
                group.since = group.grown;
                emit(&group.alert(AlertState::Begins, key, group.grown));
            }
        }
    }

    /// Ends groups without new attempts, as alerts; returns since when an open one may be quiet.
    pub(super) fn end_quiet(&mut self, now: Time, over: &mut Vec<Alert>) -> u64 {
        let mut quiet_since_ns = u64::MAX;
        let Self { limits, groups, ended, .. } = self;
        for (key, group) in groups.iter_mut().filter(|(_, group)| group.open) {
            let since_ns = group.grown.0.saturating_add(limits.late_ns(key.0));
            if now.0.saturating_sub(since_ns) < QUIET_NS {
                quiet_since_ns = quiet_since_ns.min(since_ns);
                continue;
            }
            let time = Time(since_ns.saturating_add(QUIET_NS));
            over.push(group.alert(AlertState::Ends, *key, time));
            *ended += group.members.len();
            group.close();
        }
        quiet_since_ns
    }

    /// The ends of all open groups, at the end of the run.
    pub(super) fn end(&mut self) -> Vec<Alert> {
        let emptied = Self::new(self.limits);
        let groups = std::mem::replace(self, emptied).groups;
        let open = groups.iter().filter(|(_, group)| group.open);
        open.map(|(key, group)| group.alert(AlertState::Ends, *key, group.grown)).collect()
    }
}

impl Group {
    fn is_ended(&self) -> bool {
        !self.open && self.id > 0
    }

    fn set(&mut self, member: Member, number: u64, time: Time) {
        let own = self.members.entry(member).or_default();
        if number > own[0] {
            self.grown = self.grown.max(time);
        }
        // Answers to attempts before the end.
        let counted = own[1].min(number);
        self.sums[0] = self.sums[0] - own[0] + number;
        self.sums[1] = self.sums[1] - own[1] + counted;
        *own = [number, counted];
    }

    fn close(&mut self) {
        self.open = false;
        self.members.values_mut().for_each(|[number, counted]| *counted = *number);
        self.sums[1] = self.sums[0];
    }

    fn alert(&self, state: AlertState, (kind, source): Key, time: Time) -> Alert {
        let sample = self.members.keys().take(LISTED).copied().collect();
        Alert {
            id: self.id,
            state,
            subject: Subject::Scan { kind, source, sample, scans: self.members.len() as u64 },
            number: self.sums[0],
            flood: None,
            since: self.since,
            time,
            evidence: [self.first, time],
        }
    }
}
