//! The fields of a flow: their description in templates, and their encoding.

use ringtap_flow::{FlowRecord, Initiator, IpVersion, LABEL_MAX, Tunnel, TunnelKind};

use crate::formats::lines::milliseconds;

/// RFC 5103: the enterprise number of elements for the reverse direction.
pub(crate) const REVERSE: u32 = 29_305;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// A field, in the direction of a [`View`].
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
    Packets,
    Octets,
    Tos,
    MinTtl,
    MaxTtl,
    MinLength,
    MaxLength,
    Start,
    End,
    FirstSwitched,
    LastSwitched,
    Direction,
    SourceMac,
    DestinationMac,
    Vlan,
    Dot1qVlan,
    CustomerVlan,
    TopLabel,
    OuterSourceV4,
    OuterDestinationV4,
    OuterSourceV6,
    OuterDestinationV6,
    OuterProtocol,
    Segment,
    GreKey,
    GtpTeid,
    Ingress,
    ApplicationName,
}

use Field::*;

/// The description of a field in a template.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    /// 0 for the elements of IANA's registry.
    pub(crate) enterprise: u32,
    pub(crate) id: u16,
    pub(crate) len: u16,
}

impl Element {
    /// Octets of its field specifier.
    pub(crate) const fn spec_len(self) -> usize {
        if self.enterprise == 0 { 4 } else { 8 }
    }

    /// Appends its field specifier (RFC 7011, section 3.2): "E: Enterprise bit"; with it an enterprise number follows.
    pub(crate) fn specify(self, out: &mut Vec<u8>) {
        let bit = if self.enterprise == 0 { 0 } else { 0x8000 };
        out.extend_from_slice(&(self.id | bit).to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
        if self.enterprise != 0 {
            out.extend_from_slice(&self.enterprise.to_be_bytes());
        }
    }
}

impl Field {
    pub(crate) const fn element(self) -> Element {
        let (id, len) = match self {
            Octets => (1, 8),
            Packets => (2, 8),
            Protocol | OuterProtocol => (4, 1),
            Tos => (5, 1),
            // RFC 7011, section 6.2, allows fewer octets; these are the lower eight flags.
            TcpFlags => (6, 1),
            SourcePort => (7, 2),
            SourceV4 | OuterSourceV4 => (8, 4),
            // INPUT_SNMP of NetFlow v9.
            Ingress => (10, 4),
            DestinationPort => (11, 2),
            DestinationV4 | OuterDestinationV4 => (12, 4),
            LastSwitched => (21, 4),
            FirstSwitched => (22, 4),
            // Fewer octets again: the length of an IP packet above 65,535 is exported as 65,535.
            MinLength => (25, 2),
            MaxLength => (26, 2),
            SourceV6 | OuterSourceV6 => (27, 16),
            DestinationV6 | OuterDestinationV6 => (28, 16),
            IcmpV4 => (32, 2),
            MinTtl => (52, 1),
            MaxTtl => (53, 1),
            SourceMac => (56, 6),
            Vlan => (58, 2),
            TopLabel => (70, 3),
            DestinationMac => (80, 6),
            ApplicationName => (96, LABEL_MAX as u16),
            EndReason => (136, 1),
            IcmpV6 => (139, 2),
            Start => (152, 8),
            End => (153, 8),
            Direction => (239, 1),
            Dot1qVlan => (243, 2),
            CustomerVlan => (245, 2),
            GreKey => (296, 4),
            Segment => (351, 8),
            GtpTeid => (507, 4),
        };
        Element { enterprise: 0, id, len }
    }

    /// Returns true if the field is part of the flow key; for VLAN tags if `vlans` is true.
    pub(crate) const fn is_key(self, vlans: bool) -> bool {
        match self {
            SourceV4 | DestinationV4 | SourceV6 | DestinationV6 => true,
            SourcePort | DestinationPort | Protocol => true,
            Dot1qVlan | CustomerVlan => vlans,
            _ => false,
        }
    }

