//! The result of an output: records sent, and records not sent by reason.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};
use std::time::SystemTime;

use serde::Serialize;

use crate::space::Space;

/// Why a record was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The collector's host reported that the port is closed (UDP).
    Refused,
    /// The output was down or slow for so long that its buffer became full.
    NoRoom,
    /// Still waiting at the deadline after the end.
    TooLate,
    /// The system rejected the message, or the file could not be written.
    Failed,
    /// More alerts began than files of packets are written for.
    TooMany,
    /// The reader of standard output has closed it.
    ReaderGone,
    /// NetFlow v5 supports only IPv4.
    Ipv6,
    /// NetFlow v5 and v9 have 32 bits of milliseconds for a flow's time, 49 days, and 32 bits of seconds in the header.
    TimeSpan,
    /// NetFlow v5 has 32-bit counters, and a message full of records could not contain this flow.
    CounterRange,
}

/// The rows of the reasons: each with its name in reports, and the text behind the number of lost records; no text if the
/// loss is no fault. In the order of their numbers.
const REASONS: [(Reason, &str, Option<&str>); 9] = [
    (Reason::Refused, "refused", Some("the collector's port is closed")),
    (Reason::NoRoom, "no_room", Some("the output was down or too slow, and its buffer was full")),
    (Reason::TooLate, "too_late", Some("the output accepted nothing more at the end of the run")),
    (Reason::Failed, "failed", Some("they could not be written")),
    (Reason::TooMany, "too_many", Some("more alerts began in a minute than get a file of packets")),
    (Reason::ReaderGone, "reader_gone", None),
    (Reason::Ipv6, "ipv6", Some("NetFlow v5 has no IPv6")),
    (Reason::TimeSpan, "time_span", Some("the protocol's 32 bits cannot express the flow's time")),
    (
        Reason::CounterRange,
        "counter_range",
        Some("the protocol's 32 bits cannot express the flow's counters"),
    ),
];

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; REASONS.len()] = {
        let (mut all, mut at) = ([Self::Refused; REASONS.len()], 0);
        while at < REASONS.len() {
            assert!(REASONS[at].0 as usize == at, "a row is not at its number");
            all[at] = REASONS[at].0;
            at += 1;
        }
        all
    };

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        REASONS[self as usize].1
    }

    /// What to say of records lost for the reason with this name, if anything.
    pub fn text(name: &str) -> Option<&'static str> {
        REASONS.iter().find(|(_, own, _)| *own == name).and_then(|(.., text)| *text)
    }
}

/// What the records of an output are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Items {
    /// Flow records.
    #[default]
    Flows,
    /// Events.
    Events,
    /// States of the run, or of parts of it.
    States,
    /// Changes of alerts.
    Alerts,
    /// Totals of intervals.
    Totals,
}

impl Items {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flow records",
            Self::Events => "events",
            Self::States => "states",
            Self::Alerts => "alerts",
            Self::Totals => "totals",
        }
    }
}

/// Records, and their packets and octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordTotals {
    /// Data records of flows, as the collector counts them: IPFIX has one for a biflow, NetFlow one for each
    /// direction that had packets. For other [`Items`] their number.
    pub records: u64,
    /// Packets of these flows, both directions; 0 for states.
    pub packets: u64,
    /// Layer 3 octets of these flows, both directions; 0 for states.
    pub octets: u64,
}

impl AddAssign for RecordTotals {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.packets += other.packets;
        self.octets = self.octets.wrapping_add(other.octets);
    }
}

impl SubAssign for RecordTotals {
    fn sub_assign(&mut self, other: Self) {
        self.records = self.records.saturating_sub(other.records);
        self.packets = self.packets.saturating_sub(other.packets);
        self.octets = self.octets.wrapping_sub(other.octets);
    }
}

/// Data sent to the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Flows.
    #[serde(flatten)]
    pub flows: RecordTotals,
    /// Messages, including those with only templates.
    pub messages: u64,
    /// Octets of these messages with their headers, without those of UDP, TCP and IP.
    pub message_octets: u64,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.flows += other.flows;
        self.messages += other.messages;
        self.message_octets += other.message_octets;
    }
}

/// The result of one output: records made = sent + Σ not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its URL, or format and path.
    #[serde(rename = "collector")]
    pub output: String,
    /// What its records are.
    #[serde(skip)]
    pub items: Items,
    /// Sent data. Over UDP it may be lost on the network; over TCP, data accepted by the kernel counts.
    pub sent: Sent,
    /// Records not sent, by [`Reason::name`].
    pub not_sent: BTreeMap<&'static str, RecordTotals>,
    /// Why the output failed: nothing was accepted, or it was failing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Summary {
    /// Adds what an output of the same name sent and lost before; whether it failed is of the last one.
    pub(crate) fn add(&mut self, before: Self) {
        self.sent += before.sent;
        for (reason, counts) in before.not_sent {
            *self.not_sent.entry(reason).or_default() += counts;
        }
    }

    /// Records not sent, for any reason.
    pub fn lost(&self) -> u64 {
        self.not_sent.values().map(|counts| counts.records).sum()
    }
}

/// The state of one output during the run.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its URL, or format and path.
    pub name: String,
    /// What its records are.
    pub items: Items,
    /// Records encoded for it, or dropped before that.
    pub made: u64,
    /// Records that it accepted.
    pub sent: u64,
    /// Records lost, by reason.
    pub lost: [(Reason, u64); Reason::ALL.len()],
    /// Encoded bytes that wait to be written.
    pub queued_bytes: u64,
    /// Old files that it removed.
    pub files_removed: u64,
    /// The space of its file system, if it is a file.
    pub space: Option<Space>,
    /// True if the last attempt to write failed.
    pub failing: bool,
    /// True if what failed is tried again; false if it was given up.
    pub retrying: bool,
    /// The last error, and its time.
    pub last_error: Option<(String, SystemTime)>,
}

impl Status {
    /// Records lost for a reason.
    pub fn lost(&self, reason: Reason) -> u64 {
        self.lost[reason as usize].1
    }

    /// Records lost for any reason.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().map(|(_, records)| records).sum()
    }
}
