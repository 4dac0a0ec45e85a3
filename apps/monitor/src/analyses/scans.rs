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

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use hashbrown::HashTable;
use ringtap_flow::IpVersion;
use ringtap_stage::Outbox;
use ringtap_wire::{Flags, HashKey, PacketRecord};

use crate::Message;
use crate::report::{HorizontalScan, Scans, Time, VerticalScan};

const TCP: u8 = 6;
const FIN_SYN_RST_ACK: u8 = 1 | 2 | 4 | 16;
const SYN: u8 = 2;
const SYN_ACK: u8 = 2 | 16;

/// Ports or targets listed with a scan.
const SAMPLE: usize = 10;

/// A source and a port: what horizontal scans are counted by.
pub(crate) type Sweep = (IpVersion, [u8; 16], u16);

/// State report: the failed attempts of `sweep` became one more or one fewer.
#[derive(Clone, Copy, Debug)]
pub struct Attempted {
    sweep: Sweep,
    failed: bool,
    ts_ns: u64,
}

/// A scan that has just crossed the threshold. Answers that come later may take it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// One source, one target, many ports.
    Vertical {
        /// Who scans.
        source: IpAddr,
        /// Whom.
        target: IpAddr,
        /// Failed ports so far.
        ports: u32,
        /// Packet time.
        time: Time,
    },
    /// One source, one port, many targets.
    Horizontal {
        /// Who scans.
        source: IpAddr,
        /// Which TCP port.
        port: u16,
        /// Failed targets so far.
        targets: u32,
        /// Packet time.
        time: Time,
    },
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
    fn failed(&self) -> bool {
        self.tried && !self.answered
    }
}

/// Attempts of one shard.
pub(crate) struct ScanTable {
    threshold: u32,
    tables: Tables,
}

struct Tables {
    key: HashKey,
    capacity: usize,
    pairs: Vec<Pair>,
    /// Positions in `pairs`.
    pair_index: HashTable<u32>,
    attempts: HashTable<Attempt>,
    ignored: u64,
}

impl Tables {
    /// The entries of an attempt, new ones if need be; `None` if there is no room.
    fn find(
        &mut self,
        version: IpVersion,
        source: &[u8; 16],
        target: &[u8; 16],
        port: u16,
    ) -> Option<(&mut Pair, &mut Attempt)> {
        let hash = self.pair_hash(source, target);
        let same = |pair: &Pair| {
            pair.source == *source && pair.target == *target && pair.version == version
        };
        let known = self.pair_index.find(hash, |&at| same(&self.pairs[at as usize])).copied();
        if known.is_none() && self.pairs.len() >= self.capacity {
            self.ignored += 1;
            return None;
        }
        let at = known.unwrap_or_else(|| {
            let at = self.pairs.len() as u32;
            let (source, target) = (*source, *target);
            self.pairs.push(Pair { version, source, target, failed: 0, alerted: false });
            let (key, pairs) = (&self.key, &self.pairs);
            self.pair_index.insert_unique(hash, at, |&at| {
                let pair = &pairs[at as usize];
                Self::hash_of(key, &pair.source, &pair.target)
            });
            at
        });
        let key = self.key;
        let hash = move |pair: u32, port: u16| key.word(u64::from(pair) << 16 | u64::from(port));
        let wanted = |attempt: &Attempt| attempt.pair == at && attempt.port == port;
        if self.attempts.find(hash(at, port), wanted).is_none() {
            if self.attempts.len() >= self.capacity {
                self.ignored += 1;
                return None;
            }
            let fresh =
                Attempt { pair: at, port, tried: false, answered: false, first_ns: 0, last_ns: 0 };
            self.attempts.insert_unique(hash(at, port), fresh, |a| hash(a.pair, a.port));
        }
        let attempt = self.attempts.find_mut(hash(at, port), wanted)?;
        Some((&mut self.pairs[at as usize], attempt))
    }

