//! Port scans, of TCP as the paper defines them (Lee, Bu, Chandranmenon, section III-B), and of UDP.
//!
//! A *failed attempt* is a TCP SYN from a source to a distinct (target, port) that no SYN-ACK answers. More than the
//! threshold of them are a *vertical* scan when they go to one target's ports, a *horizontal* scan when they go to one port
//! of many targets (here: a *sweep*).
//!
//! ```text
//! SYN, SYN-ACK ──▶ attempts by (source, target, port) ──▶ vertical scans           the worker's alone: it owns the pair
//! UDP records      (attempts.rs)   └──▶ failed attempts by (source, port) ──▶ sweeps       added up by the merger (sweeps.rs)
//! ```
//!
//! At a mark a worker checks only sources that may have crossed the threshold (`suspects.rs`) and
//! hands over the changes of their sweeps, so a scan is reported at the mark after it crossed the
//! threshold, and again at each mark at which its number has changed; at the end it hands over
//! everything.
//!
//! SYN and SYN-ACK may arrive in any order, so packets swapped by a capture do not matter.
//! Combinations with FIN or RST are neither attempts nor answers. Attempts of UDP are flow records (`udp.rs`); each that is
//! answered offsets a failed one.

mod attempts;
mod groups;
pub(crate) mod rows;
mod rules;
mod suspects;
mod sweeps;
mod text;
mod udp;

use std::marker::PhantomData;

