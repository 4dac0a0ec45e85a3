//! Connection attempts of one shard and one IP version, and the vertical scans among them.

use std::collections::BTreeMap;
use std::ops::Range;

use ringtap_flow::{Aggregate, PARTS, Row};
use ringtap_stage::Shard;
use ringtap_state::{Row as RowOfState, Rows};
use ringtap_wire::HashKey;

use super::groups::{Crowd, Group, Groups, NO_TIMES};
use super::rows::{ScanProtocol, VerticalScan};
use super::rules::Rules;
use super::suspects::{BUCKETS, bucket};
use super::sweeps::{Change, Changes, Sweeps};
use crate::alerts::{Member, ScanId, ScanKind, Signal};
use crate::analyses::address::Address;
use crate::time::Time;

/// Bits of an attempt's state.
pub(super) const TRIED: u8 = 1;
pub(super) const ANSWERED: u8 = 1 << 1;
/// The merger counts it among the failed ones.
const HANDED: u8 = 1 << 2;
/// The merger counts it among those that offset failed ones.
const HANDED_OFFSET: u8 = 1 << 3;

/// Buckets of sources in one part of the table.
const BUCKETS_A_PART: usize = BUCKETS / PARTS;

/// An attempt or an answer, or the sum of an attempt.
#[derive(Clone, Copy)]
pub(super) struct Attempt<A> {
    /// Of the attempt; the first is later than the last if there was none.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) source: A,
    pub(super) target: A,
    /// A hash of the key whose upper eight bits are the source's: all attempts of a source are in
    /// one part.
    place: u32,
    pub(super) port: u16,
    state: u8,
}

/// Hashes of an attempt's source, and of that with its target or its port.
struct Hashes {
    source: u32,
    by_target: u32,
    by_port: u32,
}

impl<A: Address> Attempt<A> {
    #[inline(always)]
    fn failed(&self) -> bool {
        self.state & (TRIED | ANSWERED) == TRIED
    }

    /// Whether it offsets a failed one.
    #[inline(always)]
    fn offsets(&self, rules: &Rules) -> bool {
        rules.offsets() && self.state & (TRIED | ANSWERED) == TRIED | ANSWERED
    }

    /// Whether it counts.
    #[inline(always)]
    fn counts(&self, rules: &Rules) -> bool {
        self.failed() || self.offsets(rules)
    }

    #[inline(always)]
    fn hashes(&self, key: &HashKey) -> Hashes {
        let (source, target) = (self.source.hash(key), self.target.hash(key));
        let upper = |hash: u64| (hash >> 32) as u32;
        Hashes {
            source: upper(source),
            by_target: upper(key.word(source ^ target.rotate_left(16))),
            by_port: upper(key.word(source ^ u64::from(self.port))),
        }
    }

    #[inline(always)]
    fn join_by_target(&self, hash: u32, groups: &mut Groups<A, A, u16>) {
        let times_ns = [self.first_ns, self.last_ns];
        if self.failed() {
            groups.add_attempt(hash, (self.source, self.target, self.port), times_ns);
        } else {
            groups.offset(hash, (self.source, self.target));
        }
    }

    #[inline(always)]
    fn join_by_port(&self, hash: u32, groups: &mut Groups<A, u16, A>) {
        let times_ns = [self.first_ns, self.last_ns];
        if self.failed() {
            groups.add_attempt(hash, (self.source, self.port, self.target), times_ns);
        } else {
            groups.offset(hash, (self.source, self.port));
        }
    }
}

impl<A: Address> Row for Attempt<A> {
    #[inline(always)]
    fn place(&self, _: &HashKey) -> u32 {
        self.place
    }

    #[inline(always)]
    fn has_key_of(&self, other: &Self) -> bool {
        (self.source, self.target, self.port) == (other.source, other.target, other.port)
    }

    #[inline(always)]
    fn add(&mut self, later: &Self) {
        self.first_ns = self.first_ns.min(later.first_ns);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.state |= later.state;
    }
}

