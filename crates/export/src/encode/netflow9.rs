//! NetFlow v9: RFC 3954.
//!
//! ```text
//!  0               2               4               6               8
//! ├ version = 9 ───┼ count ────────┼ sysUptime, milliseconds ──────┤
//! ├ seconds since 1970 ────────────┼ sequence number ──────────────┤
//! ├ source identifier ─────────────┤                                   20 octets, then flow sets
//! ```
//!
//! Flows have one direction here, so an answered flow becomes two records. Four templates, 256 to 259: bit 0 says IPv6,
//! bit 1 ICMP. The type and code are those of the flow's first packet, so the answers of an ICMP flow are told without
//! them, by the other template. An options template (320) tells of the exporter's totals.

use ringtap_flow::{FlowRecord, IpVersion};

use super::fields::{self, Field, View};
use super::message::Message;
use super::uptime::Uptime;
use super::{Encoder, Progress, Refusal, Sealed, as_uniflows, milliseconds, ways};
use crate::Sent;
use Field::*;

const HEADER: usize = 20;

/// "The Exporter SHOULD insert some padding bytes so that the subsequent FlowSet starts at a 4-byte aligned boundary"
/// (section 5.3).
const ALIGN: usize = 4;

const TEMPLATE_SET: u16 = 0;
const OPTIONS_TEMPLATE_SET: u16 = 1;

const FIRST_TEMPLATE: u16 = 256;
const IPV6: usize = 1;
const ICMP: usize = 2;

const TEMPLATES: [&[Field]; 4] = [
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
        FirstSwitched,
        LastSwitched,
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
        FirstSwitched,
        LastSwitched,
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
        FirstSwitched,
        LastSwitched,
    ],
    // ICMP_TYPE (32) for both versions: v9 knows no other.
    &[
        SourceV6,
        DestinationV6,
        Protocol,
        IcmpV4,
        EndReason,
        Vlan,
        Packets,
        Octets,
        FirstSwitched,
        LastSwitched,
    ],
];

const LENGTHS: [usize; 4] = {
    let mut lengths = [0; 4];
    let mut at = 0;
    while at < 4 {
        lengths[at] = fields::length(TEMPLATES[at]);
        at += 1;
    }
    lengths
};

/// The exporter's totals. Scope "System" (1); TOTAL_BYTES_EXP, TOTAL_PKTS_EXP, TOTAL_FLOWS_EXP (section 8).
const TOTALS: u16 = 320;
const TOTALS_TEMPLATE: [u16; 11] = [TOTALS, 4, 12, 1, 4, 40, 8, 41, 8, 42, 8];

/// See the module.
pub struct NetFlow9 {
    source: u32,
    sequence: u32,
    uptime: Uptime,
    message: Message,
}

impl NetFlow9 {
    /// An encoder for the source `source`, whose messages have at most `limit` octets.
    pub fn new(source: u32, limit: usize) -> Self {
        let message = Message::new(HEADER, limit, ALIGN);
        Self { source, sequence: 0, uptime: Uptime::default(), message }
    }

    /// A message beside the one under way.
    fn send_alone(&mut self, mut message: Message) -> Vec<u8> {
        let bytes = self.header().seal(&mut message).to_vec();
        self.sequence = self.sequence.wrapping_add(1);
        bytes
    }

    fn header(&self) -> Header {
        let (uptime, seconds) = self.uptime.header();
        Header { uptime, seconds, sequence: self.sequence, source: self.source }
    }
}

impl Encoder for NetFlow9 {
    #[inline]
    fn add(&mut self, record: &FlowRecord) -> Result<(), Refusal> {
        let version = if record.key.version == IpVersion::V6 { IPV6 } else { 0 };
        let icmp = if fields::is_icmp(record) { ICMP } else { 0 };
        let template = |way: usize| if way == 0 { version | icmp } else { version };
        // Both directions in one message; two sets, the second of which may be another one.
        let both = LENGTHS[template(0)] + LENGTHS[template(1)] + 8;
        let set = |way| FIRST_TEMPLATE + template(way) as u16;
        if !self.message.fits(set(0), both) {
            return Err(Refusal::Full);
        }
        let (start, end) = (milliseconds(record.first_ns), milliseconds(record.last_ns));
        let (first, last) = self.uptime.place(start, end, self.message.is_empty())?;
        for way in ways(record) {
            let out = self.message.record(set(way));
            let view = View { record, way, first, last };
            TEMPLATES[template(way)].iter().for_each(|field| field.put(&view, out));
        }
        self.message.flows += as_uniflows(record);
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
        // "Incremental sequence counter of all Export Packets sent from the current Observation Domain by the
        // Exporter." (section 5.1): messages, not records.
        self.sequence = self.sequence.wrapping_add(1);
        self.message.clear();
    }

    fn announcement(&mut self) -> Vec<Vec<u8>> {
        let mut message = self.message.another();
        for (id, fields) in (FIRST_TEMPLATE..).zip(TEMPLATES) {
            let head = [id, fields.len() as u16];
            let fields = fields.iter().map(|field| field.element());
            let words = head.into_iter().chain(fields.flat_map(|one| [one.id, one.len]));
            message.record(TEMPLATE_SET).extend(words.flat_map(u16::to_be_bytes));
        }
        let words = TOTALS_TEMPLATE.into_iter().flat_map(u16::to_be_bytes);
        message.record(OPTIONS_TEMPLATE_SET).extend(words);
        vec![self.send_alone(message)]
    }

    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>> {
        let mut message = self.message.another();
        let Sent { flows, messages, message_octets } = progress.sent;
        let out = message.record(TOTALS);
        out.extend_from_slice(&self.source.to_be_bytes());
        for total in [message_octets, messages, flows.records] {
            out.extend_from_slice(&total.to_be_bytes());
        }
        vec![self.send_alone(message)]
    }

    fn restart(&mut self) {
        self.sequence = 0;
    }
}

/// What stands before the flow sets.
struct Header {
    uptime: u32,
    seconds: u32,
    sequence: u32,
    source: u32,
}

impl Header {
    fn seal<'a>(&self, message: &'a mut Message) -> &'a [u8] {
        // "The total number of records in the Export Packet, which is the sum of Options FlowSet records, Template
        // FlowSet records, and Data FlowSet records." (section 5.1)
        let count = message.records;
        let bytes = message.close();
        bytes[0..2].copy_from_slice(&9u16.to_be_bytes());
        bytes[2..4].copy_from_slice(&count.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.uptime.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.source.to_be_bytes());
        bytes
    }
}
