//! The protocols of collectors.

use ringtap_flow::FlowRecord;

use crate::RecordTotals;
use crate::encode::{as_biflow, as_small_uniflows, as_uniflows};
use crate::formats::Format;

/// The default port of IPFIX collectors (RFC 7011, section 10.1).
const IPFIX_PORT: u16 = 4739;

/// The default port of IPFIX collectors for TLS (same section).
const IPFIX_TLS_PORT: u16 = 4740;

/// The protocol of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 7011, biflows by RFC 5103.
    Ipfix,
    /// RFC 3954.
    NetFlow9,
    /// Cisco's format.
    NetFlow5,
    /// Lines of a text format.
    Lines(Format),
}

/// Name, protocol, whether it is used over UDP, and the ports of the plain and the encrypted service.
const PROTOCOLS: [(&str, Protocol, bool, [Option<u16>; 2]); 3] = [
    ("ipfix", Protocol::Ipfix, true, [Some(IPFIX_PORT), Some(IPFIX_TLS_PORT)]),
    ("netflow9", Protocol::NetFlow9, true, [None; 2]),
    ("netflow5", Protocol::NetFlow5, true, [None; 2]),
];

impl Protocol {
    /// The counts of a flow record in this protocol.
    pub fn counts_of(self, record: &FlowRecord) -> RecordTotals {
        match self {
            Self::Ipfix => as_biflow(record),
            Self::NetFlow9 => as_uniflows(record),
            Self::NetFlow5 => as_small_uniflows(record),
            Self::Lines(_) => as_biflow(record),
        }
    }

    /// The protocol with this name, whether it is used over UDP, and its ports. Lines need a stream, and a format
    /// without a tail, because a stream can end at any time.
    pub(crate) fn named(name: &str) -> Option<(Self, bool, [Option<u16>; 2])> {
        let known = PROTOCOLS.iter().find(|(known, ..)| *known == name);
        let lines = || {
            let format: Format = name.parse().ok()?;
            let stream = format.text().is_some_and(|format| format.tail.is_none());
            stream.then_some((Self::Lines(format), false, [None; 2]))
        };
        known.map(|&(_, protocol, udp, ports)| (protocol, udp, ports)).or_else(lines)
    }

    /// Returns true if the protocol has messages with the exporter's counts.
    pub const fn has_statistics(self) -> bool {
        matches!(self, Self::Ipfix | Self::NetFlow9)
    }

    /// Returns true if the protocol is used over connections.
    pub(crate) fn over_streams(self) -> bool {
        matches!(self, Self::Ipfix | Self::Lines(_))
    }
}