#[inline(always)]
pub(super) fn source_hash<A: Address>(source: A, key: &HashKey) -> u32 {
    (source.hash(key) >> 32) as u32
}

/// A reported vertical scan.
struct Reported {
    /// The number reported last.
    failed: i32,
    /// Whether the scan was found again at this mark.
    found: bool,
}

pub(super) struct Attempts<A> {
    key: HashKey,
    rules: Rules,
    /// Whether no other worker sees the sources of this one.
    alone: bool,
    /// Number of attempts of one bucket that makes its sources suspects.
    share: u32,
    /// At the last mark: how often suspects had been marked, and by part their number.
    marks_seen: u64,
    suspects_seen: Vec<u32>,
    attempts: Aggregate<Attempt<A>>,
    /// By bucket: no pair of its sources has more failed attempts, except those in `scans`.
    bounds: Vec<u32>,
    /// By part: the reported vertical scans.
    scans: Vec<BTreeMap<(A, A), Reported>>,
    /// For one part at a time.
    by_target: Groups<A, A, u16>,
    by_port: Groups<A, u16, A>,
}

impl<A: Address> Attempts<A> {
    pub(super) fn new(rules: Rules, key: HashKey, shard: Shard) -> Self {
        Self {
            key,
            alone: shard.count == 1,
            share: rules.threshold / shard.count as u32,
            rules,
            marks_seen: 0,
            suspects_seen: vec![0; PARTS],
            attempts: Aggregate::new(key),
            bounds: vec![0; BUCKETS],
            scans: (0..PARTS).map(|_| BTreeMap::new()).collect(),
            by_target: Groups::new(),
            by_port: Groups::new(),
        }
    }

    /// Attempts are judged by another threshold from now on.
    pub(super) fn set_threshold(&mut self, threshold: u32, shard: Shard) {
        self.rules.threshold = threshold;
        self.share = threshold / shard.count as u32;
        let over = self.bounds.iter().enumerate().filter(|(_, bound)| **bound > self.share);
        over.for_each(|(bucket, _)| self.rules.suspects.mark(bucket));
    }

