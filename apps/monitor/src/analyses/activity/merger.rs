//! Joins the workers' sketches.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use ringtap_sketch::{Estimate, Heavy, HeavyKeys, MisraGries, Sketch};

use super::limits::Limits;
use super::networks::{self, Host};
use super::rows::{Activities, Activity, Busy, Change, Distinct, Target};
use super::sketches::{COUNTERS, Sketches};
use crate::alerts::Signal;
use crate::analyses::Signals;
use crate::time::Time;

/// Bytes for the activity of an interval in the report and its text, and for one row of all its
/// lists.
const ROW_BYTES: u64 = 2_048;
const RANK_BYTES: u64 = 1_700;

/// Bytes for the activity of an interval in the report and its text, with lists of `top` rows.
pub(crate) fn row_bytes(top: usize) -> u64 {
    ROW_BYTES + RANK_BYTES * top.min(COUNTERS) as u64
}

/// Intervals that some workers have handed over, and those that all have.
pub struct ActivityMerger {
    interval_ns: Option<u64>,
    limits: Limits,
    top: usize,
    /// Intervals that the report has room for.
    room: usize,
    open: BTreeMap<u64, Box<Sketches>>,
    /// The number of the interval after the last one whose limits were checked, while hosts may be over limits.
    unchecked: Option<u64>,
    /// The senders of the interval before.
    before: Option<(u64, MisraGries<Host>)>,
    done: Vec<Activity>,
    /// The intervals described last.
    closed: Vec<Activity>,
    /// Intervals without room in the report.
    further: u64,
}

impl ActivityMerger {
    pub(crate) fn new(interval_ns: Option<u64>, limits: Limits, top: usize, room: usize) -> Self {
        let (open, done, closed) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self {
            interval_ns,
            limits,
            top,
            room,
            open,
            unchecked: None,
            before: None,
            done,
            closed,
            further: 0,
        }
    }

