//! The fields of a flow: one list from which templates, records and flow keys come, so that none contradicts another.

use ringtap_flow::{FlowRecord, IpVersion};

use super::milliseconds;

/// RFC 5103: the enterprise number under which an element means the other direction.
pub(crate) const REVERSE: u32 = 29_305;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// RFC 5103, biflowDirection (element 239): the source is who initiated the flow.
const INITIATOR: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    SourceV4,
    DestinationV4,
    SourceV6,
    DestinationV6,
    SourcePort,
    DestinationPort,
    Protocol,
    TcpFlags,
    IcmpV4,
    IcmpV6,
    EndReason,
    Vlan,
    Packets,
    Octets,
    Start,
    End,
    FirstSwitched,
    LastSwitched,
    ReversePackets,
    ReverseOctets,
    ReverseTcpFlags,
    Direction,
}

use Field::*;

/// A field as a template tells of it.
pub(crate) struct Element {
    pub(crate) id: u16,
    pub(crate) len: u16,
    pub(crate) reverse: bool,
}

impl Field {
    pub(crate) const fn element(self) -> Element {
        let (id, len) = match self {
            Octets | ReverseOctets => (1, 8),
            Packets | ReversePackets => (2, 8),
            Protocol => (4, 1),
            // RFC 7011, section 6.2, allows fewer octets; these are the flags' lower eight bits.
            TcpFlags | ReverseTcpFlags => (6, 1),
            SourcePort => (7, 2),
            SourceV4 => (8, 4),
            DestinationPort => (11, 2),
            DestinationV4 => (12, 4),
            LastSwitched => (21, 4),
            FirstSwitched => (22, 4),
            SourceV6 => (27, 16),
            DestinationV6 => (28, 16),
            IcmpV4 => (32, 2),
            Vlan => (58, 2),
            EndReason => (136, 1),
            IcmpV6 => (139, 2),
            Start => (152, 8),
            End => (153, 8),
            Direction => (239, 1),
        };
        let reverse = matches!(self, ReversePackets | ReverseOctets | ReverseTcpFlags);
        Element { id, len, reverse }
    }

    /// Whether flows are told apart by it.
    pub(crate) const fn is_key(self) -> bool {
        matches!(
            self,
            SourceV4
                | DestinationV4
                | SourceV6
                | DestinationV6
                | SourcePort
                | DestinationPort
                | Protocol
        )
    }

    #[inline]
    pub(crate) fn put(self, view: &View<'_>, out: &mut Vec<u8>) {
        let View { record, way, first, last } = *view;
        let key = &record.key;
        let (source, destination) =
            if way == 0 { (&key.src, &key.dst) } else { (&key.dst, &key.src) };
        let ports =
            if way == 0 { [key.src_port, key.dst_port] } else { [key.dst_port, key.src_port] };
        let back = 1 - way;
        match self {
            SourceV4 => out.extend_from_slice(&source[..4]),
            DestinationV4 => out.extend_from_slice(&destination[..4]),
            SourceV6 => out.extend_from_slice(source),
            DestinationV6 => out.extend_from_slice(destination),
            SourcePort => out.extend_from_slice(&ports[0].to_be_bytes()),
            DestinationPort => out.extend_from_slice(&ports[1].to_be_bytes()),
            Protocol => out.push(key.protocol),
            TcpFlags => out.push(record.tcp_flags[way]),
            IcmpV4 | IcmpV6 => out.extend_from_slice(&record.icmp_type_code.to_be_bytes()),
            EndReason => out.push(record.end_reason as u8),
            Vlan => out.extend_from_slice(&record.path.vlans[0].to_be_bytes()),
            Packets => out.extend_from_slice(&record.packets[way].to_be_bytes()),
            Octets => out.extend_from_slice(&record.octets[way].to_be_bytes()),
            Start => out.extend_from_slice(&milliseconds(record.first_ns).to_be_bytes()),
            End => out.extend_from_slice(&milliseconds(record.last_ns).to_be_bytes()),
            FirstSwitched => out.extend_from_slice(&first.to_be_bytes()),
            LastSwitched => out.extend_from_slice(&last.to_be_bytes()),
            ReversePackets => out.extend_from_slice(&record.packets[back].to_be_bytes()),
            ReverseOctets => out.extend_from_slice(&record.octets[back].to_be_bytes()),
            ReverseTcpFlags => out.push(record.tcp_flags[back]),
            Direction => out.push(INITIATOR),
        }
    }
}

/// A flow record as seen in one direction.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) record: &'a FlowRecord,
    /// 0 from the initiator, 1 to it.
    pub(crate) way: usize,
    /// Milliseconds from the start of the exporter's clock to the first and the last packet.
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// Octets of a record of these fields.
pub(crate) const fn length(fields: &[Field]) -> usize {
    let (mut octets, mut at) = (0, 0);
    while at < fields.len() {
        octets += fields[at].element().len as usize;
        at += 1;
    }
    octets
}

/// Whether the record has an ICMP type and code of its own IP version.
pub(crate) fn is_icmp(record: &FlowRecord) -> bool {
    let own = match record.key.version {
        IpVersion::V4 => ICMP,
        IpVersion::V6 => ICMPV6,
    };
    record.key.protocol == own
}

/// flowKeyIndicator (element 173) of a template: bit n is set if field n is part of the key.
pub(crate) fn keys(fields: &[Field]) -> u64 {
    fields.iter().enumerate().filter(|(_, field)| field.is_key()).map(|(at, _)| 1 << at).sum()
}
