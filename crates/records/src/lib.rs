//! Flow records as text: one line a record, as JSON or as CSV.
//!
//! Fields carry the names of the IPFIX Information Elements (RFC 7012 and its IANA registry), those
//! of the answering direction the prefix `reverse` (RFC 5103). Times are whole milliseconds since
//! 1970, rounded down; octets are those of layer 3; numbers are decimal.
//!
//! | JSON name | CSV column | when |
//! |---|---|---|
//! | flowStartMilliseconds, flowEndMilliseconds | the same | always |
//! | sourceIPv4Address or sourceIPv6Address | sourceIPAddress | always |
//! | destinationIPv4Address or destinationIPv6Address | destinationIPAddress | always |
//! | sourceTransportPort, destinationTransportPort | the same | TCP, UDP, UDP-Lite, SCTP, DCCP |
//! | protocolIdentifier | the same | always |
//! | octetDeltaCount, packetDeltaCount | the same | always |
//! | reverseOctetDeltaCount, reversePacketDeltaCount | the same | always |
//! | tcpControlBits, reverseTcpControlBits | the same | TCP |
//! | icmpTypeCodeIPv4 or icmpTypeCodeIPv6 | icmpTypeCode | ICMP, ICMPv6 |
//! | vlanId | the same | tagged |
//! | flowEndReason | the same | always |
//! | communityId | the same | always |
//!
//! What a flow does not have is absent in JSON and empty in CSV. CSV has the same columns for both
//! IP versions, so three of its names stand for a pair of Information Elements. Ports that are not
//! known, as in a flow of later fragments alone, are 0.
//!
//! Invariants: a record is written as one whole line or reported as an error; no record allocates.

mod address;
mod community_id;
mod csv;
mod json;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::str::FromStr;

pub use community_id::CommunityId;
pub use csv::Csv;
pub use json::JsonLines;

use crate::FlowRecord;

/// Writes flow records somewhere.
pub trait RecordWriter: Send {
    /// Takes one record. It may be held back for a while.
    ///
    /// # Errors
    /// What the destination says, of this record or of one held back. This record is then not
    /// written; what was held back still is, if the destination recovers.
    fn write(&mut self, record: &FlowRecord) -> io::Result<()>;

    /// Passes on everything held back. Writing may go on afterwards, so a live run calls this
    /// whenever its readers shall be up to date.
    ///
    /// # Errors
    /// What the destination says.
    fn finish(&mut self) -> io::Result<()>;
}

/// A text format, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// [`JsonLines`].
    Json,
    /// [`Csv`].
    Csv,
}

/// No text format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown record format {0:?}: json and csv are written")]
pub struct UnknownFormat(pub String);

impl Format {
    /// A writer of this format.
    pub fn writer(self, out: Box<dyn Write + Send>) -> Box<dyn RecordWriter> {
        match self {
            Self::Json => Box::new(JsonLines::new(out)),
            Self::Csv => Box::new(Csv::new(out)),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Json => "json",
            Self::Csv => "csv",
        })
    }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Enough that a system call carries some hundred records.
const HELD_BACK: usize = 64 << 10;

/// Whole lines on their way out. The line is laid out in one buffer and handed on at once, so the
/// destination's errors never leave half a line behind a whole one.
struct Lines<W: Write> {
    out: BufWriter<W>,
    line: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self { out: BufWriter::with_capacity(HELD_BACK, out), line: Vec::with_capacity(1 << 10) }
    }

    #[inline]
    fn write(&mut self, lay_out: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.line.clear();
        lay_out(&mut self.line);
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }
}

const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

#[inline]
fn push_number(line: &mut Vec<u8>, number: impl itoa::Integer) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
