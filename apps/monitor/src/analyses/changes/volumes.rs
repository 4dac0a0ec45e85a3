//! Octets of hosts by interval, and their medians.
//!
//! ```text
//! octets by interval and host ── the interval is over ─▶ octets > K × median of its last 30 intervals, and > floor?
//! ```
//!
//! An interval without packets of the host counts as 0, and so do those before it first sent. So a host has at most as many
//! rows as there are intervals in its history, and none when all of them are 0. Where there is no room for one, the past of
//! hosts without rows is unknown for as long as a history is: it begins with their first row.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::limits::ChangeLimits;

/// Intervals before one whose median it is compared with, and the fewest of them.
pub(super) const HISTORY: u64 = 30;
pub(super) const LEAST: u64 = 10;

/// What a host did in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Octets {
    /// Since 1970.
    pub(super) number: u64,
    pub(super) host: IpAddr,
    pub(super) octets: u64,
    pub(super) has_sent: bool,
}

/// A host whose volume has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) host: IpAddr,
    pub(super) octets: u64,
    pub(super) median: u64,
}

/// The volumes of all hosts.
#[derive(Default)]
pub(super) struct Histories {
    /// The number of the first interval; unset before it.
    first: Option<u64>,
    /// Intervals below this were compared.
    compared: u64,
    /// The interval after one with changes, until that is reported.
    unreported: Option<u64>,
    /// The last interval in which a host had no room.
    lost: Option<u64>,
    hosts: BTreeMap<IpAddr, History>,
}

/// The volumes of a host.
struct History {
    /// The first interval whose octets are known.
    since: u64,
    /// Octets by interval, the earliest first, without zeros.
    octets: VecDeque<(u64, u64)>,
}

impl Histories {
    /// Compares intervals below a number, in order, and reports each, and the one after one with changes: its number and its
    /// changes. Returns how many hosts were not compared for lack of room.
    pub(super) fn compare(
        &mut self,
        octets: &[Octets],
        upto: u64,
        most: usize,
        limits: &ChangeLimits,
        mut report: impl FnMut(u64, Vec<Changed>),
    ) -> u64 {
        let mut ignored = 0;
        for own in octets.chunk_by(|a, b| a.number == b.number) {
            let number = own[0].number;
            let first = *self.first.get_or_insert(number);
            // Late packets are not compared.
            let is_late = number < self.compared;
            if !is_late {
                self.report_empty(number, &mut report);
                self.drop_before(number.saturating_sub(HISTORY));
            }
            let mut changes = Vec::new();
            for &Octets { host, octets, has_sent, .. } in own {
                if !self.hosts.contains_key(&host) {
                    if !has_sent {
                        continue;
                    }
                    let is_unknown = self.lost.is_some_and(|lost| number <= lost + HISTORY);
                    let has_room = self.hosts.len() < most;
                    ignored += u64::from(is_unknown || !has_room);
                    if !has_room {
                        self.lost = self.lost.max(Some(number));
                        continue;
                    }
                    let since = if is_unknown { number } else { first };
                    self.hosts.insert(host, History { since, octets: VecDeque::new() });
                }
                let Some(history) = self.hosts.get_mut(&host) else { continue };
                let before = number.saturating_sub(history.since).min(HISTORY);
                let median = median(&history.octets, before);
                if before >= LEAST && !is_late && limits.is_change(octets, median) {
                    changes.push(Changed { host, octets, median });
                }
                add(&mut history.octets, number, octets);
            }
            if !is_late {
                self.unreported = (!changes.is_empty()).then_some(number.saturating_add(1));
                report(number, changes);
            }
        }
        // At the end of the run, or of a time, nothing follows.
        if upto < u64::MAX {
            self.report_empty(upto, &mut report);
        }
        self.compared = self.compared.max(upto);
        ignored
    }

    /// A clock was set back: begins again.
    pub(super) fn begin_again(&mut self) {
        *self = Self::default();
    }

