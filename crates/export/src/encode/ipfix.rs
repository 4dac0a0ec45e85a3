//! IPFIX: RFC 7011 with the elements of RFC 7012's registry, biflows by RFC 5103.
//!
//! ```text
//!  0               2               4               6               8
//! ├ version = 10 ──┼ length ───────┼ export time, seconds ─────────┤
//! ├ sequence number ───────────────┼ observation domain ───────────┤   16 octets, then sets
//! ```
//!
//! Eight templates, 256 to 263: bit 0 says IPv6, bit 1 ICMP, bit 2 that the flow was answered. An answered flow is one
//! record with reverse elements, of which RFC 5103, section 6.1, makes the enterprise number 29305; one that was never
//! answered has none of them. Three options templates: statistics and reliability of the exporting process (RFC 7011,
//! sections 4.1 and 4.3) and flow keys (4.4).

use ringtap_flow::{FlowRecord, IpVersion};

use super::fields::{self, Field, REVERSE, View};
use super::message::Message;
use super::{Encoder, Progress, Refusal, Sealed, as_biflow, milliseconds};
use Field::*;

const HEADER: usize = 16;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;

/// "Template IDs of Data Sets are numbered from 256 to 65535" (section 3.4.1).
const FIRST_TEMPLATE: u16 = 256;
const IPV6: usize = 1;
const ICMP: usize = 2;
const ANSWERED: usize = 4;

const TEMPLATES: [&[Field]; 8] = [
    &[
        SourceV4,
        DestinationV4,
        SourcePort,
        DestinationPort,
        Protocol,
        TcpFlags,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
    ],
    &[
        SourceV6,
        DestinationV6,
        SourcePort,
        DestinationPort,
        Protocol,
        TcpFlags,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
    ],
    &[SourceV4, DestinationV4, Protocol, IcmpV4, EndReason, Vlan, Packets, Octets, Start, End],
    &[SourceV6, DestinationV6, Protocol, IcmpV6, EndReason, Vlan, Packets, Octets, Start, End],
    &[
        SourceV4,
        DestinationV4,
        SourcePort,
        DestinationPort,
        Protocol,
        TcpFlags,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
        ReversePackets,
        ReverseOctets,
        ReverseTcpFlags,
        Direction,
    ],
    &[
        SourceV6,
        DestinationV6,
        SourcePort,
        DestinationPort,
        Protocol,
        TcpFlags,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
        ReversePackets,
        ReverseOctets,
        ReverseTcpFlags,
        Direction,
    ],
    &[
        SourceV4,
        DestinationV4,
        Protocol,
        IcmpV4,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
        ReversePackets,
        ReverseOctets,
        Direction,
    ],
    &[
        SourceV6,
        DestinationV6,
        Protocol,
        IcmpV6,
        EndReason,
        Vlan,
        Packets,
        Octets,
        Start,
        End,
        ReversePackets,
        ReverseOctets,
        Direction,
    ],
];

const LENGTHS: [usize; 8] = {
    let mut lengths = [0; 8];
    let mut at = 0;
    while at < 8 {
        lengths[at] = fields::length(TEMPLATES[at]);
        at += 1;
    }
    lengths
};

/// An options template: scope first, then what is said of it.
struct Options {
    id: u16,
    scope: (u16, u16),
    elements: &'static [(u16, u16)],
}

/// Section 4.1: observationDomainId; messages, flow records and octets exported.
const STATISTICS: Options =
    Options { id: 320, scope: (149, 4), elements: &[(41, 8), (42, 8), (40, 8)] };
/// Section 4.3: exportingProcessId; flows, packets and octets not sent; when the first and the last.
const RELIABILITY: Options = Options {
    id: 321,
    scope: (144, 4),
    elements: &[(166, 8), (167, 8), (168, 8), (152, 8), (153, 8)],
};
/// Section 4.4: templateId; flowKeyIndicator.
const FLOW_KEYS: Options = Options { id: 322, scope: (145, 2), elements: &[(173, 8)] };

/// See the module.
pub struct Ipfix {
    domain: u32,
    process: u32,
    sequence: u32,
    latest_ms: u64,
    /// Export time at which loss was first and last noticed.
    lossy_ms: Option<(u64, u64)>,
    lost: u64,
    message: Message,
}

impl Ipfix {
    /// An encoder for the observation domain `domain`, whose messages have at most `limit` octets. `process` tells the
    /// exporting processes of one machine apart.
    ///
    /// ```
    /// use ringtap_export::encode::{Encoder, Ipfix};
    ///
    /// let mut encoder = Ipfix::new(7, 1, 1_400);
    /// let templates = encoder.announcement();
    /// assert_eq!(templates[0][..2], [0, 10], "version 10");
    /// assert!(encoder.seal().is_none(), "no record, no message");
    /// ```
    pub fn new(domain: u32, process: u32, limit: usize) -> Self {
        Self {
            domain,
            process,
            sequence: 0,
            latest_ms: 0,
            lossy_ms: None,
            lost: 0,
            message: Message::new(HEADER, limit, 1),
        }
    }

