//! What a run leaves: the application's report with the books around it.

use std::collections::BTreeMap;

use ringtap_base::{Ledger, Stage, Usage};
use ringtap_extract::Unread;
use ringtap_io::capture::Notice;
use ringtap_wire::{LinkType, NonIp};
use serde::Serialize;

use crate::interfaces::InterfaceCounts;
use crate::packet_source::{ClockChanges, FeedCounts};

/// Why a packet that the filter expression does not select is not handled: it was asked for, so it is no loss.
pub(crate) const FILTERED: &str = "filtered";
/// The same of one that is no part of the sample.
pub(crate) const NOT_SAMPLED: &str = "not_sampled";

/// How fast it went.
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
    /// Of a run that received so many packets since `before`.
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
    /// What the application found.
    pub report: R,
    /// Packets that came, damaged and lost ones included.
    pub received: u64,
    /// What the feeds counted.
    pub counts: FeedCounts,
    /// Where the packets went.
    pub ledger: Ledger,
    /// How fast.
    pub performance: Performance,
    /// What came by each interface, in the order given; of files none.
    pub interfaces: Vec<InterfaceCounts>,
    /// Packets that came by another queue than what passed between the same addresses before; of one pair of addresses
    /// in 64, which are watched.
    pub packets_split: u64,
    /// How the time of packets went on other than clocks do.
    pub clock: ClockChanges,
    /// What the source had to say.
    pub notices: Vec<Notice>,
    /// Why the source ended though nobody asked it to, or which interfaces were gone before the end.
    pub failure: Option<String>,
}

impl<R> Outcome<R> {
    /// The same with another report.
    pub fn with_report<T>(self, report: T) -> Outcome<T> {
        let Self { received, counts, ledger, performance, interfaces, packets_split, .. } = self;
        let Self { clock, notices, failure, .. } = self;
        Outcome {
            report,
            received,
            counts,
            ledger,
            performance,
            interfaces,
            packets_split,
            clock,
            notices,
            failure,
        }
    }

    /// Packets that were to be handled and were not.
    pub fn dropped(&self) -> u64 {
        let mut dropped = self.ledger.dropped();
        dropped.retain(|&reason, _| reason != FILTERED && reason != NOT_SAMPLED);
        dropped.values().sum()
    }

    /// Why packets were not IP, and how many.
    pub fn non_ip(&self) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        for (reason, packets) in &self.counts.non_ip {
            *named.entry(reason.to_string()).or_default() += packets;
        }
        named
    }

    /// Packets whose link type is not decoded, by its number.
    pub fn undecoded_links(&self) -> BTreeMap<LinkType, u64> {
        let number = |(reason, &packets): (&NonIp, &u64)| match reason {
            NonIp::UnsupportedLink(number) => Some((LinkType(*number), packets)),
            _ => None,
        };
        self.counts.non_ip.iter().filter_map(number).collect()
    }

    /// Payloads that were to be read and could not be, by extractor and reason.
    pub fn unread_payloads(&self) -> BTreeMap<String, u64> {
        let named = |(&(extractor, why), &payloads): (&(&str, Unread), &u64)| {
            (format!("{extractor} {}", why.name()), payloads)
        };
        self.counts.unread.iter().map(named).collect()
    }

    /// All notices in words.
    pub fn notices(&self) -> Vec<String> {
        let notices = self.notices.iter().map(ToString::to_string);
        notices.chain(self.clock.notices()).chain(self.failure.clone()).collect()
    }
}

/// A ledger as it is printed.
#[derive(Serialize)]
pub struct Books<'a> {
    residual: u64,
    stages: Vec<Row<'a>>,
}

impl<'a> Books<'a> {
    /// The ledger of a run.
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
