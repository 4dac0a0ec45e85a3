//! What became of the records: sent, or not, and why.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};
use std::time::SystemTime;

use serde::Serialize;

/// Why a record was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The collector's host answered that the port is closed (UDP).
    Refused,
    /// The output was down or slow for so long that its buffer was full.
    NoRoom,
    /// Still waiting when the time at the end was over.
    TooLate,
    /// The system would not take the message, or the file could not be written.
    Failed,
    /// The reader of standard output has gone.
    ReaderGone,
    /// NetFlow v5 knows IPv4 only.
    Ipv6,
    /// NetFlow v5 and v9 have 32 bits of milliseconds for a flow's time, 49 days, and the header 32 bits of seconds.
    TimeSpan,
    /// NetFlow v5 has 32-bit counters, and even a message full of records would not hold this flow.
    CounterRange,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Refused,
        Self::NoRoom,
        Self::TooLate,
        Self::Failed,
        Self::ReaderGone,
        Self::Ipv6,
        Self::TimeSpan,
        Self::CounterRange,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoRoom => "no_room",
            Self::TooLate => "too_late",
            Self::Failed => "failed",
            Self::ReaderGone => "reader_gone",
            Self::Ipv6 => "ipv6",
            Self::TimeSpan => "time_span",
            Self::CounterRange => "counter_range",
        }
    }
}

/// Records, and the packets and octets they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordTotals {
    /// Data records of flows, as the collector counts them: IPFIX has one for a biflow, NetFlow one for each
    /// direction that had packets.
    pub records: u64,
    /// Packets of these flows, both directions.
    pub packets: u64,
    /// Layer 3 octets of these flows, both directions.
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

/// What left for the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Flows.
    #[serde(flatten)]
    pub flows: RecordTotals,
    /// Messages, those with templates alone included.
    pub messages: u64,
    /// Octets of these messages, their headers included, those of UDP, TCP and IP not.
    pub message_octets: u64,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.flows += other.flows;
        self.messages += other.messages;
        self.message_octets += other.message_octets;
    }
}

/// What became of the records of one output: records made = sent + Σ not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its URL, or format and path.
    #[serde(rename = "collector")]
    pub output: String,
    /// What was sent. Over UDP it may be lost on the way; over TCP, what the kernel accepted counts.
    pub sent: Sent,
    /// What it was not sent, by [`Reason::name`].
    pub not_sent: BTreeMap<&'static str, RecordTotals>,
    /// Why the output failed: nothing at all got through, or it was in a failed state at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Summary {
    /// Records not sent, whatever the reason.
    pub fn lost(&self) -> u64 {
        self.not_sent.values().map(|tally| tally.records).sum()
    }
}

/// How one output stands during the run.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its URL, or format and path.
    pub name: String,
    /// Records encoded for it or dropped before that.
    pub made: u64,
    /// Records that it took.
    pub sent: u64,
    /// Records lost, by reason.
    pub lost: [(Reason, u64); Reason::ALL.len()],
    /// Encoded bytes that wait to be written.
    pub queued_bytes: u64,
    /// Whether the last attempt to write failed.
    pub failing: bool,
    /// The last error, and when it came.
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
