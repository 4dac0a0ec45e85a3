//! JSON lines: one object a line; fields have the names of IPFIX Information Elements.
//!
//! ```text
//! {"flowStartMilliseconds":1,"flowEndMilliseconds":2,"sourceIPv4Address":"10.0.0.1",…,"communityId":"1:…"}
//! ```
//!
//! Fields without a value are left out. The text is formatted by hand; only facts from payloads need escaping. Counts
//! are integers up to 2⁶⁴ - 1; readers with doubles lose digits above 2⁵³.

use ringtap_flow::{
    Application, Facts, FlowRecord, Initiator, IpVersion, Keep, Kind, Path, TcpPerformance, Tunnel,
    Type,
};

use crate::formats::address::{push_address, push_mac};
use crate::formats::lines::{milliseconds, push_json, push_number};
use crate::formats::origins::{FIELDS, Value};
use crate::formats::protocol::{ICMP, ICMPV6, TCP, has_ports};
use crate::formats::way::{macs, outer_version, vlans, way};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> = Some(TextFormat { head: None, line, tail: None });

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, _interfaces: &Interfaces) {
    let key = &record.key;
    let (source, destination): (&[u8], &[u8]) = match key.version {
        IpVersion::V4 => (b",\"sourceIPv4Address\":\"", b"\",\"destinationIPv4Address\":\""),
        IpVersion::V6 => (b",\"sourceIPv6Address\":\"", b"\",\"destinationIPv6Address\":\""),
    };

    number(line, b"{\"flowStartMilliseconds\":", milliseconds(record.first_ns));
    number(line, b",\"flowEndMilliseconds\":", milliseconds(record.last_ns));
    addresses(line, [source, destination], key.version, [&key.src, &key.dst]);
    if has_ports(key.protocol) {
        number(line, b",\"sourceTransportPort\":", key.src_port);
        number(line, b",\"destinationTransportPort\":", key.dst_port);
    }
    number(line, b",\"protocolIdentifier\":", key.protocol);
    number(line, b",\"octetDeltaCount\":", record.octets[0]);
    number(line, b",\"packetDeltaCount\":", record.packets[0]);
    number(line, b",\"reverseOctetDeltaCount\":", record.octets[1]);
    number(line, b",\"reversePacketDeltaCount\":", record.packets[1]);
    match key.protocol {
        TCP => {
            number(line, b",\"tcpControlBits\":", record.tcp_flags[0]);
            number(line, b",\"reverseTcpControlBits\":", record.tcp_flags[1]);
        }
        ICMP => number(line, b",\"icmpTypeCodeIPv4\":", record.icmp_type_code),
        ICMPV6 => number(line, b",\"icmpTypeCodeIPv6\":", record.icmp_type_code),
        _ => {}
    }
    ip_header(line, record);
    if record.history != Default::default() {
        line.extend_from_slice(b",\"history\":\"");
        line.extend(record.history.iter().map(|letter| letter as u8));
        line.push(b'"');
    }
    path(line, &way(record));
    if record.path.ingress > 0 {
        number(line, b",\"ingressInterface\":", record.path.ingress);
    }
    if !record.facts.is_empty() {
        facts(line, &record.facts);
    }
    if let Some(Application { label, reason }) = &record.application {
        line.extend_from_slice(b",\"application\":");
        push_json(line, label.as_str().as_bytes());
        line.extend_from_slice(b",\"applicationReason\":\"");
        line.extend_from_slice(reason.name().as_bytes());
        line.push(b'"');
    }
    if let Some(tcp) = &record.tcp {
        for (name, value) in TcpPerformance::NAMES.iter().zip(tcp.fields()) {
            if let Some(value) = value {
                line.extend_from_slice(b",\"");
                line.extend_from_slice(name.as_bytes());
                number(line, b"\":", value);
            }
        }
    }
    if record.origins.is_some() {
        origins(line, record);
    }
    let seen = record.initiator != Initiator::FirstPacket;
    number(line, b",\"biflowDirection\":", u8::from(seen));
    number(line, b",\"flowEndReason\":", record.end_reason as u8);
    line.extend_from_slice(b",\"communityId\":\"");
    line.extend_from_slice(CommunityId::of(record).as_bytes());
    line.extend_from_slice(b"\"}\n");
}

/// The origins of both ends.
fn origins(line: &mut Vec<u8>, record: &FlowRecord) {
    for field in &FIELDS {
        let Some(value) = field.value(record) else { continue };
        line.extend_from_slice(b",\"");
        line.extend_from_slice(field.name.as_bytes());
        line.extend_from_slice(b"\":");
        match value {
            Value::Text(text) => push_json(line, text),
            Value::Number(number) => push_number(line, number),
        }
    }
}