    #[inline(always)]
    pub(crate) fn put<const DIRECTION: usize>(self, view: &View<'_>, out: &mut Out<'_>) {
        let View { record, first, last, .. } = *view;
        let (key, path) = (&record.key, &record.path);
        let (source, destination) =
            if DIRECTION == 0 { (&key.src, &key.dst) } else { (&key.dst, &key.src) };
        let ports = if DIRECTION == 0 {
            [key.src_port, key.dst_port]
        } else {
            [key.dst_port, key.src_port]
        };
        match self {
            SourceV4 => out.put(first_four(source)),
            DestinationV4 => out.put(first_four(destination)),
            SourceV6 => out.put(*source),
            DestinationV6 => out.put(*destination),
            SourcePort => out.put(ports[0].to_be_bytes()),
            DestinationPort => out.put(ports[1].to_be_bytes()),
            Protocol => out.put([key.protocol]),
            TcpFlags => out.put([record.tcp_flags[DIRECTION]]),
            IcmpV4 | IcmpV6 => out.put(record.icmp_type_code.to_be_bytes()),
            EndReason => out.put([record.end_reason as u8]),
            Packets => out.put(record.packets[DIRECTION].to_be_bytes()),
            Octets => out.put(record.octets[DIRECTION].to_be_bytes()),
            Tos => out.put([record.tos[DIRECTION]]),
            MinTtl => out.put([record.ttl[DIRECTION][0]]),
            MaxTtl => out.put([record.ttl[DIRECTION][1]]),
            MinLength => out.put(record.ip_len[DIRECTION][0].to_be_bytes()),
            MaxLength => out.put(record.ip_len[DIRECTION][1].to_be_bytes()),
            Start => out.put(milliseconds(record.first_ns).to_be_bytes()),
            End => out.put(milliseconds(record.last_ns).to_be_bytes()),
            FirstSwitched => out.put(first.to_be_bytes()),
            LastSwitched => out.put(last.to_be_bytes()),
            Direction => out.put([biflow_direction(record.initiator)]),
            SourceMac => out.put(path.macs[0]),
            DestinationMac => out.put(path.macs[1]),
            Vlan | Dot1qVlan => out.put(path.vlans[0].to_be_bytes()),
            CustomerVlan => out.put(path.vlans[1].to_be_bytes()),
            TopLabel => out.put(label(path.mpls_label)),
            OuterSourceV4 => out.put(first_four(&outer(record).src)),
            OuterDestinationV4 => out.put(first_four(&outer(record).dst)),
            OuterSourceV6 => out.put(outer(record).src),
            OuterDestinationV6 => out.put(outer(record).dst),
            OuterProtocol => out.put([outer_protocol(outer(record).kind)]),
            Segment => out.put(segment(&outer(record)).to_be_bytes()),
            GreKey => out.put(id_of(record, TunnelKind::Gre)),
            GtpTeid => out.put(id_of(record, TunnelKind::GtpU)),
            Ingress => out.put(ingress(record, DIRECTION).to_be_bytes()),
            ApplicationName => out.put(*application(record)),
        }
    }
}

/// A flow record seen in one direction.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) record: &'a FlowRecord,
    /// 0 from the initiator, 1 to it.
    pub(crate) direction: usize,
    /// Milliseconds from the start of the exporter's clock to the first and the last packet.
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// The bytes of a record, filled from the left.
pub(crate) struct Out<'a>(pub(crate) &'a mut [u8]);

impl Out<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, octets: [u8; N]) {
        // The record's length is the sum of its fields' lengths.
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() {
            *place = octets;
            self.0 = rest;
        }
    }
}

/// Returns true if the record has an ICMP type and code of its IP version.
pub(crate) fn is_icmp(record: &FlowRecord) -> bool {
    let own = match record.key.version {
        IpVersion::V4 => ICMP,
        IpVersion::V6 => ICMPV6,
    };
    record.key.protocol == own
}

/// The receiving interface of this direction, if it is known. Only the interface of the flow's first packet is known,
/// so only one direction has it: the answering one if the key was reversed. Otherwise 0.
pub(crate) fn ingress(record: &FlowRecord, direction: usize) -> u32 {
    let first = usize::from(record.initiator == Initiator::SynAck);
    if direction == first { record.path.ingress } else { 0 }
}

/// The label of the application, and zeros behind it. A reference: other groups would pay for a copy.
#[inline(always)]
fn application(record: &FlowRecord) -> &[u8; LABEL_MAX] {
    const NONE: &[u8; LABEL_MAX] = &[0; LABEL_MAX];
    record.application.as_ref().map_or(NONE, |one| one.label.padded())
}

fn first_four(address: &[u8; 16]) -> [u8; 4] {
    let [a, b, c, d, ..] = *address;
    [a, b, c, d]
}

/// RFC 5103, biflowDirection (element 239): 1, the source is the initiator; 0, it only sent the first packet seen.
fn biflow_direction(initiator: Initiator) -> u8 {
    u8::from(initiator != Initiator::FirstPacket)
}

/// mplsTopLabelStackSection (element 70): the label's 20 bits; traffic class and bottom of stack are not stored, and 0.
fn label(label: Option<u32>) -> [u8; 3] {
    let [_, a, b, c] = (label.unwrap_or_default() << 4).to_be_bytes();
    [a, b, c]
}

/// The tunnel of a record whose template has one.
fn outer(record: &FlowRecord) -> Tunnel {
    let none = Tunnel { kind: TunnelKind::IpIp, ipv6: false, src: [0; 16], dst: [0; 16], id: 0 };
    record.path.tunnel.unwrap_or(none)
}

/// The protocol of the outer IP header.
const fn outer_protocol(kind: TunnelKind) -> u8 {
    match kind {
        TunnelKind::IpIp => 4,
        TunnelKind::SixInFour => 41,
        TunnelKind::Gre | TunnelKind::Erspan => 47,
        TunnelKind::Vxlan | TunnelKind::Geneve | TunnelKind::GtpU | TunnelKind::Teredo => 17,
    }
}

/// layer2SegmentId (element 351): the type of overlay in the first octet (1 is VXLAN; Geneve has no number), the
/// network identifier in the last three.
fn segment(tunnel: &Tunnel) -> u64 {
    match tunnel.kind {
        TunnelKind::Vxlan => 1 << 56 | u64::from(tunnel.id),
        TunnelKind::Geneve => u64::from(tunnel.id),
        _ => 0,
    }
}

/// The identifier of a tunnel if it is of this kind; otherwise 0.
fn id_of(record: &FlowRecord, kind: TunnelKind) -> [u8; 4] {
    let tunnel = outer(record);
    let id = if tunnel.kind == kind { tunnel.id } else { 0 };
    id.to_be_bytes()
}
