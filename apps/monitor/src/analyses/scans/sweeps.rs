//! Failed attempts by source and port, and the horizontal scans among them.

use std::collections::BTreeMap;

use ringtap_flow::{Aggregate, PARTS, Row};
use ringtap_wire::HashKey;

use super::groups::{Group, Groups};
use super::rows::HorizontalScan;
use super::rules::Rules;
use crate::alerts::{Member, ScanId, ScanKind, Signal};
use crate::analyses::address::Address;
use crate::time::Time;

/// The change of the failed attempts of a sweep in a worker, or the sum of all changes.
#[derive(Clone, Copy)]
pub(super) struct Change<A> {
    /// Of its failed attempts.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) source: A,
    pub(super) failed: i32,
    pub(super) port: u16,
}

/// A worker's changes at a mark.
pub(super) type Changes<A> = Vec<Change<A>>;

impl<A: Address> Row for Change<A> {
    #[inline(always)]
    fn place(&self, key: &HashKey) -> u32 {
        (key.word(self.source.hash(key) ^ u64::from(self.port)) >> 32) as u32
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        (self.source, self.port) == (other.source, other.port)
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.first_ns = self.first_ns.min(later.first_ns);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.failed += later.failed;
    }
}

/// A worker's part of each sweep at the end, by part of the table.
pub(super) struct Sweeps<A> {
    rows: Vec<Sweep<A>>,
    /// The lowest targets of each.
    targets: Vec<A>,
}

struct Sweep<A> {
    first_ns: u64,
    last_ns: u64,
    source: A,
    hash: u32,
    failed: i32,
    part: u8,
    /// Number of listed targets.
    listed: u8,
    port: u16,
}

impl<A> Default for Sweeps<A> {
    fn default() -> Self {
        Self { rows: Vec::new(), targets: Vec::new() }
    }
}

impl<A: Address> Sweeps<A> {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds the sweeps of a part.
    pub(super) fn extend(&mut self, part: usize, sweeps: impl Iterator<Item = Group<A, u16, A>>) {
        for sweep in sweeps {
            let &Group { source, common: port, failed, first_ns, last_ns, hash, .. } = &sweep;
            let listed = sweep.sample().len() as u8;
            self.targets.extend(sweep.sample());
            self.rows.push(Sweep {
                first_ns,
                last_ns,
                source,
                hash,
                failed,
                part: part as u8,
                listed,
                port,
            });
        }
    }

    /// The sweeps as groups, each with its part.
    fn groups(&self) -> impl Iterator<Item = (u8, Group<A, u16, A>)> {
        let mut targets = &self.targets[..];
        self.rows.iter().map(move |row| {
            let (own, rest) = targets.split_at(row.listed.into());
            targets = rest;
            let times_ns = [row.first_ns, row.last_ns];
            (row.part, Group::of(row.hash, (row.source, row.port), row.failed, times_ns, own))
        })
    }
}

/// The sum of the changes of all workers.
pub(super) struct Sums<A> {
    rules: Rules,
    sums: Aggregate<Change<A>>,
    /// The reported scans, with the numbers reported last.
    scans: BTreeMap<(A, u16), i32>,
}

impl<A: Address> Sums<A> {
    pub(super) fn new(rules: Rules, key: HashKey) -> Self {
        Self { rules, sums: Aggregate::new(key), scans: BTreeMap::new() }
    }

    /// Sums are judged by another threshold from now on.
    pub(super) fn set_threshold(&mut self, threshold: u32) {
        self.rules.threshold = threshold;
    }

    pub(super) fn add(&mut self, changes: Changes<A>) {
        changes.into_iter().for_each(|change| self.sums.push(change));
    }

    /// Adds the changes of scans.
    pub(super) fn changes(&mut self, signals: &mut Vec<Signal>) {
        let Self { rules, sums, scans } = self;
        for part in sums.take_changed() {
            for change in &*sums.settle_part(part) {
                let &Change { source, port, failed, .. } = change;
                if rules.is_scan(failed) {
                    let before = scans.insert((source, port), failed);
                    if before != Some(failed) {
                        signals.push(scan(rules, change, before.is_none()));
                    }
                } else if !scans.is_empty() && scans.remove(&(source, port)).is_some() {
                    signals.push(Signal::NoScan(id(rules, source, port)));
                }
            }
        }
    }

    /// All horizontal scans in the workers' results, and the last changes of scans.
    pub(super) fn scans(
        mut self,
        found: &[Sweeps<A>],
        scans: &mut Vec<HorizontalScan>,
        signals: &mut Vec<Signal>,
    ) {
        let mut found: Vec<_> = found.iter().map(|own| own.groups().peekable()).collect();
        let mut sweeps = Groups::new();
        for part in 0..PARTS {
            for own in &mut found {
                while let Some((_, sweep)) = own.next_if(|(of, _)| usize::from(*of) == part) {
                    sweeps.add(&sweep);
                }
            }
            for sweep in sweeps.take().filter(|sweep| self.rules.is_scan(sweep.failed)) {
                let Group { source, common: port, failed, first_ns, last_ns, .. } = sweep;
                let crossed = self.scans.remove(&(source, port)).is_none();
                let change = Change { source, port, failed, first_ns, last_ns };
                signals.push(scan(&self.rules, &change, crossed));
                scans.push(HorizontalScan {
                    source: source.ip(),
                    port,
                    protocol: self.rules.protocol.name(),
                    targets: failed as u64,
                    first: Time(first_ns),
                    last: Time(last_ns),
                    sample: sweep.sample().iter().map(|target| target.ip()).collect(),
                });
            }
        }
        let rest = self.scans.into_keys();
        signals.extend(rest.map(|(source, port)| Signal::NoScan(id(&self.rules, source, port))));
    }
}

fn id<A: Address>(rules: &Rules, source: A, port: u16) -> ScanId {
    let kind = ScanKind::horizontal(rules.protocol);
    ScanId { kind, source: source.ip(), member: Member::Port(port) }
}

fn scan<A: Address>(rules: &Rules, change: &Change<A>, crossed: bool) -> Signal {
    let scan = id(rules, change.source, change.port);
    let [first, time] = [change.first_ns, change.last_ns].map(Time);
    Signal::Scan { time, scan, number: change.failed as u64, crossed, first }
}