/// The facts from payloads.
fn facts(line: &mut Vec<u8>, facts: &Facts) {
    for kind in Kind::KEPT {
        push_values(line, kind, facts.values(kind));
    }
    if facts.beyond() > 0 {
        number(line, b",\"payloadValuesOmitted\":", facts.beyond());
    }
}

/// Appends the values of a kind, if there are any: a list, if a flow keeps several.
pub(crate) fn push_values<'a>(
    line: &mut Vec<u8>,
    kind: Kind,
    values: impl Iterator<Item = &'a [u8]>,
) {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return;
    }
    let list = kind.keep() == Keep::List;
    line.extend_from_slice(b",\"");
    line.extend_from_slice(kind.name().as_bytes());
    line.extend_from_slice(if list { b"\":[" } else { b"\":" });
    while let Some(value) = values.next() {
        match kind.value_type() {
            Type::Text => push_json(line, value),
            Type::Number => line.extend_from_slice(value),
        }
        if !list {
            return;
        }
        line.push(if values.peek().is_some() { b',' } else { b']' });
    }
}

/// Fields of the IP headers, for each direction with packets.
fn ip_header(line: &mut Vec<u8>, record: &FlowRecord) {
    let [ttl, reverse_ttl] = record.ttl;
    let [len, reverse_len] = record.ip_len;
    if record.packets[0] > 0 {
        number(line, b",\"minimumTTL\":", ttl[0]);
        number(line, b",\"maximumTTL\":", ttl[1]);
        number(line, b",\"minimumIpTotalLength\":", len[0]);
        number(line, b",\"maximumIpTotalLength\":", len[1]);
        number(line, b",\"ipClassOfService\":", record.tos[0]);
    }
    if record.packets[1] > 0 {
        number(line, b",\"reverseMinimumTTL\":", reverse_ttl[0]);
        number(line, b",\"reverseMaximumTTL\":", reverse_ttl[1]);
        number(line, b",\"reverseMinimumIpTotalLength\":", reverse_len[0]);
        number(line, b",\"reverseMaximumIpTotalLength\":", reverse_len[1]);
        number(line, b",\"reverseIpClassOfService\":", record.tos[1]);
    }
}

fn path(line: &mut Vec<u8>, path: &Path) {
    if let Some([source, destination]) = macs(path) {
        line.extend_from_slice(b",\"sourceMacAddress\":\"");
        push_mac(line, source);
        line.extend_from_slice(b"\",\"destinationMacAddress\":\"");
        push_mac(line, destination);
        line.push(b'"');
    }
    let names: [&[u8]; 2] = [b",\"vlanId\":", b",\"dot1qCustomerVlanId\":"];
    for (name, &vlan) in names.into_iter().zip(vlans(path)) {
        number(line, name, vlan);
    }
    if let Some(label) = path.mpls_label {
        number(line, b",\"mplsTopLabel\":", label);
    }
    if let Some(tunnel) = &path.tunnel {
        outer(line, tunnel);
    }
}

fn outer(line: &mut Vec<u8>, tunnel: &Tunnel) {
    let names: [&[u8]; 2] = if tunnel.ipv6 {
        [b",\"tunnelSourceIPv6Address\":\"", b"\",\"tunnelDestinationIPv6Address\":\""]
    } else {
        [b",\"tunnelSourceIPv4Address\":\"", b"\",\"tunnelDestinationIPv4Address\":\""]
    };
    line.extend_from_slice(b",\"tunnelType\":\"");
    line.extend_from_slice(tunnel.kind.name().as_bytes());
    line.push(b'"');
    addresses(line, names, outer_version(tunnel), [&tunnel.src, &tunnel.dst]);
    if tunnel.id > 0 {
        number(line, b",\"tunnelId\":", tunnel.id);
    }
}

/// Appends both addresses, each after a text.
#[inline(always)]
fn addresses(
    line: &mut Vec<u8>,
    before: [&[u8]; 2],
    version: IpVersion,
    addresses: [&[u8; 16]; 2],
) {
    for (before, address) in before.into_iter().zip(addresses) {
        line.extend_from_slice(before);
        push_address(line, version, address);
    }
    line.push(b'"');
}

/// Appends `before` and a number.
#[inline(always)]
fn number(line: &mut Vec<u8>, before: &[u8], number: impl Into<u64>) {
    line.extend_from_slice(before);
    push_number(line, number);
}
