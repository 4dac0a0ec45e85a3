//! Port scans, as the paper defines them (Lee, Bu, Chandranmenon, section III-B).
//!
//! A *failed connection attempt* is a TCP SYN from a source to a distinct (target, port) that no
//! SYN-ACK answers. More than the threshold of them are a *vertical* scan when they go to one
//! target's ports, a *horizontal* scan when they go to one port of many targets.
//!
//! All attempts between two addresses are one worker's, so it decides on vertical scans alone,
//! and a (source, target, port) is counted in one place only. Horizontal scans span workers:
//! each change of a source's failed attempts is a state report, and the merger adds them up.
//!
//! ```text
//! pairs     | source, target, failed ports | …            found by (source, target)
//! attempts  | pair, port, state, first, last | …          found by (pair, port)
//! ```
//!
//! Whether the SYN or the SYN-ACK is seen first does not matter, so packets that a capture has
//! swapped do not either. Crafted combinations with FIN or RST are no attempts and no answers.

mod text;

use ringtap_flow::{Dense, IpVersion};
use ringtap_stage::Shard;
use ringtap_terminal::page::Page;
use ringtap_wire::{Flags, HashKey, PacketRecord};

use super::{About, Analysis, Merge, Section};
use crate::report::{HorizontalScan, Scans, Time, VerticalScan};
use crate::{Alert, Setup};

const TCP: u8 = 6;
const FIN_SYN_RST_ACK: u8 = 1 | 2 | 4 | 16;
const SYN: u8 = 2;
const SYN_ACK: u8 = 2 | 16;

/// Signals whose look-ups are made to overlap.
const GROUP: usize = 16;

/// Ports or targets listed with a scan.
const SAMPLE: usize = 10;

/// A source and a port: what horizontal scans are counted by.
pub(crate) type Sweep = (IpVersion, [u8; 16], u16);

/// What a worker sends at once.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// A source's failed attempts on a port became one more or one fewer.
    Attempted(Attempted),
    /// A source crossed the threshold on one target.
    Alert(Alert),
}

/// State report: the failed attempts of `sweep` became one more or one fewer.
#[derive(Clone, Copy, Debug)]
pub struct Attempted {
    sweep: Sweep,
    failed: bool,
    ts_ns: u64,
}

struct Pair {
    version: IpVersion,
    source: [u8; 16],
    target: [u8; 16],
    failed: u32,
    alerted: bool,
}

struct Attempt {
    pair: u32,
    port: u16,
    tried: bool,
    answered: bool,
    first_ns: u64,
    last_ns: u64,
}

impl Attempt {
    fn new(pair: u32, port: u16) -> Self {
        Self { pair, port, tried: false, answered: false, first_ns: u64::MAX, last_ns: 0 }
    }

    fn failed(&self) -> bool {
        self.tried && !self.answered
    }
}

/// Attempts of one shard.
pub struct ScanTable {
    threshold: u32,
    tables: Tables,
}

struct Tables {
    key: HashKey,
    capacity: usize,
    pairs: Dense<Pair>,
    attempts: Dense<Attempt>,
    ignored: u64,
}

/// A SYN or a SYN-ACK, seen as an attempt of `source` on `target`.
#[derive(Clone, Copy)]
struct Signal {
    version: IpVersion,
    source: [u8; 16],
    target: [u8; 16],
    port: u16,
    answer: bool,
    ts_ns: u64,
    pair_hash: u32,
}

impl Signal {
    /// `None` for any other packet.
    #[inline(always)]
    fn of(packet: &PacketRecord, key: &HashKey) -> Option<Self> {
        // Most packets are neither; only a TCP packet with its own header has flags.
        if packet.tcp_flags & SYN == 0
            || packet.protocol != TCP
            || !packet.flags.contains(Flags::PORTS)
        {
            return None;
        }
        let version =
            if packet.flags.contains(Flags::IPV6) { IpVersion::V6 } else { IpVersion::V4 };
        let (source, target, port, answer) = match packet.tcp_flags & FIN_SYN_RST_ACK {
            SYN => (packet.src, packet.dst, packet.dst_port, false),
            SYN_ACK => (packet.dst, packet.src, packet.src_port, true),
            _ => return None,
        };
        // Unlike the record's own hash, this one must tell the two directions apart.
        let pair_hash = key.word(key.address(&source) ^ key.address(&target).rotate_left(32));
        let (ts_ns, pair_hash) = (packet.ts_ns, (pair_hash >> 32) as u32);
        Some(Self { version, source, target, port, answer, ts_ns, pair_hash })
    }

