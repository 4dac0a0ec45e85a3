//! Encoders: turn flow records into messages. One file for each protocol.
//!
//! ```text
//! add(record) ─▶ │ header │ set: record record │ set: record │ …   ─▶ seal() ─▶ sent ─▶ done()
//! announcement(), missing(), statistics() ─▶ separate messages
//! ```
//!
//! An encoder fills one message at a time. A record that does not fit is rejected with [`Refusal::Full`]; the caller
//! sends the message from [`seal`](Encoder::seal), calls [`done`](Encoder::done) and adds the record again. Sealing
//! twice gives the same bytes; after a [`restart`](Encoder::restart) the same records with the first sequence number of
//! the new connection.
//!
//! Invariants: encoding is deterministic, so equal records give equal bytes. No clock: the time of a message is the
//! latest packet time so far, rounded up to a second. No message is longer than the limit. A record is completely in
//! one message.

mod facts;
mod fields;
mod ipfix;
mod lines;
mod lists;
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

/// Most octets of a message over UDP: with the headers of IPv6 and UDP it is below Ethernet's 1,500, with space for a
/// tunnel's headers.
pub const UDP_LIMIT: usize = 1_400;

/// Most octets of a message over streams and in files. RFC 7011, section 10: "The IPFIX Message Header 16-bit Length
/// field limits the length of an IPFIX Message to 65535 octets, including the header."
pub const STREAM_LIMIT: usize = 16 << 10;

/// The smallest accepted limit: every template and every record fits into it, facts from payloads and lists if they are cut.
pub const LEAST_LIMIT: usize = 512;

/// Most octets of a record, with the headers of its message and set.
pub(crate) const RECORD_MAX: usize = LEAST_LIMIT + facts::OCTETS_MAX;

/// Builds messages of one protocol.
pub trait Encoder: Send {
    /// Adds a record to the message, and its counts to `flows`.
    ///
    /// # Errors
    /// [`Refusal`]; the message is unchanged.
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal>;

    /// The complete message; `None` if it has no record.
    fn seal(&mut self) -> Option<Sealed<'_>>;

    /// Starts the next message; the current one was sent or dropped.
    fn done(&mut self);

    /// Messages that the collector needs before all others: templates, and which of their fields are the flow key.
    /// Empty for protocols without them.
    fn announcement(&mut self) -> Vec<Vec<u8>>;

    /// If messages are written one after another in lent memory: octets that they need there beside their own.
    fn room_in_place(&self) -> Option<usize> {
        None
    }

    /// Starts the next message in this memory, where others follow: room for all that come until it is given back, and
    /// [`room_in_place`](Self::room_in_place) octets. Returns the memory of those before.
    fn lend(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// Adds the templates that the sealed message needs, unless the protocol always announces all of them.
    fn note_templates(&self, _needed: &mut Templates) {}

    /// Messages with those of these templates that were not announced yet, `copies` times. They must be sent before the
    /// messages of flow records that need them. From then on, they are part of the announcement.
    fn missing(&mut self, _needed: &Templates, _copies: usize) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Messages with export statistics. Empty for protocols without them.
    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>>;

    /// Messages that withdraw the templates of flows at the end of a connection. Empty for protocols without them.
    fn farewell(&mut self) -> Vec<Vec<u8>>;

    /// Starts a new connection or file: sequence numbers begin again.
    fn restart(&mut self);

    /// Octets of the current message.
    fn octets(&self) -> usize;

    /// Updates the encoder with the times of a message from another encoder of the same protocol.
    fn learn(&mut self, message: &[u8]);

    /// Makes a message of another encoder, with these flows, the next one of this encoder: its header gets the next
    /// sequence number and, in IPFIX, a time not before that of earlier messages. In NetFlow the time does not change,
    /// because the times of its records are relative to it.
    fn stamp(&mut self, message: &mut [u8], flows: RecordTotals);
}

/// A set of templates: for each layout of facts, a bit for each template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Templates([u128; facts::LAYOUT_COUNT]);

impl Templates {
    /// The templates that are not in the other set.
    fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|layout| self.0[layout] & !other.0[layout]))
    }
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

/// A complete message.
#[derive(Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its flows.
    pub flows: RecordTotals,
}

/// Why a record was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message is full; the record fits into the next one.
    Full,
    /// The protocol cannot express it.
    Unfit(Reason),
}

/// Export statistics, for messages that contain them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records sent so far.
    pub sent: Sent,
    /// Records not sent so far.
    pub not_sent: RecordTotals,
    /// Statistics of the metering, if there are any.
    pub metered: Option<Metered>,
}

/// The directions with packets, at least one: protocols with one-direction flows export each as a record.
pub(crate) fn directions(record: &FlowRecord) -> impl Iterator<Item = usize> + Clone {
    let [there, back] = record.packets;
    [(0, there > 0 || back == 0), (1, back > 0)]
        .into_iter()
        .filter_map(|(direction, is)| is.then_some(direction))
}

/// The counts of a record that is exported as `records` records.
fn counts_of(record: &FlowRecord, records: u64) -> RecordTotals {
    RecordTotals {
        records,
        packets: record.packets[0].saturating_add(record.packets[1]),
        octets: record.octets[0].wrapping_add(record.octets[1]),
    }
}

/// The records of a flow in IPFIX.
pub(crate) fn as_biflow(record: &FlowRecord) -> RecordTotals {
    counts_of(record, 1)
}

/// The records of a flow in NetFlow v9.
pub(crate) fn as_uniflows(record: &FlowRecord) -> RecordTotals {
    counts_of(record, directions(record).count() as u64)
}

pub(crate) use netflow5::as_small_uniflows;