use ringtap_enrich::Stage;
use ringtap_flow::{FlowRecord, IpVersion};
use ringtap_stage::Shard;
use ringtap_state::{Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::{Flags, PacketRecord};

pub(crate) use rules::{Tcp, Udp};
pub use suspects::Suspects;

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use crate::alerts::Signal;
use crate::totals::Totals;
use attempts::{ANSWERED, Attempts, TRIED};
use rows::{ScanProtocol, Scans, VerticalScan};
use rules::{Rules, Scanned};
use sweeps::{Changes, Sums, Sweeps};

const TCP: u8 = 6;
const FIN_SYN_RST_ACK: u8 = 1 | 2 | 4 | 16;
const SYN: u8 = 2;
const SYN_ACK: u8 = 2 | 16;

/// Most attempts of a shard under any options; less than a table holds, because the table
/// exceeds its capacity.
const MOST: usize = ringtap_flow::MOST_ROWS * 3 / 4;

/// Attempts of one shard, of one protocol.
pub struct ScanTable<P> {
    v4: Attempts<[u8; 4]>,
    v6: Attempts<[u8; 16]>,
    /// Most attempts of both IP versions.
    capacity: usize,
    /// Least room for attempts and answers, an eighth beyond the capacity.
    room: usize,
    ignored: u64,
    of: PhantomData<P>,
}

/// A worker's partial result.
#[derive(Default)]
pub struct ScanFindings {
    /// Changes of vertical scans.
    signals: Vec<Signal>,
    /// Changes since the last mark.
    v4_changes: Changes<[u8; 4]>,
    v6_changes: Changes<[u8; 16]>,
    /// At the end.
    vertical: Vec<VerticalScan>,
    v4: Sweeps<[u8; 4]>,
    v6: Sweeps<[u8; 16]>,
    ignored: u64,
}

impl<P> ScanTable<P> {
    /// Adds the SYN or the SYN-ACK of a packet.
    #[inline(always)]
    fn on_packet(&mut self, packet: &PacketRecord) {
        // Most packets are neither; only a TCP packet with its own header has flags.
        if packet.tcp_flags & SYN == 0
            || packet.protocol != TCP
            || !packet.flags.contains(Flags::PORTS)
        {
            return;
        }
        let (ends, port, state) = match packet.tcp_flags & FIN_SYN_RST_ACK {
            SYN => ([&packet.src, &packet.dst], packet.dst_port, TRIED),
            SYN_ACK => ([&packet.dst, &packet.src], packet.src_port, ANSWERED),
            _ => return,
        };
        let is_v6 = packet.flags.contains(Flags::IPV6);
        self.note(is_v6, ends, port, [packet.ts_ns; 2], state);
    }

    /// Adds an attempt at these times, or an answer, or both.
    #[inline(always)]
    fn note(
        &mut self,
        is_v6: bool,
        ends: [&[u8; 16]; 2],
        port: u16,
        times_ns: [u64; 2],
        state: u8,
    ) {
        if is_v6 {
            self.v6.note(ends, port, times_ns, state);
        } else {
            self.v4.note(ends, port, times_ns, state);
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
    }

    fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Joins rows of the same attempt, and drops the latest attempts if there are too many.
    #[cold]
    fn make_room(&mut self) {
        self.v4.settle();
        self.v6.settle();
        let excess = self.len().saturating_sub(self.capacity);
        let gone = self.v4.evict_latest(excess);
        self.v6.evict_latest(excess - gone);
        self.ignored += excess as u64;
        self.room = self.capacity + self.capacity / 8 + 1 - self.len();
    }
}

impl<P: Scanned> Analysis for ScanTable<P> {
    const IS_FINDING: bool = true;
    const TAKES_RECORDS: bool = matches!(P::PROTOCOL, ScanProtocol::Udp);
    const FLOW_BYTES: u64 = P::FLOW_BYTES;
    const TABLES: &'static [&'static Schema] = P::TABLES;

    type Found = Box<ScanFindings>;
    type Merger = ScanMerger<P>;

    fn new(context: &Context, shard: Shard) -> Self {
        let capacity = context.capacity_of(shard) / P::FLOWS_AN_ATTEMPT;
        let capacity = capacity.clamp(1, MOST);
        let (rules, key) = (P::rules(context), context.hash_key);
        Self {
            v4: Attempts::new(rules.clone(), key, shard),
            v6: Attempts::new(rules, key, shard),
            capacity,
            room: capacity + capacity / 8 + 1,
            ignored: 0,
            of: PhantomData,
        }
    }

    #[inline(always)]
    fn on_packets(&mut self, packets: &[PacketRecord]) {
        if matches!(P::PROTOCOL, ScanProtocol::Tcp) {
            packets.iter().for_each(|packet| self.on_packet(packet));
        }
    }

    #[inline(always)]
    fn on_record(&mut self, record: &FlowRecord) {
        udp::attempts(record, |ends, port, state| {
            let is_v6 = record.key.version == IpVersion::V6;
            self.note(is_v6, ends, port, [record.first_ns, record.last_ns], state);
        });
    }

    fn adopt(&mut self, context: &Context, shard: Shard) {
        let threshold = P::rules(context).threshold;
        self.v4.set_threshold(threshold, shard);
        self.v6.set_threshold(threshold, shard);
    }

    fn on_tick(&mut self, _: u64) -> Option<Box<ScanFindings>> {
        let mut found = ScanFindings::default();
        found.v4_changes = self.v4.changes(&mut found.signals);
        found.v6_changes = self.v6.changes(&mut found.signals);
        let any = !(found.signals.is_empty()
            && found.v4_changes.is_empty()
            && found.v6_changes.is_empty());
        any.then(|| Box::new(found))
    }

    fn add_totals(&self, totals: &mut Totals) {
        totals.attempts_ignored += self.ignored;
    }

    fn save(&mut self, _: &'static Schema, rows: &mut Rows) {
        self.v4.save(rows);
        self.v6.save(rows);
    }

    fn load(&mut self, _: &'static Schema, row: &Row<'_>) -> Option<()> {
        match IpVersion::from_number(*row.key().first()?)? {
            IpVersion::V4 => self.v4.load(row)?,
            IpVersion::V6 => self.v6.load(row)?,
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
        Some(())
    }

    fn end(mut self) -> Box<ScanFindings> {
        if self.len() > self.capacity {
            self.make_room();
        }
        let mut found = ScanFindings::default();
        found.v4 = self.v4.end(&mut found.vertical, &mut found.signals);
        found.v6 = self.v6.end(&mut found.vertical, &mut found.signals);
        found.ignored = self.ignored;
        Box::new(found)
    }
}

/// Adds up the workers' results.
pub struct ScanMerger<P> {
    /// Reported when all workers have reached a mark, so that they are in order.
    signals: Vec<Signal>,
    /// Of the end.
    last_signals: Vec<Signal>,
    v4: Sums<[u8; 4]>,
    v6: Sums<[u8; 16]>,
    vertical: Vec<VerticalScan>,
    v4_sweeps: Vec<Sweeps<[u8; 4]>>,
    v6_sweeps: Vec<Sweeps<[u8; 16]>>,
    ignored: u64,
    of: PhantomData<P>,
}

/// Reports changes in their order: scans in order of time, then those that are none any more.
fn report(changes: &mut Vec<Signal>, signals: Signals<'_>) {
    changes.sort_unstable();
    changes.drain(..).for_each(signals);
}

impl<P: Scanned> Merge<ScanTable<P>> for ScanMerger<P> {
    type Section = Scans;

    /// Alerts have the numbers of their mark.
    const IN_ORDER: bool = true;

    fn new(context: &Context) -> Self {
        let (rules, key): (Rules, _) = (P::rules(context), context.hash_key);
        Self {
            signals: Vec::new(),
            last_signals: Vec::new(),
            v4: Sums::new(rules.clone(), key),
            v6: Sums::new(rules, key),
            vertical: Vec::new(),
            v4_sweeps: Vec::new(),
            v6_sweeps: Vec::new(),
            ignored: 0,
            of: PhantomData,
        }
    }

    fn adopt(&mut self, context: &Context) {
        let threshold = P::rules(context).threshold;
        self.v4.set_threshold(threshold);
        self.v6.set_threshold(threshold);
    }

    fn merge(&mut self, found: Box<ScanFindings>) {
        self.signals.extend(found.signals);
        self.v4.add(found.v4_changes);
        self.v6.add(found.v6_changes);
    }

    fn bytes(found: &Box<ScanFindings>) -> usize {
        let ScanFindings { signals, v4_changes, v6_changes, .. } = &**found;
        size_of::<ScanFindings>()
            + size_of_val(&**signals)
            + size_of_val(&**v4_changes)
            + size_of_val(&**v6_changes)
    }

    fn merge_end(&mut self, found: Box<ScanFindings>) {
        let found = *found;
        self.last_signals.extend(found.signals);
        self.vertical.extend(found.vertical);
        self.v4_sweeps.extend((!found.v4.is_empty()).then_some(found.v4));
        self.v6_sweeps.extend((!found.v6.is_empty()).then_some(found.v6));
        self.ignored += found.ignored;
    }

    fn on_time(&mut self, _: u64, signals: Signals<'_>) {
        self.v4.changes(&mut self.signals);
        self.v6.changes(&mut self.signals);
        report(&mut self.signals, signals);
    }

    fn end(self, signals: Signals<'_>) -> Scans {
        let Self { signals: mut changes, v4, v6, mut vertical, .. } = self;
        changes.extend(self.last_signals);
        let mut horizontal = Vec::new();
        v4.scans(&self.v4_sweeps, &mut horizontal, &mut changes);
        v6.scans(&self.v6_sweeps, &mut horizontal, &mut changes);
        report(&mut changes, signals);
        horizontal.sort();
        vertical.sort();
        let (protocol, attempts_ignored) = (P::PROTOCOL, self.ignored);
        Scans { protocol, vertical, horizontal, attempts_ignored }
    }
}

impl Section for Scans {
    fn pass(&mut self, stage: &mut Stage) {
        for scan in &mut self.vertical {
            stage.replace(&mut scan.source);
            stage.replace(&mut scan.target);
        }
        for scan in &mut self.horizontal {
            stage.replace(&mut scan.source);
            scan.sample.iter_mut().for_each(|target| stage.replace(target));
            scan.sample.sort_unstable();
        }
        self.vertical.sort_unstable();
        self.horizontal.sort_unstable();
    }

    fn show(&self, page: &mut Page, about: &About) {
        text::show(self, page, about);
    }
}

#[cfg(test)]
mod tests;