    #[inline(always)]
    fn is_of(&self, pair: &Pair) -> bool {
        pair.source == self.source && pair.target == self.target && pair.version == self.version
    }
}

impl Tables {
    /// The entries of an attempt, new ones if need be; `None` if there is no room.
    fn find(&mut self, signal: &Signal) -> Option<(&mut Pair, &mut Attempt)> {
        let known = self.pairs.find(signal.pair_hash, |pair| signal.is_of(pair));
        let full = self.pairs.len() >= self.capacity || self.attempts.len() >= self.capacity;
        let pair = match known {
            Some(at) => at,
            None if full => {
                self.ignored += 1;
                return None;
            }
            None => {
                let Signal { version, source, target, .. } = *signal;
                let pair = Pair { version, source, target, failed: 0, alerted: false };
                self.pairs.insert(signal.pair_hash, pair)
            }
        };
        let hash = self.attempt_hash(pair, signal.port);
        let wanted = |a: &Attempt| a.pair as usize == pair && a.port == signal.port;
        let attempt = match self.attempts.find(hash, wanted) {
            Some(at) => at,
            None if full => {
                self.ignored += 1;
                return None;
            }
            None => self.attempts.insert(hash, Attempt::new(pair as u32, signal.port)),
        };
        Some((self.pairs.row_mut(pair), self.attempts.row_mut(attempt)))
    }

    #[inline(always)]
    fn attempt_hash(&self, pair: usize, port: u16) -> u32 {
        (self.key.word((pair as u64) << 16 | u64::from(port)) >> 32) as u32
    }

    /// Brings near what [`Tables::find`] will read for these signals: step by step for all, so
    /// that their cache misses overlap.
    fn touch(&self, signals: &[Signal]) {
        let mut words = [0; GROUP];
        for (signal, word) in signals.iter().zip(&mut words) {
            *word = self.pairs.home(signal.pair_hash);
        }
        let mut touched = 0;
        for (signal, &word) in signals.iter().zip(&words) {
            touched ^= self.pairs.hint(word, signal.pair_hash).map_or(0, |pair| pair.failed);
        }
        std::hint::black_box(touched);
        let mut hashes = [0; GROUP];
        for ((signal, word), hash) in signals.iter().zip(&mut words).zip(&mut hashes) {
            if let Some(at) = self.pairs.find(signal.pair_hash, |pair| signal.is_of(pair)) {
                *hash = self.attempt_hash(at, signal.port);
                *word = self.attempts.home(*hash);
            }
        }
        let mut touched = false;
        for (&word, &hash) in words.iter().zip(&hashes) {
            touched ^= self.attempts.hint(word, hash).is_some_and(|attempt| attempt.tried);
        }
        std::hint::black_box(touched);
    }
}

impl ScanTable {
    pub(crate) fn new(key: HashKey, threshold: u32, capacity: usize) -> Self {
        let tables = Tables {
            key,
            capacity: capacity.clamp(1, Dense::<Pair>::MOST),
            pairs: Dense::new(),
            attempts: Dense::new(),
            ignored: 0,
        };
        Self { threshold, tables }
    }

    #[inline]
    pub(crate) fn on_burst(&mut self, burst: &[PacketRecord], send: &mut impl FnMut(Message)) {
        let key = self.tables.key;
        let mut signals = burst.iter().filter_map(|packet| Signal::of(packet, &key));
        let mut group = [Signal {
            version: IpVersion::V4,
            source: [0; 16],
            target: [0; 16],
            port: 0,
            answer: false,
            ts_ns: 0,
            pair_hash: 0,
        }; GROUP];
        loop {
            let mut count = 0;
            for (slot, signal) in group.iter_mut().zip(&mut signals) {
                *slot = signal;
                count += 1;
            }
            let group = &group[..count];
            if count > 1 {
                self.tables.touch(group);
            }
            for signal in group {
                self.on_signal(signal, send);
            }
            if count < GROUP {
                return;
            }
        }
    }

    /// Describes the vertical scans.
    pub(crate) fn finish(self) -> ScanFindings {
        let pairs = self.tables.pairs.rows();
        let mut scanned = Described::of(pairs, |pair| pair.failed > self.threshold);
        if !scanned.seen.is_empty() {
            for attempt in self.tables.attempts.rows().iter().filter(|a| a.failed()) {
                scanned.add(attempt.pair as usize, attempt, attempt.port);
            }
        }
        let describe = |seen: Seen<u16>| {
            let pair = &pairs[seen.row];
            VerticalScan {
                source: pair.version.address(&pair.source),
                target: pair.version.address(&pair.target),
                ports: u64::from(pair.failed),
                first: Time(seen.first_ns),
                last: Time(seen.last_ns),
                sample: seen.sample,
            }
        };
        let vertical = scanned.seen.into_iter().map(describe).collect();
        ScanFindings { vertical, tables: self.tables }
    }

