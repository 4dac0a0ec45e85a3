//! The result of a run: the application's report with the run's counters.

use std::collections::BTreeMap;

use ringtap_base::{Ledger, Stage, Usage};
use ringtap_extract::Unread;
use ringtap_io::capture::Notice;
use ringtap_wire::{LinkType, NonIp};
use serde::Serialize;

use crate::interfaces::InterfaceCounts;
use crate::packet_source::{ClockChanges, FeedCounts};

/// Drop reason of packets that the filter expression does not select; requested, so not a loss.
pub(crate) const FILTERED: &str = "filtered";
/// Drop reason of packets outside the sample; requested, so not a loss.
pub(crate) const NOT_SAMPLED: &str = "not_sampled";
/// Drop reason of packets seen before within the window; requested, so not a loss.
pub(crate) const DUPLICATE: &str = "duplicate";

/// The notice of a run that a stop ended before the end of its files.
pub const INTERRUPTED: &str = "interrupted: the report has only what was read until then";

/// The speed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Performance {
    /// Wall time.
    pub seconds: f64,
    /// Packets received by wall time.
    pub packets_per_second: u64,
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Largest resident set of the process.
    pub peak_rss_bytes: u64,
}

impl Performance {
    /// The performance of a run that received `packets` since `before`.
    pub fn since(before: &Usage, packets: u64) -> Self {
        let used = Usage::now();
        let seconds = used.wall_s - before.wall_s;
        Self {
            seconds,
            packets_per_second: if seconds > 0.0 { (packets as f64 / seconds) as u64 } else { 0 },
            cpu_seconds: used.cpu_s - before.cpu_s,
            peak_rss_bytes: used.peak_rss_bytes,
        }
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Outcome<R> {
    /// The application's report.
    pub report: R,
    /// Packets received, including damaged and lost ones.
    pub received: u64,
    /// Counters of the feeds.
    pub counts: FeedCounts,
    /// Where the packets went.
    pub ledger: Ledger,
    /// The speed.
    pub performance: Performance,
    /// Counters of each interface, in the order given; empty for files.
    pub interfaces: Vec<InterfaceCounts>,
    /// Packets that arrived in another queue than earlier packets of the same address pair; one
    /// pair in 64 is checked.
    pub packets_split: u64,
    /// Address pairs of which both directions arrived in one queue, of those checked. A pair may be
    /// counted again after another one took its place in the table.
    pub pairs_checked: u64,
    /// Irregularities of packet time.
    pub clock: ClockChanges,
    /// Diagnostics of the source.
    pub notices: Vec<Notice>,
    /// A stop was requested before the end of the files.
    pub interrupted: bool,
    /// Why the source ended without being stopped, or which interfaces disappeared.
    pub failure: Option<String>,
}

impl<R> Outcome<R> {
    /// The same outcome with another report.
    pub fn with_report<T>(self, report: T) -> Outcome<T> {
        let Self { received, counts, ledger, performance, interfaces, packets_split, .. } = self;
        let Self { pairs_checked, clock, notices, interrupted, failure, .. } = self;
        Outcome {
            report,
            received,
            counts,
            ledger,
            performance,
            interfaces,
            packets_split,
            pairs_checked,
            clock,
            notices,
            interrupted,
            failure,
        }
    }

    /// Packets that should have been handled and were not.
    pub fn dropped(&self) -> u64 {
        let mut dropped = self.ledger.dropped();
        dropped.retain(|reason, _| ![FILTERED, NOT_SAMPLED, DUPLICATE].contains(reason));
        dropped.values().sum()
    }

    /// Packets without IP, by reason.
    pub fn non_ip(&self) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        for (reason, packets) in &self.counts.non_ip {
            *named.entry(reason.to_string()).or_default() += packets;
        }
        named
    }

    /// Packets whose link type is not decoded, by link type.
    pub fn undecoded_links(&self) -> BTreeMap<LinkType, u64> {
        let number = |(reason, &packets): (&NonIp, &u64)| match reason {
            NonIp::UnsupportedLink(number) => Some((LinkType(*number), packets)),
            _ => None,
        };
        self.counts.non_ip.iter().filter_map(number).collect()
    }

    /// Messages read from payloads, by extractor.
    pub fn payload_messages(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts.payloads.read
    }

    /// Messages in payloads that were not read for this reason.
    pub fn unread(&self, reason: Unread) -> u64 {
        let unread = &self.counts.payloads.unread;
        unread.iter().filter(|((_, why), _)| *why == reason).map(|(_, number)| number).sum()
    }

    /// Payloads that could not be read, by extractor and reason.
    pub fn unread_payloads(&self) -> BTreeMap<String, u64> {
        let named = |(&(extractor, why), &payloads): (&(&str, Unread), &u64)| {
            (format!("{extractor} {}", why.name()), payloads)
        };
        self.counts.payloads.unread.iter().map(named).collect()
    }

    /// All notices as text.
    pub fn notices(&self) -> Vec<String> {
        let interrupted = self.interrupted.then(|| INTERRUPTED.to_owned());
        let notices = self.notices.iter().map(ToString::to_string);
        notices.chain(interrupted).chain(self.clock.notices()).chain(self.failure.clone()).collect()
    }
}

/// A ledger in its printed form.
#[derive(Serialize)]
pub struct LedgerReport<'a> {
    residual: u64,
    stages: Vec<Row<'a>>,
}

impl<'a> LedgerReport<'a> {
    /// The printed form of a ledger.
    pub fn of(ledger: &'a Ledger) -> Self {
        Self { residual: ledger.residual(), stages: ledger.stages.iter().map(Row::of).collect() }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    stage: &'static str,
    #[serde(rename = "in")]
    input: u64,
    out: u64,
    dropped: &'a BTreeMap<&'static str, u64>,
}

impl<'a> Row<'a> {
    fn of(stage: &'a Stage) -> Self {
        Self { stage: stage.name, input: stage.input, out: stage.output, dropped: &stage.dropped }
    }
}