    /// Adds an attempt at these times, or an answer, or both.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        [source, target]: [&[u8; 16]; 2],
        port: u16,
        times_ns: [u64; 2],
        state: u8,
    ) {
        let (source, target) = (A::of(source), A::of(target));
        let of_source = source.hash(&self.key);
        let whole =
            self.key.word(of_source ^ target.hash(&self.key).rotate_left(16) ^ u64::from(port));
        let source_hash = (of_source >> 32) as u32;
        let place = source_hash & 0xff00_0000 | (whole >> 40) as u32;
        let [first_ns, last_ns] = if state & TRIED != 0 { times_ns } else { NO_TIMES };
        self.attempts.push(Attempt { first_ns, last_ns, source, target, place, port, state });
        if state & TRIED != 0 {
            let bucket = bucket(source_hash);
            let bound = &mut self.bounds[bucket];
            *bound = bound.saturating_add(1);
            if *bound == self.share.saturating_add(1) {
                self.rules.suspects.mark(bucket);
            }
        }
    }

    /// Adds all attempts to the rows of a state.
    pub(super) fn save(&mut self, rows: &mut Rows) {
        self.attempts.settle();
        for attempt in self.attempts.rows() {
            let &Attempt { source, target, port, first_ns, last_ns, state, .. } = attempt;
            let (source, target) = (source.wide(), target.wide());
            let key: [&[u8]; 4] = [&[A::VERSION as u8], &source, &target, &port.to_be_bytes()];
            rows.push(&key, &[first_ns, last_ns, u64::from(state & (TRIED | ANSWERED))], &[]);
        }
    }

    /// Adds an attempt of a state.
    pub(super) fn load(&mut self, row: &RowOfState<'_>) -> Option<()> {
        let (_, rest) = row.key().split_first()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (target, rest) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*rest.first_chunk()?);
        let [first_ns, last_ns, state] = row.numbers();
        let state = u8::try_from(state).ok().filter(|state| (1..=3).contains(state))?;
        // Its row is complete.
        if state == TRIED || state == TRIED | ANSWERED && self.rules.offsets() {
            self.note([source, target], port, [first_ns, last_ns], state);
        }
        Some(())
    }

    /// Number of rows, some of which may belong to the same attempt.
    pub(super) fn len(&self) -> usize {
        self.attempts.len()
    }

    /// Joins packets of the same attempt.
    pub(super) fn settle(&mut self) {
        self.attempts.settle();
    }

    /// Drops the latest attempts, at most `most` of those since the last call; returns their
    /// number.
    pub(super) fn evict_latest(&mut self, most: usize) -> usize {
        self.attempts.drop_latest(most, |_| ())
    }

    /// The changes of the suspects' sweeps since the last mark, and those of vertical scans.
    pub(super) fn changes(&mut self, signals: &mut Vec<Signal>) -> Changes<A> {
        let mut changes = Vec::new();
        let marks = self.rules.suspects.marks();
        let new_marks = std::mem::replace(&mut self.marks_seen, marks) < marks;
        let changed = self.attempts.take_changed();
        let parts = if new_marks { (0..PARTS).collect() } else { changed.clone() };
        for part in parts {
            let buckets = part * BUCKETS_A_PART..(part + 1) * BUCKETS_A_PART;
            let suspects = self.rules.suspects.count(buckets.clone());
            let new_suspects =
                std::mem::replace(&mut self.suspects_seen[part], suspects) < suspects;
            if new_suspects || suspects > 0 && changed.binary_search(&part).is_ok() {
                self.vertical_changes(part, buckets, signals);
                self.hand_over(part, &mut changes);
            }
        }
        changes
    }

    fn hand_over(&mut self, part: usize, changes: &mut Changes<A>) {
        let Self { key, rules, attempts, .. } = self;
        for attempt in attempts.settle_part(part) {
            let &mut Attempt { source, port, first_ns, last_ns, .. } = attempt;
            let handed = attempt.state & (HANDED | HANDED_OFFSET);
            let counts = if attempt.failed() {
                HANDED
            } else if attempt.offsets(rules) {
                HANDED_OFFSET
            } else {
                0
            };
            if counts != handed && rules.suspects.has(bucket(source_hash(source, key))) {
                attempt.state ^= counts ^ handed;
                let number = |bits| i32::from(bits == HANDED) - i32::from(bits == HANDED_OFFSET);
                // The time of a scan is that of failed attempts.
                let is_offset = counts | handed == HANDED_OFFSET;
                let [first_ns, last_ns] = if is_offset { NO_TIMES } else { [first_ns, last_ns] };
                let failed = number(counts) - number(handed);
                changes.push(Change { source, port, failed, first_ns, last_ns });
            }
        }
    }

    fn vertical_changes(&mut self, part: usize, buckets: Range<usize>, signals: &mut Vec<Signal>) {
        let Self { key, rules, attempts, bounds, by_target, .. } = self;
        let threshold = rules.threshold;
        let scans = &mut self.scans[part];
        if scans.is_empty() && bounds[buckets.clone()].iter().all(|bound| *bound <= threshold) {
            return;
        }
        for attempt in attempts.settle_part(part).iter().filter(|attempt| attempt.counts(rules)) {
            let bucket = bucket(source_hash(attempt.source, key));
            let is_of_scan = || {
                !scans.is_empty()
                    && rules.suspects.has(bucket)
                    && scans.contains_key(&(attempt.source, attempt.target))
            };
            if bounds[bucket] > threshold || is_of_scan() {
                attempt.join_by_target(attempt.hashes(key).by_target, by_target);
            }
        }
        // Only sources over the threshold have their bounds recomputed.
        for bound in bounds[buckets].iter_mut().filter(|bound| **bound > threshold) {
            *bound = 0;
        }
        for pair in by_target.take() {
            if !rules.is_scan(pair.failed) {
                let bound = &mut bounds[bucket(source_hash(pair.source, key))];
                *bound = (pair.failed.max(0) as u32).max(*bound);
                continue;
            }
            let now = Reported { failed: pair.failed, found: true };
            let before = scans.insert((pair.source, pair.common), now);
            if before.as_ref().is_none_or(|before| before.failed != pair.failed) {
                signals.push(vertical_scan(rules.protocol, &pair, before.is_none()));
            }
        }
        scans.retain(|&(source, target), scan| {
            if !scan.found {
                signals.push(Signal::NoScan(vertical(rules.protocol, source, target)));
            }
            std::mem::take(&mut scan.found)
        });
    }

    /// The vertical scans, and all sweeps that may be horizontal scans. Empties the table.
    pub(super) fn end(
        &mut self,
        scans: &mut Vec<VerticalScan>,
        signals: &mut Vec<Signal>,
    ) -> Sweeps<A> {
        let mut sweeps = Sweeps::default();
        let (mut targets, mut ports) = (Crowd::new(), Crowd::new());
        // Other workers may have more of a sweep, and their sources may become suspects.
        let least = if self.alone { self.rules.threshold } else { 0 };
        let needs_all = !self.alone && self.rules.offsets();
        for part in 0..PARTS {
            let buckets = part * BUCKETS_A_PART..(part + 1) * BUCKETS_A_PART;
            if self.alone && self.rules.suspects.count(buckets) == 0 {
                continue;
            }
            // A settled part is still cached for the next step.
            let attempts = self.attempts.take_part(part);
            if attempts.is_empty() {
                continue;
            }
            let Self { key, alone, rules, by_target, by_port, .. } = self;
            let counted = attempts.iter().filter(|attempt| attempt.counts(rules));
            let hashed = counted.map(|attempt| (attempt, attempt.hashes(key)));
            let candidates =
                hashed.filter(|(_, hashes)| !*alone || rules.suspects.has(bucket(hashes.source)));
            targets.clear();
            ports.clear();
            for (_, hashes) in candidates.clone().filter(|(attempt, _)| attempt.failed()) {
                targets.add(hashes.by_target);
                ports.add(hashes.by_port);
            }
            for (attempt, hashes) in candidates {
                if targets.may_exceed(hashes.by_target, rules.threshold) {
                    attempt.join_by_target(hashes.by_target, by_target);
                }
                if needs_all || ports.may_exceed(hashes.by_port, least) {
                    attempt.join_by_port(hashes.by_port, by_port);
                }
            }
            for pair in by_target.take().filter(|pair| rules.is_scan(pair.failed)) {
                let crossed = self.scans[part].remove(&(pair.source, pair.common)).is_none();
                signals.push(vertical_scan(rules.protocol, &pair, crossed));
                scans.push(VerticalScan {
                    source: pair.source.ip(),
                    target: pair.common.ip(),
                    ports: pair.failed as u64,
                    first: Time(pair.first_ns),
                    last: Time(pair.last_ns),
                    sample: pair.sample().to_vec(),
                });
            }
            let is_left =
                |sweep: &Group<A, u16, A>| needs_all || i64::from(sweep.failed) > i64::from(least);
            sweeps.extend(part, by_port.take().filter(is_left));
        }
        let rest = self.scans.iter().flat_map(BTreeMap::keys);
        let none = |&(source, target): &(A, A)| vertical(self.rules.protocol, source, target);
        signals.extend(rest.map(|scan| Signal::NoScan(none(scan))));
        sweeps
    }
}

fn vertical_scan<A: Address>(
    protocol: ScanProtocol,
    pair: &Group<A, A, u16>,
    crossed: bool,
) -> Signal {
    let scan = vertical(protocol, pair.source, pair.common);
    let [first, time] = [pair.first_ns, pair.last_ns].map(Time);
    Signal::Scan { time, scan, number: pair.failed as u64, crossed, first }
}

fn vertical<A: Address>(protocol: ScanProtocol, source: A, target: A) -> ScanId {
    let (kind, member) = (ScanKind::vertical(protocol), Member::Target(target.ip()));
    ScanId { kind, source: source.ip(), member }
}