    fn on_signal(&mut self, signal: &Signal, send: &mut impl FnMut(Message)) {
        let ts_ns = signal.ts_ns;
        let Some((pair, attempt)) = self.tables.find(signal) else { return };
        let before = attempt.failed();
        if signal.answer {
            attempt.answered = true;
        } else {
            attempt.tried = true;
            attempt.first_ns = attempt.first_ns.min(ts_ns);
            attempt.last_ns = attempt.last_ns.max(ts_ns);
        }
        let failed = attempt.failed();
        if failed == before {
            return;
        }
        let sweep = (signal.version, signal.source, signal.port);
        send(Message::Attempted(Attempted { sweep, failed, ts_ns }));
        if !failed {
            pair.failed -= 1;
            return;
        }
        pair.failed += 1;
        if pair.failed > self.threshold && !std::mem::replace(&mut pair.alerted, true) {
            send(Message::Alert(Alert::Vertical {
                source: signal.version.address(&signal.source),
                target: signal.version.address(&signal.target),
                ports: pair.failed,
                time: Time(ts_ns),
            }));
        }
    }
}

/// What a worker hands over at the end: its vertical scans, and the attempts from which the
/// merger describes the horizontal ones.
pub struct ScanFindings {
    vertical: Vec<VerticalScan>,
    tables: Tables,
}

/// What the merger keeps of a source and a port.
struct SweepRow {
    sweep: Sweep,
    /// Failed attempts now.
    failed: u32,
    alerted: bool,
}

/// The global side: sums of state reports during the run, rows at its end.
pub struct ScanMerger {
    key: HashKey,
    threshold: u32,
    capacity: usize,
    sweeps: Dense<SweepRow>,
    vertical: Vec<VerticalScan>,
    tables: Vec<Tables>,
    ignored: u64,
}

impl ScanMerger {
    pub(crate) fn new(key: HashKey, threshold: u32, capacity: usize) -> Self {
        let capacity = capacity.min(Dense::<SweepRow>::MOST);
        let (vertical, tables) = (Vec::new(), Vec::new());
        Self { key, threshold, capacity, sweeps: Dense::new(), vertical, tables, ignored: 0 }
    }

    fn hash(&self, sweep: &Sweep) -> u32 {
        (self.key.word(self.key.address(&sweep.1) ^ u64::from(sweep.2)) >> 32) as u32
    }

    /// Adds a state report; an alert if it crosses the threshold for the first time.
    pub(crate) fn on_attempted(&mut self, report: Attempted) -> Option<Alert> {
        let hash = self.hash(&report.sweep);
        let at = match self.sweeps.find(hash, |row| row.sweep == report.sweep) {
            Some(at) => at,
            None if self.sweeps.len() >= self.capacity => {
                self.ignored += u64::from(report.failed);
                return None;
            }
            None => {
                let row = SweepRow { sweep: report.sweep, failed: 0, alerted: false };
                self.sweeps.insert(hash, row)
            }
        };
        let row = self.sweeps.row_mut(at);
        if !report.failed {
            // One worker's reports come in order, so what is taken back was there.
            row.failed = row.failed.saturating_sub(1);
            return None;
        }
        row.failed += 1;
        let crossed = row.failed > self.threshold && !std::mem::replace(&mut row.alerted, true);
        let (version, source, port) = report.sweep;
        crossed.then(|| Alert::Horizontal {
            source: version.address(&source),
            port,
            targets: row.failed,
            time: Time(report.ts_ns),
        })
    }

    pub(crate) fn on_findings(&mut self, findings: ScanFindings) {
        self.ignored += findings.tables.ignored;
        self.vertical.extend(findings.vertical);
        self.tables.push(findings.tables);
    }