    fn pair_hash(&self, source: &[u8; 16], target: &[u8; 16]) -> u64 {
        Self::hash_of(&self.key, source, target)
    }

    fn hash_of(key: &HashKey, source: &[u8; 16], target: &[u8; 16]) -> u64 {
        key.word(key.address(source) ^ key.address(target).rotate_left(32))
    }
}

impl ScanTable {
    pub(crate) fn new(key: HashKey, threshold: u32, capacity: usize) -> Self {
        let tables = Tables {
            key,
            capacity: capacity.clamp(1, u32::MAX as usize),
            pairs: Vec::new(),
            pair_index: HashTable::new(),
            attempts: HashTable::new(),
            ignored: 0,
        };
        Self { threshold, tables }
    }

    #[inline]
    pub(crate) fn on_burst(&mut self, burst: &[PacketRecord], outbox: &mut impl Outbox<Message>) {
        for packet in burst {
            // Most packets are neither; only a TCP packet with its own header has flags.
            if packet.tcp_flags & SYN != 0
                && packet.protocol == TCP
                && packet.flags.contains(Flags::PORTS)
            {
                match packet.tcp_flags & FIN_SYN_RST_ACK {
                    SYN => self.tried(packet, outbox),
                    SYN_ACK => self.answered(packet, outbox),
                    _ => {}
                }
            }
        }
    }

    fn tried(&mut self, packet: &PacketRecord, outbox: &mut impl Outbox<Message>) {
        let (version, port, ts_ns) = (version(packet), packet.dst_port, packet.ts_ns);
        let found = self.tables.find(version, &packet.src, &packet.dst, port);
        let Some((pair, attempt)) = found else { return };
        if attempt.tried {
            attempt.first_ns = attempt.first_ns.min(ts_ns);
            attempt.last_ns = attempt.last_ns.max(ts_ns);
            return;
        }
        attempt.tried = true;
        (attempt.first_ns, attempt.last_ns) = (ts_ns, ts_ns);
        if attempt.answered {
            return;
        }
        pair.failed += 1;
        let sweep = (version, pair.source, port);
        outbox.send(Message::Attempted(Attempted { sweep, failed: true, ts_ns }));
        if pair.failed > self.threshold && !std::mem::replace(&mut pair.alerted, true) {
            outbox.send(Message::Alert(Alert::Vertical {
                source: version.address(&pair.source),
                target: version.address(&pair.target),
                ports: pair.failed,
                time: Time(ts_ns),
            }));
        }
    }

    fn answered(&mut self, packet: &PacketRecord, outbox: &mut impl Outbox<Message>) {
        let (version, port, ts_ns) = (version(packet), packet.src_port, packet.ts_ns);
        let found = self.tables.find(version, &packet.dst, &packet.src, port);
        let Some((pair, attempt)) = found else { return };
        if std::mem::replace(&mut attempt.answered, true) || !attempt.tried {
            return;
        }
        pair.failed -= 1;
        let sweep = (version, pair.source, port);
        outbox.send(Message::Attempted(Attempted { sweep, failed: false, ts_ns }));
    }
}

fn version(packet: &PacketRecord) -> IpVersion {
    if packet.flags.contains(Flags::IPV6) { IpVersion::V6 } else { IpVersion::V4 }
}

/// The global side: sums of state reports during the run, rows at its end.
pub(crate) struct ScanMerger {
    threshold: u32,
    capacity: usize,
    /// Failed attempts now, and whether an alert went out.
    sweeps: HashMap<Sweep, (u32, bool)>,
    tables: Vec<ScanTable>,
    ignored: u64,
}

impl ScanMerger {
    pub(crate) fn new(threshold: u32, capacity: usize) -> Self {
        let sweeps = HashMap::new();
        Self { threshold, capacity, sweeps, tables: Vec::new(), ignored: 0 }
    }

