//! Octets of hosts by interval, and their medians.
//!
//! ```text
//! octets by interval and host ── the interval is over ─▶ octets > K × median of its last 30 intervals, and > floor?
//! ```
//!
//! An interval without packets of the host counts as 0. So a host has at most as many rows as there are intervals in its
//! history, and none when all of them are 0.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::limits::ChangeLimits;

/// Intervals before one whose median it is compared with, and the fewest of them.
pub(super) const HISTORY: u64 = 30;
pub(super) const LEAST: u64 = 10;

/// Octets of an interval, by its number since 1970, and of a host.
pub(super) type Octets = ((u64, IpAddr), u64);

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
    /// Octets by interval, the earliest first, without zeros.
    hosts: BTreeMap<IpAddr, VecDeque<(u64, u64)>>,
}

impl Histories {
    /// Compares intervals below a number, in order, and reports each, and the one after one with changes: its number and its
    /// changes. Returns the number of hosts without room.
    pub(super) fn compare(
        &mut self,
        octets: &[Octets],
        upto: u64,
        most: usize,
        limits: &ChangeLimits,
        mut report: impl FnMut(u64, Vec<Changed>),
    ) -> u64 {
        let mut ignored = 0;
        for own in octets.chunk_by(|(a, _), (b, _)| a.0 == b.0) {
            let number = own[0].0.0;
            let first = *self.first.get_or_insert(number);
            let before = number.saturating_sub(first).min(HISTORY);
            // Late packets are not compared.
            let is_late = number < self.compared;
            if !is_late {
                self.report_empty(number, &mut report);
                self.drop_before(number.saturating_sub(HISTORY));
            }
            let mut changes = Vec::new();
            for &((_, host), octets) in own {
                let has_room = self.hosts.len() < most;
                let Some(history) = self.hosts.get_mut(&host) else {
                    if before >= LEAST && !is_late && limits.is_change(octets, 0) {
                        changes.push(Changed { host, octets, median: 0 });
                    }
                    match has_room {
                        true => drop(self.hosts.insert(host, [(number, octets)].into())),
                        false => ignored += 1,
                    }
                    continue;
                };
                let median = median(history, before);
                if before >= LEAST && !is_late && limits.is_change(octets, median) {
                    changes.push(Changed { host, octets, median });
                }
                add(history, number, octets);
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
            while history.pop_front_if(|(own, _)| *own < number).is_some() {}
            !history.is_empty()
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

    /// The changes at each of these times, which are the ends of intervals.
    fn run(
        histories: &mut Histories,
        most: usize,
        octets: &[(u64, u64)],
        upto: u64,
    ) -> Vec<(u64, Vec<(u64, u64)>)> {
        let octets: Vec<_> =
            octets.iter().map(|&(number, octets)| ((number, HOST), octets)).collect();
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
        assert_eq!(all.hosts[&HOST].iter().find(|own| own.0 == 111), Some(&(111, 10_000)));
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
        let octets = [((20, other), 51)];
        let ignored = all.compare(&octets, 21, 1, &LIMITS, |_, own| changes.extend(own));
        assert_eq!((ignored, changes.len(), all.hosts.len()), (1, 1, 1));
        // Hosts without packets for long make room.
        assert_eq!(all.compare(&[((90, other), 51)], 91, 1, &LIMITS, |_, _| {}), 0);
        assert_eq!(all.hosts.keys().collect::<Vec<_>>(), [&other]);
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
