//! CSV (RFC 4180, but lines end in LF): a header line, then one line a record.
//!
//! ```text
//! flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,…,flowEndReason,communityId,minimumTTL,…,tunnelId
//! 1700000000000,1700000000250,10.0.0.1,…,3,1:…,64,…,
//! ```
//!
//! Every line has the same number of fields; a missing value is an empty field. Only facts from payloads may need
//! quotes; a list of them is separated by semicolons. The header is written even without records. The columns are the
//! same for both IP versions: one name without the version stands for the two Information Elements. New columns are
//! added at the end. The columns of origins, and the last one, `ingressInterface`, exist only in runs that have them.

use ringtap_flow::{Application, FlowRecord, Initiator, Kind, TcpPerformance};

use crate::formats::address::{push_address, push_mac};
use crate::formats::lines::{milliseconds, push_csv, push_number};
use crate::formats::origins::Value;
use crate::formats::protocol::{TCP, has_ports, is_icmp};
use crate::formats::way::{macs, outer_version, vlans, way};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> =
    Some(TextFormat { head: Some(head), line, tail: None });

const HEADER: &[u8] = b"flowStartMilliseconds,flowEndMilliseconds,\
    sourceIPAddress,destinationIPAddress,sourceTransportPort,destinationTransportPort,\
    protocolIdentifier,octetDeltaCount,packetDeltaCount,\
    reverseOctetDeltaCount,reversePacketDeltaCount,tcpControlBits,reverseTcpControlBits,\
    icmpTypeCode,vlanId,flowEndReason,communityId,\
    minimumTTL,maximumTTL,minimumIpTotalLength,maximumIpTotalLength,ipClassOfService,\
    reverseMinimumTTL,reverseMaximumTTL,reverseMinimumIpTotalLength,reverseMaximumIpTotalLength,\
    reverseIpClassOfService,history,biflowDirection,sourceMacAddress,destinationMacAddress,\
    dot1qCustomerVlanId,mplsTopLabel,\
    tunnelType,tunnelSourceIPAddress,tunnelDestinationIPAddress,tunnelId";

/// The columns behind the facts.
const APPLICATION: &[u8] = b",application,applicationReason";

/// The column of records from interfaces.
const INGRESS: &[u8] = b",ingressInterface";

/// Appends the header line.
pub(crate) fn head(line: &mut Vec<u8>, _first_ns: u64, interfaces: &Interfaces) {
    line.extend_from_slice(HEADER);
    for kind in Kind::KEPT {
        line.push(b',');
        line.extend_from_slice(kind.name().as_bytes());
    }
    line.extend_from_slice(APPLICATION);
    for name in TcpPerformance::NAMES {
        line.push(b',');
        line.extend_from_slice(name.as_bytes());
    }
    for field in interfaces.origins.fields() {
        line.push(b',');
        line.extend_from_slice(field.name.as_bytes());
    }
    if !interfaces.is_empty() {
        line.extend_from_slice(INGRESS);
    }
    line.push(b'\n');
}

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, interfaces: &Interfaces) {
    fields(line, record);
    for field in interfaces.origins.fields() {
        line.push(b',');
        match field.value(record) {
            Some(Value::Text(text)) => push_csv(line, std::iter::once(text)),
            Some(Value::Number(number)) => push_number(line, number),
            None => {}
        }
    }
    if !interfaces.is_empty() {
        line.push(b',');
        if record.path.ingress > 0 {
            push_number(line, record.path.ingress);
        }
    }
    line.push(b'\n');
}

fn fields(line: &mut Vec<u8>, record: &FlowRecord) {
    let key = &record.key;
    let ports = has_ports(key.protocol);
    let tcp = key.protocol == TCP;
    let path = way(record);
    let mut vlans = vlans(&path).iter().copied();

    number(line, milliseconds(record.first_ns));
    number(line, milliseconds(record.last_ns));
    push_address(line, key.version, &key.src);
    line.push(b',');
    push_address(line, key.version, &key.dst);
    line.push(b',');
    perhaps(line, ports.then_some(key.src_port));
    perhaps(line, ports.then_some(key.dst_port));
    number(line, key.protocol);
    number(line, record.octets[0]);
    number(line, record.packets[0]);
    number(line, record.octets[1]);
    number(line, record.packets[1]);
    perhaps(line, tcp.then_some(record.tcp_flags[0]));
    perhaps(line, tcp.then_some(record.tcp_flags[1]));
    perhaps(line, is_icmp(key.protocol).then_some(record.icmp_type_code));
    perhaps(line, vlans.next());
    number(line, record.end_reason as u8);
    line.extend_from_slice(CommunityId::of(record).as_bytes());
    line.push(b',');
    for side in 0..2 {
        let there = record.packets[side] > 0;
        perhaps(line, there.then_some(record.ttl[side][0]));
        perhaps(line, there.then_some(record.ttl[side][1]));
        perhaps(line, there.then_some(record.ip_len[side][0]));
        perhaps(line, there.then_some(record.ip_len[side][1]));
        perhaps(line, there.then_some(record.tos[side]));
    }
    line.extend(record.history.iter().map(|letter| letter as u8));
    line.push(b',');
    number(line, u8::from(record.initiator != Initiator::FirstPacket));
    let macs = macs(&path);
    for side in 0..2 {
        if let Some(macs) = macs {
            push_mac(line, &macs[side]);
        }
        line.push(b',');
    }
    perhaps(line, vlans.next());
    perhaps(line, path.mpls_label);
    match &path.tunnel {
        None => line.extend_from_slice(b",,,"),
        Some(tunnel) => {
            line.extend_from_slice(tunnel.kind.name().as_bytes());
            for address in [&tunnel.src, &tunnel.dst] {
                line.push(b',');
                push_address(line, outer_version(tunnel), address);
            }
            line.push(b',');
            if tunnel.id > 0 {
                push_number(line, tunnel.id);
            }
        }
    }
    for kind in Kind::KEPT {
        line.push(b',');
        if !record.facts.is_empty() {
            push_csv(line, record.facts.values(kind));
        }
    }
    line.push(b',');
    if let Some(Application { label, reason }) = &record.application {
        push_csv(line, std::iter::once(label.as_str().as_bytes()));
        line.push(b',');
        line.extend_from_slice(reason.name().as_bytes());
    } else {
        line.push(b',');
    }
    let tcp = record.tcp.map_or([None; TcpPerformance::NAMES.len()], |tcp| tcp.fields());
    for value in tcp {
        line.push(b',');
        if let Some(value) = value {
            push_number(line, value);
        }
    }
}

/// Appends a field and a comma.
#[inline(always)]
fn number(line: &mut Vec<u8>, number: impl Into<u64>) {
    push_number(line, number);
    line.push(b',');
}

/// Appends a field and a comma; the field is empty if the flow has no value.
#[inline(always)]
fn perhaps(line: &mut Vec<u8>, number: Option<impl Into<u64>>) {
    if let Some(number) = number {
        push_number(line, number);
    }
    line.push(b',');
}