    fn header(&self) -> Header {
        // It never goes back, so templates are never younger than their data (section 8.2).
        let time = u32::try_from(self.latest_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        Header { time, sequence: self.sequence, domain: self.domain }
    }

    /// Messages with these records, each with the set it belongs to.
    fn pack(&self, records: impl IntoIterator<Item = (u16, Vec<u8>)>) -> Vec<Vec<u8>> {
        let (mut message, header) = (self.message.another(), self.header());
        let mut finished = Vec::new();
        for (set, record) in records {
            if !message.fits(set, record.len()) {
                finished.push(header.seal(&mut message).to_vec());
                message.clear();
            }
            message.record(set).extend_from_slice(&record);
        }
        finished.push(header.seal(&mut message).to_vec());
        finished
    }

    /// One message with these data records: options, few enough to fit. They are Data Records, too, so they count.
    fn pack_data(&mut self, records: Vec<(u16, Vec<u8>)>) -> Vec<u8> {
        let count = records.len() as u32;
        let message = self.pack(records).concat();
        self.sequence = self.sequence.wrapping_add(count);
        message
    }
}

impl Encoder for Ipfix {
    #[inline]
    fn add(&mut self, record: &FlowRecord) -> Result<(), Refusal> {
        let version = if record.key.version == IpVersion::V6 { IPV6 } else { 0 };
        let icmp = if fields::is_icmp(record) { ICMP } else { 0 };
        let answered = if record.packets[1] > 0 { ANSWERED } else { 0 };
        let template = version | icmp | answered;
        let set = FIRST_TEMPLATE + template as u16;
        if !self.message.fits(set, LENGTHS[template]) {
            return Err(Refusal::Full);
        }
        let out = self.message.record(set);
        let view = View { record, way: 0, first: 0, last: 0 };
        TEMPLATES[template].iter().for_each(|field| field.put(&view, out));
        self.message.flows += as_biflow(record);
        self.latest_ms = self.latest_ms.max(milliseconds(record.last_ns));
        Ok(())
    }

    fn seal(&mut self) -> Option<Sealed<'_>> {
        if self.message.is_empty() {
            return None;
        }
        let (header, flows) = (self.header(), self.message.flows);
        Some(Sealed { bytes: header.seal(&mut self.message), flows })
    }

    fn done(&mut self) {
        self.sequence = self.sequence.wrapping_add(u32::from(self.message.records));
        self.message.clear();
    }

    fn announcement(&mut self) -> Vec<Vec<u8>> {
        let numbered = || (FIRST_TEMPLATE..).zip(TEMPLATES);
        let templates = numbered().map(|(id, fields)| (TEMPLATE_SET, template(id, fields)));
        let options = [STATISTICS, RELIABILITY, FLOW_KEYS];
        let options = options.iter().map(|one| (OPTIONS_TEMPLATE_SET, one.template()));
        // Messages without Data Records: the sequence number stands still.
        let mut messages = self.pack(templates.chain(options));
        let keys = numbered()
            .map(|(id, fields)| (FLOW_KEYS.id, option(&id.to_be_bytes(), &[fields::keys(fields)])));
        messages.push(self.pack_data(keys.collect()));
        messages
    }

    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>> {
        let Progress { sent, not_sent } = progress;
        if not_sent.records > self.lost {
            self.lost = not_sent.records;
            let (first, _) = self.lossy_ms.unwrap_or((self.latest_ms, 0));
            self.lossy_ms = Some((first, self.latest_ms));
        }
        let (first, last) = self.lossy_ms.unwrap_or_default();
        let lost = [not_sent.records, not_sent.packets, not_sent.octets, first, last];
        let exported = [sent.messages, sent.flows.records, sent.message_octets];
        let data = vec![
            (STATISTICS.id, option(&self.domain.to_be_bytes(), &exported)),
            (RELIABILITY.id, option(&self.process.to_be_bytes(), &lost)),
        ];
        vec![self.pack_data(data)]
    }

    fn restart(&mut self) {
        // "Each SCTP Stream counts sequence numbers separately, while all messages in a TCP connection or UDP session
        // are considered to be part of the same stream." (section 3.1)
        self.sequence = 0;
    }
}

/// What stands before the sets.
struct Header {
    time: u32,
    sequence: u32,
    domain: u32,
}

impl Header {
    fn seal<'a>(&self, message: &'a mut Message) -> &'a [u8] {
        let bytes = message.close();
        let length = bytes.len() as u16;
        bytes[0..2].copy_from_slice(&10u16.to_be_bytes());
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        // "Time at which the IPFIX Message Header leaves the Exporter, expressed in seconds since the UNIX epoch"
        // (section 3.1).
        bytes[4..8].copy_from_slice(&self.time.to_be_bytes());
        // "Incremental sequence counter modulo 2^32 of all IPFIX Data Records sent in the current stream from the
        // current Observation Domain by the Exporting Process. […] Template and Options Template Records do not
        // increase the Sequence Number." (section 3.1)
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.domain.to_be_bytes());
        bytes
    }
}

impl Options {
    fn template(&self) -> Vec<u8> {
        let fields = self.elements.len() as u16 + 1;
        let head = [self.id, fields, 1].into_iter();
        let all = [self.scope].into_iter().chain(self.elements.iter().copied());
        head.chain(all.flat_map(|(id, len)| [id, len])).flat_map(u16::to_be_bytes).collect()
    }
}

fn template(id: u16, fields: &[Field]) -> Vec<u8> {
    let mut out: Vec<u8> =
        [id, fields.len() as u16].into_iter().flat_map(u16::to_be_bytes).collect();
    for field in fields {
        let element = field.element();
        // "E: Enterprise bit" (section 3.2): with it an enterprise number follows.
        let id = if element.reverse { element.id | 0x8000 } else { element.id };
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&element.len.to_be_bytes());
        if element.reverse {
            out.extend_from_slice(&REVERSE.to_be_bytes());
        }
    }
    out
}

fn option(scope: &[u8], numbers: &[u64]) -> Vec<u8> {
    scope.iter().copied().chain(numbers.iter().flat_map(|number| number.to_be_bytes())).collect()
}
