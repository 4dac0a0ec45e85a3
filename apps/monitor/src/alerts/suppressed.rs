//! Alerts in two parts: those that are reported, and those that rules of `--allow` suppress.
//!
//! ```text
//! signal ─ a rule for its host? ─┬─ no ──▶ Tracker ─▶ changes, which are reported
//!                                └─ yes ─▶ Tracker ─▶ the alerts that begin, counted by rule
//! ```
//!
//! Both parts follow their own alerts, so what is suppressed neither begins nor continues what is reported.

use std::net::IpAddr;
use std::sync::Arc;

use ringtap_enrich::{EntryKind, Stage};
use serde::Serialize;

use super::allow::{AllowList, AllowRule};
use super::scans::ScanLimits;
use super::tracker::Tracker;
use super::{Alert, AlertKind, Emit, Signal};
use crate::time::Time;

/// Alerts that a rule suppressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suppressed {
    /// The number of its line.
    pub line: usize,
    /// Its address or network.
    pub network: String,
    /// Its kind of alerts, or `*`.
    pub kind: &'static str,
    /// Its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Alerts that began.
    pub alerts: u64,
}

impl Suppressed {
    /// As outputs get it.
    pub(crate) fn pass(&mut self, stage: &mut Stage) {
        stage.replace_entry(EntryKind::Network, &mut self.network);
    }
}

/// The alerts of a run.
pub(crate) struct Alerts {
    allow: Arc<AllowList>,
    reported: Tracker,
    suppressed: Tracker,
    /// Suppressed alerts by rule, and of rules that are gone.
    counts: Vec<u64>,
    former: u64,
    /// A flow that an alert is about ends this long after its packet, at most.
    longest_ns: Option<u64>,
}

impl Alerts {
    /// What each part follows has these bytes.
    pub(crate) fn new(
        limits: ScanLimits,
        bytes: u64,
        allow: Arc<AllowList>,
        longest_ns: Option<u64>,
    ) -> Self {
        let tracker = || Tracker::new(limits, bytes);
        let counts = vec![0; allow.rules().len()];
        let (reported, suppressed) = (tracker(), tracker());
        Self { allow, reported, suppressed, counts, former: 0, longest_ns }
    }

    /// Later signals have these limits and rules. A rule that stays keeps its count.
    pub(crate) fn adopt(&mut self, limits: ScanLimits, allow: Arc<AllowList>) {
        self.reported.set_limits(limits);
        self.suppressed.set_limits(limits);
        let key = |rule: &AllowRule| (rule.network, rule.kind, rule.until);
        let before = self.allow.rules().iter().map(key).zip(std::mem::take(&mut self.counts));
        let mut before: Vec<_> = before.filter(|(_, alerts)| *alerts > 0).collect();
        let mut count_of = |rule: &AllowRule| {
            let at = before.iter().position(|(own, _)| *own == key(rule));
            at.map_or(0, |at| before.swap_remove(at).1)
        };
        self.counts = allow.rules().iter().map(&mut count_of).collect();
        self.former += before.iter().map(|(_, alerts)| alerts).sum::<u64>();
        self.allow = allow;
    }

    /// Alerts without room, which are not reported.
    pub(crate) fn without_room(&self) -> u64 {
        self.reported.without_room() + self.suppressed.without_room()
    }

    /// Suppressed alerts of all rules.
    pub(crate) fn suppressed(&self) -> u64 {
        self.former + self.counts.iter().sum::<u64>()
    }

    /// The rules that suppressed alerts.
    pub(crate) fn suppressed_by_rule(&self) -> Vec<Suppressed> {
        let of = |(rule, &alerts): (&AllowRule, &u64)| Suppressed {
            line: rule.line,
            network: rule.network.to_string(),
            kind: rule.kind.map_or("*", AlertKind::name),
            until: rule.until,
            alerts,
        };
        let all = self.allow.rules().iter().zip(&self.counts);
        all.filter(|(_, alerts)| **alerts > 0).map(of).collect()
    }

    /// A mark begins; its signals follow.
    pub(crate) fn begin_mark(&mut self, time_ns: u64) {
        self.parts(&mut |_| {}, |tracker, _| tracker.begin_mark(time_ns));
    }

    /// The signals at the end of the run follow.
    pub(crate) fn begin_end(&mut self) {
        self.parts(&mut |_| {}, |tracker, _| tracker.begin_end());
    }

    /// Reports the changes of scans, and ends those without new attempts, after the signals of a mark.
    pub(crate) fn end_mark(&mut self, emit: Emit<'_>) {
        self.parts(emit, Tracker::end_mark);
    }

    /// Ends all open alerts, after the signals at the end of the run.
    pub(crate) fn end(&mut self, emit: Emit<'_>) {
        self.parts(emit, Tracker::end);
    }

    pub(crate) fn take(&mut self, signal: Signal, emit: Emit<'_>) {
        match signal {
            Signal::Scan { time, ref scan, .. } => {
                let is_allowed = self.is_allowed(scan.source, scan.kind.into(), time);
                self.part(is_allowed, emit, |tracker, emit| tracker.take(signal, emit));
            }
            Signal::Interval { start, end, reached, of_volumes } => {
                let (suppressed, reported): (Vec<_>, Vec<_>) = reached
                    .into_iter()
                    .partition(|own| self.is_allowed(own.subject.host(), own.subject.kind(), end));
                for (is_allowed, reached) in [(false, reported), (true, suppressed)] {
                    let signal = Signal::Interval { start, end, reached, of_volumes };
                    self.part(is_allowed, emit, |tracker, emit| tracker.take(signal, emit));
                }
            }
            Signal::New { time, ref subject } => {
                let is_allowed = self.is_allowed(subject.host(), subject.kind(), time);
                self.part(is_allowed, emit, |tracker, emit| tracker.take(signal, emit));
            }
            Signal::NoScan(_) | Signal::Hits { .. } => {
                self.parts(emit, |tracker, emit| tracker.take(signal.clone(), emit));
            }
        }
    }

    fn is_allowed(&self, host: IpAddr, kind: AlertKind, time: Time) -> bool {
        !self.allow.is_empty() && self.allow.find(host, kind, time).is_some()
    }

    /// Calls `work` with both parts.
    fn parts(&mut self, emit: Emit<'_>, mut work: impl FnMut(&mut Tracker, Emit<'_>)) {
        self.part(false, emit, &mut work);
        if !self.allow.is_empty() {
            self.part(true, emit, &mut work);
        }
    }

    /// Calls `work` with the reported alerts, or with the suppressed ones, which it counts.
    fn part(
        &mut self,
        is_suppressed: bool,
        emit: Emit<'_>,
        work: impl FnOnce(&mut Tracker, Emit<'_>),
    ) {
        let Self { allow, reported, suppressed, counts, longest_ns, .. } = self;
        if !is_suppressed {
            return work(reported, &mut |alert| {
                let mut alert = alert.clone();
                let [_, last] = &mut alert.evidence;
                last.0 = longest_ns.map_or(u64::MAX, |ns| last.0.saturating_add(ns));
                emit(&alert);
            });
        }
        work(suppressed, &mut |alert: &Alert| {
            let Alert { subject, state, time, .. } = alert;
            let find = |time| allow.find(subject.host(), subject.kind(), time);
            // Its time is that of a signal, which had a rule.
            if let Some(rule) = find(*time).or_else(|| find(Time(0)))
                && state.is_first()
            {
                counts[rule] += 1;
            }
        });
    }
}