    /// Reports the interval after one with changes, if it is below this number and has no packets.
    fn report_empty(&mut self, upto: u64, report: &mut impl FnMut(u64, Vec<Changed>)) {
        if let Some(number) = self.unreported.take_if(|number| *number < upto) {
            report(number, Vec::new());
        }
    }

    /// Drops intervals below a number.
    fn drop_before(&mut self, number: u64) {
        self.hosts.retain(|_, history| {
            while history.octets.pop_front_if(|(own, _)| *own < number).is_some() {}
            !history.octets.is_empty()
        });
    }
}

/// The lower median of this number of intervals; those that a history lacks are 0.
fn median(history: &VecDeque<(u64, u64)>, intervals: u64) -> u64 {
    let mut octets: Vec<u64> = history.iter().map(|(_, octets)| *octets).collect();
    octets.sort_unstable();
    let zeros = intervals.saturating_sub(octets.len() as u64);
    let middle = (intervals.saturating_sub(1) / 2).checked_sub(zeros);
    middle.and_then(|middle| octets.get(middle as usize)).copied().unwrap_or(0)
}

/// Adds octets to an interval, perhaps a late one.
fn add(history: &mut VecDeque<(u64, u64)>, number: u64, octets: u64) {
    match history.binary_search_by_key(&number, |(own, _)| *own) {
        Ok(at) => history[at].1 = history[at].1.saturating_add(octets),
        Err(at) => history.insert(at, (number, octets)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use std::net::Ipv4Addr;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const LIMITS: ChangeLimits = ChangeLimits {
        new_device: None,
        new_server_port: None,
        volume_change: Some(3),
        volume_floor: Some(50),
    };

    fn sent(number: u64, host: IpAddr, octets: u64) -> Octets {
        Octets { number, host, octets, has_sent: true }
    }

    /// The changes at each of these times, which are the ends of intervals.
    fn run(
        histories: &mut Histories,
        most: usize,
        octets: &[(u64, u64)],
        upto: u64,
    ) -> Vec<(u64, Vec<(u64, u64)>)> {
        let octets: Vec<_> =
            octets.iter().map(|&(number, octets)| sent(number, HOST, octets)).collect();
        let mut all = Vec::new();
        histories.compare(&octets, upto, most, &LIMITS, |number, changes| {
            all.push((number, changes.iter().map(|own| (own.octets, own.median)).collect()));
        });
        all
    }

    #[test]
    fn an_interval_is_compared_with_the_median_before_it() {
        let mut all = Histories::default();
        let steady: Vec<_> = (100..110).map(|number| (number, 40)).collect();
        let found = run(&mut all, 9, &steady, 110);
        assert!(found.len() == 10 && found.iter().all(|(_, changes)| changes.is_empty()));
        // Above three times 40, then at it; the interval after a change is reported although it has no packets.
        assert_eq!(run(&mut all, 9, &[(110, 121)], 111), [(110, vec![(121, 40)])]);
        assert_eq!(run(&mut all, 9, &[], 112), [(111, vec![])]);
        assert_eq!(run(&mut all, 9, &[], 113), []);
        assert_eq!(run(&mut all, 9, &[(113, 120)], 114), [(113, vec![])]);
        // Late octets belong to their interval, and are not compared.
        assert_eq!(run(&mut all, 9, &[(111, 10_000)], 114), []);
        assert_eq!(all.hosts[&HOST].octets.iter().find(|own| own.0 == 111), Some(&(111, 10_000)));
        // Half of the history is needed for another usual volume.
        let more: Vec<_> = (114..140).map(|number| (number, 1_000)).collect();
        let found = run(&mut all, 9, &more, 140);
        let changed = found.iter().take_while(|(_, changes)| !changes.is_empty()).count();
        assert_eq!(changed, 13, "{found:?}");
        assert!(found[changed..].iter().all(|(_, changes)| changes.is_empty()), "{found:?}");
    }

    #[test]
    fn few_intervals_a_step_back_and_a_full_table_are_no_changes() {
        let mut all = Histories::default();
        let first: Vec<_> = (0..LEAST).map(|number| (number, 1)).collect();
        let wild: Vec<_> = (0..LEAST).map(|number| (number, 1_000 * number)).collect();
        let found = run(&mut all, 9, &wild, LEAST);
        assert!(found.iter().all(|(_, changes)| changes.is_empty()), "{found:?}");
        all.begin_again();
        let found = run(&mut all, 9, &first, LEAST);
        assert!(found.iter().all(|(_, changes)| changes.is_empty()), "{found:?}");
        assert_eq!(run(&mut all, 9, &[(LEAST, 51)], LEAST + 1), [(LEAST, vec![(51, 1)])]);
        let other = IpAddr::from([10, 0, 0, 2]);
        let mut changes = Vec::new();
        let octets = [sent(20, other, 51)];
        let ignored = all.compare(&octets, 21, 1, &LIMITS, |_, own| changes.extend(own));
        assert_eq!((ignored, changes.len(), all.hosts.len()), (1, 0, 1));
        // Hosts without packets for long make room.
        assert_eq!(all.compare(&[sent(90, other, 51)], 91, 1, &LIMITS, |_, _| {}), 0);
        assert_eq!(all.hosts.keys().collect::<Vec<_>>(), [&other]);
    }

    #[test]
    fn the_past_of_a_host_without_room_is_unknown_until_it_has_been_known_for_long() {
        let other = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut all = Histories::default();
        let mut at = |octets: &[Octets], most| {
            let mut changed = Vec::new();
            let upto = octets[0].number + 1;
            let ignored = all.compare(octets, upto, most, &LIMITS, |_, own| changed.extend(own));
            (ignored, changed.iter().map(|own| (own.host, own.median)).collect::<Vec<_>>())
        };
        for number in 100..120 {
            let ignored = u64::from(number >= 110);
            let octets = [sent(number, HOST, 1), sent(number, other(2), 900)];
            // It never had a row.
            assert_eq!(at(&octets[..1 + ignored as usize], 1), (ignored, vec![]), "{number}");
        }
        // There is room now. It is judged when it has ten intervals, with the median of these.
        assert_eq!(at(&[sent(120, other(2), 900)], 9), (1, vec![]));
        for number in 121..130 {
            assert_eq!(at(&[sent(number, other(2), 900)], 9), (0, vec![]), "{number}");
        }
        assert_eq!(at(&[sent(130, other(2), 2_701)], 9), (0, vec![(other(2), 900)]));
        // Others, too: the last one without room was in interval 119.
        assert_eq!(at(&[sent(149, other(3), 900)], 9), (1, vec![]));
        assert_eq!(at(&[sent(150, other(4), 900)], 9), (0, vec![(other(4), 0)]));
    }

    #[test]
    fn a_host_that_never_sent_has_no_history() {
        let mut all = Histories::default();
        let received = |number, octets| Octets { has_sent: false, ..sent(number, HOST, octets) };
        let mut at = |octets: Octets| {
            let mut found = 0;
            let upto = octets.number + 1;
            let ignored = all.compare(&[octets], upto, 0, &LIMITS, |_, own| found += own.len());
            (ignored, found, all.hosts.len())
        };
        assert_eq!(at(received(0, 1)), (0, 0, 0));
        assert_eq!(at(received(20, 1_000)), (0, 0, 0));
        assert_eq!(at(sent(21, HOST, 1_000)), (1, 0, 0));
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_all_intervals(octets in vec(0_u64..5, 1..40)) {
            let known: VecDeque<_> = (0..).zip(octets.iter().copied()).filter(|own| own.1 > 0).collect();
            let mut sorted = octets.clone();
            sorted.sort_unstable();
            prop_assert_eq!(median(&known, octets.len() as u64), sorted[(sorted.len() - 1) / 2]);
        }
    }
}