    /// Adds a state report; an alert if it crosses the threshold for the first time.
    pub(crate) fn on_attempted(&mut self, report: Attempted) -> Option<Alert> {
        if self.sweeps.len() >= self.capacity && !self.sweeps.contains_key(&report.sweep) {
            self.ignored += u64::from(report.failed);
            return None;
        }
        let (failed, alerted) = self.sweeps.entry(report.sweep).or_default();
        if !report.failed {
            *failed -= 1;
            return None;
        }
        *failed += 1;
        let crossed = *failed > self.threshold && !std::mem::replace(alerted, true);
        let (version, source, port) = report.sweep;
        crossed.then(|| Alert::Horizontal {
            source: version.address(&source),
            port,
            targets: *failed,
            time: Time(report.ts_ns),
        })
    }

    pub(crate) fn on_table(&mut self, table: ScanTable) {
        self.ignored += table.tables.ignored;
        self.tables.push(table);
    }

    /// The final rows. The tables are walked once, and only if there is a scan to describe.
    pub(crate) fn finish(self) -> Scans {
        let threshold = self.threshold;
        let mut swept: BTreeMap<Sweep, (u32, Seen<([u8; 16], IpVersion)>)> = self
            .sweeps
            .into_iter()
            .filter(|(_, (failed, _))| *failed > threshold)
            .map(|(sweep, (failed, _))| (sweep, (failed, Seen::default())))
            .collect();
        let mut vertical = Vec::new();
        for ScanTable { tables, .. } in &self.tables {
            let mut rows: BTreeMap<u32, Seen<u16>> = (0u32..)
                .zip(&tables.pairs)
                .filter(|(_, pair)| pair.failed > threshold)
                .map(|(at, _)| (at, Seen::default()))
                .collect();
            if rows.is_empty() && swept.is_empty() {
                continue;
            }
            for attempt in tables.attempts.iter().filter(|a| a.failed()) {
                let pair = &tables.pairs[attempt.pair as usize];
                if let Some(seen) = rows.get_mut(&attempt.pair) {
                    seen.add(attempt, attempt.port);
                }
                if let Some((_, seen)) = swept.get_mut(&(pair.version, pair.source, attempt.port)) {
                    seen.add(attempt, (pair.target, pair.version));
                }
            }
            vertical.extend(rows.into_iter().map(|(at, seen)| {
                let pair = &tables.pairs[at as usize];
                VerticalScan {
                    source: pair.version.address(&pair.source),
                    target: pair.version.address(&pair.target),
                    ports: u64::from(pair.failed),
                    first: Time(seen.first_ns),
                    last: Time(seen.last_ns),
                    sample: seen.sample.into_iter().collect(),
                }
            }));
        }
        vertical.sort();
        let mut horizontal: Vec<_> = swept
            .into_iter()
            .map(|((version, source, port), (failed, seen))| HorizontalScan {
                source: version.address(&source),
                port,
                protocol: "tcp",
                targets: u64::from(failed),
                first: Time(seen.first_ns),
                last: Time(seen.last_ns),
                sample: seen.sample.into_iter().map(|(a, v)| v.address(&a)).collect(),
            })
            .collect();
        horizontal.sort();
        Scans { vertical, horizontal, attempts_ignored: self.ignored }
    }
}

/// What is told of a scan beside its count.
struct Seen<T> {
    first_ns: u64,
    last_ns: u64,
    sample: BTreeSet<T>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { first_ns: u64::MAX, last_ns: 0, sample: BTreeSet::new() }
    }
}

impl<T: Ord> Seen<T> {
    fn add(&mut self, attempt: &Attempt, what: T) {
        self.first_ns = self.first_ns.min(attempt.first_ns);
        self.last_ns = self.last_ns.max(attempt.last_ns);
        self.sample.insert(what);
        if self.sample.len() > SAMPLE {
            self.sample.pop_last();
        }
    }
}