    /// Later intervals have these limits.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn add(&mut self, handed: BTreeMap<u64, Box<Sketches>>) {
        for (number, sketches) in handed {
            match self.open.get_mut(&number) {
                Some(own) => own.merge(&sketches),
                None => {
                    self.open.insert(number, sketches);
                }
            }
        }
    }

    /// Describes the intervals before `time_ns`, which all workers have handed over, and reports
    /// hosts that reached limits.
    pub(crate) fn close_before(&mut self, time_ns: u64, signals: Signals<'_>) {
        let upto = self.interval_ns.map_or(0, |interval_ns| time_ns / interval_ns);
        let later = self.open.split_off(&upto);
        let over = std::mem::replace(&mut self.open, later);
        self.close(over, signals);
        self.check_empty(upto, signals);
    }

    /// Describes the remaining intervals.
    pub(crate) fn close_all(&mut self, signals: Signals<'_>) {
        let rest = std::mem::take(&mut self.open);
        self.close(rest, signals);
    }

    /// The intervals that were closed last.
    pub(crate) fn closed(&self) -> &[Activity] {
        &self.closed
    }

    /// All intervals of the run.
    pub(crate) fn finish(self) -> Activities {
        Activities { intervals: self.done, further: self.further }
    }

    /// Reports that no host is over a limit in the interval after the last one, if it is before number `upto` and has no
    /// packets.
    fn check_empty(&mut self, upto: u64, signals: Signals<'_>) {
        if let (Some(number), Some(ns)) = (self.unchecked, self.interval_ns)
            && number < upto
        {
            let [start, end] = [number, number + 1].map(|number| Time(number.saturating_mul(ns)));
            signals(Signal::Interval { start, end, reached: Vec::new(), of_volumes: false });
            self.unchecked = None;
        }
    }

    fn close(&mut self, over: BTreeMap<u64, Box<Sketches>>, signals: Signals<'_>) {
        self.closed.clear();
        for (number, sketches) in over {
            let mut activity = self.describe(number, &sketches);
            // Without limits, hosts that were over one are no more.
            if self.limits.any() || self.unchecked.is_some() {
                self.check_empty(number, signals);
                let (start, end) = (activity.start, activity.end);
                let reached = self.limits.reached(&activity);
                self.unchecked = (!reached.is_empty()).then_some(number + 1);
                signals(Signal::Interval { start, end, reached, of_volumes: false });
            }
            activity.cut(self.top);
            self.before = Some((number, sketches.senders));
            if self.done.len() < self.room {
                self.done.push(activity.clone());
            } else {
                self.further += 1;
            }
            self.closed.push(activity);
        }
    }

    fn describe(&self, number: u64, sketches: &Sketches) -> Activity {
        let distinct = |hosts: &Option<ringtap_sketch::Distinct<Host>>| {
            hosts.as_ref().map_or(0, |hosts| hosts.estimate().value.round() as u64)
        };
        let (start, end) = match self.interval_ns {
            Some(ns) => (number * ns, (number * ns).saturating_add(ns)),
            None => (sketches.first_ns, sketches.last_ns),
        };
        let before = self.before.as_ref().filter(|(then, _)| then + 1 == number);
        Activity {
            start: Time(start),
            end: Time(end),
            packets: sketches.packets,
            octets: sketches.octets,
            distinct: Distinct {
                sources: distinct(&sketches.sources),
                destinations: distinct(&sketches.destinations),
                pairs: sketches.pairs(),
            },
            senders: all(&sketches.senders),
            receivers: all(&sketches.receivers),
            sending_networks: networks::heavy(&sketches.sending),
            receiving_networks: networks::heavy(&sketches.receiving),
            targets: self.targets(sketches),
            spreaders: all(&sketches.spread),
            attractors: all(&sketches.drawn),
            changers: before
                .map_or_else(Vec::new, |(_, before)| Self::changers(before, &sketches.senders)),
            strays: sketches.strays,
        }
    }

    /// Packets by destination, with the most frequent protocol.
    fn targets(&self, sketches: &Sketches) -> Vec<Target> {
        let mut by_protocol: BTreeMap<(IpAddr, u8), [u64; 2]> = BTreeMap::new();
        for heavy in sketches.protocols.heavy(1) {
            let [host @ .., protocol, is_syn] = heavy.key;
            let [all, syns] = by_protocol.entry((address(&host), protocol)).or_default();
            *all += heavy.estimate.lower;
            *syns += heavy.estimate.lower * u64::from(is_syn);
        }
        let mut mostly: BTreeMap<IpAddr, (u64, u8, u64)> = BTreeMap::new();
        for ((host, protocol), [packets, syns]) in by_protocol {
            let most = mostly.entry(host).or_default();
            *most = (*most).max((packets, protocol, syns));
        }
        let target = |Busy { address, lower, upper }| {
            let (of_protocol, protocol, syns) = mostly.get(&address).copied().unwrap_or_default();
            Target { address, lower, upper, protocol, of_protocol, syns }
        };
        all(&sketches.targets).into_iter().map(target).collect()
    }

    fn changers(before: &MisraGries<Host>, now: &MisraGries<Host>) -> Vec<Change> {
        let hosts: BTreeSet<Host> =
            before.heavy(1).into_iter().chain(now.heavy(1)).map(|heavy| heavy.key).collect();
        let change = |host: Host| {
            let (then, now) = (before.estimate(&host), now.estimate(&host));
            let more = now.lower.saturating_sub(then.upper);
            let less = then.lower.saturating_sub(now.upper);
            let at_least = more.max(less);
            let address = address(&host);
            (at_least > 0).then_some(Change {
                address,
                before: then.lower,
                now: now.lower,
                at_least,
            })
        };
        let mut changes: Vec<_> = hosts.into_iter().filter_map(change).collect();
        changes.sort_by_key(|change| (Reverse(change.at_least), change.address));
        changes
    }
}

/// All stored hosts, the busiest first.
fn all(sketch: &MisraGries<Host>) -> Vec<Busy> {
    let row = |heavy: Heavy<Host>| {
        let Estimate { lower, upper, .. } = heavy.estimate;
        Busy { address: address(&heavy.key), lower, upper }
    };
    let mut rows: Vec<_> = sketch.heavy(1).into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.lower), row.address));
    rows
}

fn address(host: &Host) -> IpAddr {
    Ipv6Addr::from(*host).to_canonical()
}