    /// The final rows. The attempts are walked only if there is a sweep to describe.
    pub(crate) fn finish(mut self) -> Scans {
        let mut swept = Described::of(self.sweeps.rows(), |row| row.failed > self.threshold);
        if !swept.seen.is_empty() {
            for tables in &self.tables {
                for attempt in tables.attempts.rows().iter().filter(|a| a.failed()) {
                    let pair = &tables.pairs.rows()[attempt.pair as usize];
                    let sweep = (pair.version, pair.source, attempt.port);
                    let row = self.sweeps.find(self.hash(&sweep), |row| row.sweep == sweep);
                    if let Some(row) = row {
                        swept.add(row, attempt, (pair.version, pair.target));
                    }
                }
            }
        }
        let describe = |seen: Seen<(IpVersion, [u8; 16])>| {
            let row = &self.sweeps.rows()[seen.row];
            let (version, source, port) = row.sweep;
            HorizontalScan {
                source: version.address(&source),
                port,
                protocol: "tcp",
                targets: u64::from(row.failed),
                first: Time(seen.first_ns),
                last: Time(seen.last_ns),
                sample: seen.sample.into_iter().map(|(v, a)| v.address(&a)).collect(),
            }
        };
        let mut horizontal: Vec<_> = swept.seen.into_iter().map(describe).collect();
        horizontal.sort();
        self.vertical.sort();
        Scans { vertical: self.vertical, horizontal, attempts_ignored: self.ignored }
    }
}

/// The rows of a table that are scans, and what is told of each beside its count.
struct Described<T> {
    /// By row of the table: position in `seen` plus one, or 0.
    places: Vec<u32>,
    seen: Vec<Seen<T>>,
}

struct Seen<T> {
    row: usize,
    first_ns: u64,
    last_ns: u64,
    /// The lowest, sorted.
    sample: Vec<T>,
}

impl<T: Ord + Copy> Described<T> {
    fn of<R>(rows: &[R], is_scan: impl Fn(&R) -> bool) -> Self {
        let mut seen = Vec::new();
        let place = |(row, content)| {
            if !is_scan(content) {
                return 0;
            }
            seen.push(Seen { row, first_ns: u64::MAX, last_ns: 0, sample: Vec::new() });
            seen.len() as u32
        };
        let places = rows.iter().enumerate().map(place).collect();
        Self { places, seen }
    }

    /// Adds a failed attempt to a row, if that is a scan.
    fn add(&mut self, row: usize, attempt: &Attempt, what: T) {
        let place = self.places[row] as usize;
        if place == 0 {
            return;
        }
        let seen = &mut self.seen[place - 1];
        seen.first_ns = seen.first_ns.min(attempt.first_ns);
        seen.last_ns = seen.last_ns.max(attempt.last_ns);
        if seen.sample.len() < SAMPLE || seen.sample.last().is_some_and(|last| what < *last) {
            let at = seen.sample.partition_point(|have| *have < what);
            seen.sample.insert(at, what);
            seen.sample.truncate(SAMPLE);
        }
    }
}

impl Analysis for ScanTable {
    const FLOW_BYTES: u64 = 200;

    type Message = Message;
    type Found = Box<ScanFindings>;
    type Merger = ScanMerger;

    fn new(setup: &Setup, shard: Shard) -> Self {
        Self::new(setup.hash_key, setup.options.scan_threshold, setup.capacity_of(shard))
    }

    #[inline(always)]
    fn on_packets(&mut self, packets: &[PacketRecord], send: &mut impl FnMut(Message)) {
        self.on_burst(packets, send);
    }

    /// SYNs and SYN-ACKs that found no room.
    fn ignored(&self) -> u64 {
        self.tables.ignored
    }

    fn end(self) -> Box<ScanFindings> {
        Box::new(self.finish())
    }
}

impl Merge<ScanTable> for ScanMerger {
    type Section = Scans;

    fn new(setup: &Setup) -> Self {
        let most = setup.options.max_flows() as usize;
        Self::new(setup.hash_key, setup.options.scan_threshold, most)
    }

    fn on_message(&mut self, message: Message, alert: &mut dyn FnMut(&Alert)) {
        match message {
            Message::Attempted(report) => self.on_attempted(report).iter().for_each(alert),
            Message::Alert(crossed) => alert(&crossed),
        }
    }

    fn merge(&mut self, found: Box<ScanFindings>) {
        self.on_findings(*found);
    }

    /// Failed attempts that found no room here.
    fn ignored(&self) -> u64 {
        self.ignored
    }

    fn end(self, _: &mut dyn FnMut(&Alert)) -> Scans {
        self.finish()
    }
}

impl Section for Scans {
    fn losses(&self) -> Vec<(&'static str, u64)> {
        vec![("connection attempts ignored by the scan analysis", self.attempts_ignored)]
    }

    fn warnings(&self) -> Vec<String> {
        let count = self.attempts_ignored;
        let warning = format!(
            "{count} connection attempts were ignored by the scan analysis for lack of memory: raise --memory or \
             --max-flows"
        );
        (count > 0).then_some(warning).into_iter().collect()
    }

    fn show(&self, page: &mut Page, about: &About<'_>) {
        text::show(self, page, about);
    }
}

#[cfg(test)]
mod tests;
