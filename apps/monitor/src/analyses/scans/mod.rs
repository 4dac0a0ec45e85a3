//! Port scans, as the paper defines them (Lee, Bu, Chandranmenon, section III-B).
//!
//! A *failed connection attempt* is a TCP SYN from a source to a distinct (target, port) that no
//! SYN-ACK answers. More than the threshold of them are a *vertical* scan when they go to one
//! target's ports, a *horizontal* scan when they go to one port of many targets (here: a *sweep*).
//!
//! ```text
//! SYN, SYN-ACK ──▶ attempts by (source, target, port) ──▶ vertical scans           the worker's alone: it owns the pair
//!   (attempts.rs)          └──▶ failed attempts by (source, port) ──▶ sweeps       added up by the merger (sweeps.rs)
//! ```
//!
//! At a mark a worker checks only sources that may have crossed the threshold (`suspects.rs`) and
//! hands over the changes of their sweeps, so a scan is reported at the mark after it crossed the
//! threshold, and again at each mark at which its number has changed; at the end it hands over
//! everything.
//!
//! SYN and SYN-ACK may arrive in any order, so packets swapped by a capture do not matter.
//! Combinations with FIN or RST are neither attempts nor answers.

mod attempts;
mod groups;
pub(crate) mod rows;
mod suspects;
mod sweeps;
mod text;

use ringtap_enrich::Stage;
use ringtap_flow::IpVersion;
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::{Flags, PacketRecord};

pub use suspects::Suspects;

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use crate::alerts::Signal;
use crate::totals::Totals;
use attempts::Attempts;
use rows::{HorizontalScan, Scans, VerticalScan};
use sweeps::{Changes, Sums, Sweeps};

const TCP: u8 = 6;
const FIN_SYN_RST_ACK: u8 = 1 | 2 | 4 | 16;
const SYN: u8 = 2;
const SYN_ACK: u8 = 2 | 16;

/// Most attempts of a shard under any options; less than a table holds, because the table
/// exceeds its capacity.
const MOST: usize = ringtap_flow::MOST_ROWS * 3 / 4;

/// Version, source, target and port of an attempt; the times of its SYNs, and its state.
static ATTEMPTS: Schema = Schema::new("attempts", 35, &[Op::Min, Op::Max, Op::Or]);

/// Attempts of one shard.
pub struct ScanTable {
    v4: Attempts<[u8; 4]>,
    v6: Attempts<[u8; 16]>,
    /// Most attempts of both IP versions.
    capacity: usize,
    /// Least room for packets, an eighth beyond the capacity.
    room: usize,
    ignored: u64,
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

impl ScanTable {
    #[inline(always)]
    fn note(&mut self, packet: &PacketRecord) {
        // Most packets are neither; only a TCP packet with its own header has flags.
        if packet.tcp_flags & SYN == 0
            || packet.protocol != TCP
            || !packet.flags.contains(Flags::PORTS)
        {
            return;
        }
        let answer = match packet.tcp_flags & FIN_SYN_RST_ACK {
            SYN => false,
            SYN_ACK => true,
            _ => return,
        };
        if packet.flags.contains(Flags::IPV6) {
            self.v6.note(packet, answer);
        } else {
            self.v4.note(packet, answer);
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
    }

    fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Joins packets of the same attempt, and drops the latest attempts if there are too many.
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

impl Analysis for ScanTable {
    const IS_FINDING: bool = true;
    const FLOW_BYTES: u64 = 112;
    const TABLES: &'static [&'static Schema] = &[&ATTEMPTS];

    type Found = Box<ScanFindings>;
    type Merger = ScanMerger;

    fn new(context: &Context, shard: Shard) -> Self {
        let capacity = context.capacity_of(shard).clamp(1, MOST);
        Self {
            v4: Attempts::new(context, shard),
            v6: Attempts::new(context, shard),
            capacity,
            room: capacity + capacity / 8 + 1,
            ignored: 0,
        }
    }

    #[inline(always)]
    fn on_packets(&mut self, packets: &[PacketRecord]) {
        packets.iter().for_each(|packet| self.note(packet));
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
pub struct ScanMerger {
    threshold: u32,
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
}

/// Reports changes in their order: scans in order of time, then those that are none any more.
fn report(changes: &mut Vec<Signal>, signals: Signals<'_>) {
    changes.sort_unstable();
    changes.drain(..).for_each(signals);
}

impl Merge<ScanTable> for ScanMerger {
    type Section = Scans;

    /// Alerts have the numbers of their mark.
    const IN_ORDER: bool = true;

    fn new(context: &Context) -> Self {
        Self {
            threshold: context.scan_threshold,
            signals: Vec::new(),
            last_signals: Vec::new(),
            v4: Sums::new(context.hash_key),
            v6: Sums::new(context.hash_key),
            vertical: Vec::new(),
            v4_sweeps: Vec::new(),
            v6_sweeps: Vec::new(),
            ignored: 0,
        }
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
        self.v4.changes(self.threshold, &mut self.signals);
        self.v6.changes(self.threshold, &mut self.signals);
        report(&mut self.signals, signals);
    }

    fn end(self, signals: Signals<'_>) -> Scans {
        let Self { threshold, signals: mut changes, v4, v6, mut vertical, .. } = self;
        changes.extend(self.last_signals);
        let mut horizontal = Vec::new();
        v4.scans(&self.v4_sweeps, threshold, &mut horizontal, &mut changes);
        v6.scans(&self.v6_sweeps, threshold, &mut horizontal, &mut changes);
        report(&mut changes, signals);
        horizontal.sort();
        vertical.sort();
        Scans { vertical, horizontal, attempts_ignored: self.ignored }
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
