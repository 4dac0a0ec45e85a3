//! From flow records to messages, one file a protocol.
//!
//! ```text
//! add(record) ─▶ │ header │ set: record record │ set: record │ …   ─▶ seal() ─▶ sent ─▶ done()
//! announcement(), statistics() ─▶ messages of their own
//! ```
//!
//! One message is under way. A record that does not fit is refused as [`Refusal::Full`]; the caller sends what
//! [`seal`](Encoder::seal) shows, says [`done`](Encoder::done) and adds it again. Sealing twice gives the same bytes,
//! and after a [`restart`](Encoder::restart) the same records with the sequence number of the new connection.
//!
//! Invariants: pure, so the same records give the same bytes. No clock: the time of a message is the latest packet
//! time so far, rounded up to a second. No message is longer than the limit. A record is in one message, whole.

mod fields;
mod ipfix;
mod lines;
mod message;
mod netflow5;
mod netflow9;
mod options;
mod template;
mod uptime;

use ringtap_flow::FlowRecord;

use crate::{Metered, Reason, RecordTotals, Sent};

pub use ipfix::Ipfix;
pub(crate) use lines::Lines;
pub use netflow5::NetFlow5;
pub use netflow9::NetFlow9;

/// Octets of a message on UDP: with the headers of IPv6 and UDP it stays below Ethernet's 1,500, with some to spare
/// for a tunnel.
pub const UDP_LIMIT: usize = 1_400;

/// Octets of a message where no packet bounds it. RFC 7011, section 10: "The IPFIX Message Header 16-bit Length field
/// limits the length of an IPFIX Message to 65535 octets, including the header."
pub const STREAM_LIMIT: usize = 16 << 10;

/// The smallest limit that is obeyed: each template and each record fits in it.
pub const LEAST_LIMIT: usize = 512;

/// Builds messages of one protocol.
pub trait Encoder: Send {
    /// Puts a record into the message under way, and adds what it counts for to `flows`.
    ///
    /// # Errors
    /// [`Refusal`]; the message is as it was.
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal>;

    /// The message under way, complete; `None` if it holds no record.
    fn seal(&mut self) -> Option<Sealed<'_>>;

    /// The message under way is sent or given up; the next one begins.
    fn done(&mut self);

    /// Whole messages that must reach the collector before any other: templates, and which of their fields are the
    /// flow key. None where the protocol has nothing of the kind.
    fn announcement(&mut self) -> Vec<Vec<u8>>;

    /// Whole messages that say how far the export has come. None where the protocol has nothing of the kind.
    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>>;

    /// Whole messages that take back the templates of flows at the end of a connection. None where the protocol has
    /// nothing of the kind.
    fn farewell(&mut self) -> Vec<Vec<u8>>;

    /// A new connection or file: sequence numbers begin anew.
    fn restart(&mut self);

    /// Octets of the message under way.
    fn octets(&self) -> usize;

    /// Takes over the times of a message that another encoder of the same protocol made, as if its records were here.
    fn learn(&mut self, message: &[u8]);

    /// Makes such a message, which stands for these flows, the next one of this encoder: its header gets the sequence
    /// number that is next and, in IPFIX, no earlier time than the messages before it. In NetFlow the time stays, for
    /// those of its records count from it.
    fn stamp(&mut self, message: &mut [u8], flows: RecordTotals);
}

/// A big-endian number of 32 bits in a header.
fn word(message: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&message[at..at + 4]);
    u32::from_be_bytes(bytes)
}

fn put_word(message: &mut [u8], at: usize, word: u32) {
    message[at..at + 4].copy_from_slice(&word.to_be_bytes());
}

/// A message ready to go.
#[derive(Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// The flows in it.
    pub flows: RecordTotals,
}

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not in this message; it fits in the next one.
    Full,
    /// The protocol cannot express it.
    Unfit(Reason),
}

/// How far the export has come, for the statistics that are part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Sent so far.
    pub sent: Sent,
    /// Not sent so far.
    pub not_sent: RecordTotals,
    /// What the metering says of itself, if it says anything.
    pub metered: Option<Metered>,
}

/// Directions in which the flow had packets, at least one: each is a record of its own where flows have one direction.
fn ways(record: &FlowRecord) -> impl Iterator<Item = usize> + Clone {
    let [there, back] = record.packets;
    [(0, there > 0 || back == 0), (1, back > 0)]
        .into_iter()
        .filter_map(|(way, is)| is.then_some(way))
}

/// What a record stands for when it is exported as `records` ones.
fn tally(record: &FlowRecord, records: u64) -> RecordTotals {
    RecordTotals {
        records,
        packets: record.packets[0].saturating_add(record.packets[1]),
        octets: record.octets[0].wrapping_add(record.octets[1]),
    }
}

/// The records that IPFIX makes of a flow record.
pub(crate) fn as_biflow(record: &FlowRecord) -> RecordTotals {
    tally(record, 1)
}

/// The records that NetFlow v9 makes of a flow record.
pub(crate) fn as_uniflows(record: &FlowRecord) -> RecordTotals {
    tally(record, ways(record).count() as u64)
}

pub(crate) use netflow5::as_small_uniflows;

const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}
