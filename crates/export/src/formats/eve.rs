//! EVE, the event log of Suricata: `event_type: "flow"`, one JSON object a line. Source: Suricata's published schema
//! (`etc/schema.json`, version 8), and its user guide, "Eve JSON Format".
//!
//! ```text
//! {"timestamp":"…","flow_id":…,"event_type":"flow","vlan":[7],"src_ip":"10.0.0.1","src_port":…,…,"proto":"TCP",
//!  "flow":{"pkts_toserver":…,…},"tcp":{…},"ether":{…},"tunnel":{…},"community_id":"1:…"}
//! ```
//!
//! The schema does not allow other names, so values without a name in it are left out. Octets are those of layer 3;
//! Suricata counts from the link layer on.

use ringtap_flow::{EndReason, FlowRecord, History, Path};

use crate::fields::{self, Row, Value, View};
use crate::formats::date::push_iso;
use crate::formats::ids::flow_id;
use crate::formats::lines::{push_hex, push_number};
use crate::formats::protocol::{TCP, is_icmp};
use crate::formats::service::app_proto;
use crate::formats::{Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> = Some(TextFormat { head: None, line, tail: None });

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, interfaces: &Interfaces) {
    let mut reversed = None;
    let v = &View::of(record, &mut reversed);
    let tcp = (record.key.protocol == TCP).then(|| TcpState::of(record.history));

    line.extend_from_slice(b"{\"timestamp\":\"");
    push_iso(line, record.last_ns);
    number(line, b"\",\"flow_id\":", flow_id(record));
    if let Some(interface) = interfaces.quoted_name(record.path.ingress) {
        line.extend_from_slice(b",\"in_iface\":");
        line.extend_from_slice(interface.as_bytes());
    }
    line.extend_from_slice(b",\"event_type\":\"flow\"");
    if let Some(outermost) = fields::vlanId::of(v) {
        field(line, b",\"vlan\":[", Some(outermost));
        field(line, b",", fields::dot1qCustomerVlanId::of(v));
        line.push(b']');
    }
    field(line, b",\"src_ip\":", fields::sourceIPAddress::of(v));
    field(line, b",\"src_port\":", fields::sourceTransportPort::of(v));
    field(line, b",\"dest_ip\":", fields::destinationIPAddress::of(v));
    field(line, b",\"dest_port\":", fields::destinationTransportPort::of(v));
    field(line, b",\"ip_v\":", fields::ipVersion::of(v));
    line.extend_from_slice(b",\"proto\":\"");
    push_protocol(line, record.key.protocol);
    line.push(b'"');
    if is_icmp(record.key.protocol) {
        let [icmp_type, icmp_code] = record.icmp_type_code.to_be_bytes();
        number(line, b",\"icmp_type\":", icmp_type);
        number(line, b",\"icmp_code\":", icmp_code);
        if let Some(answer) = record.reverse_icmp_type_code {
            let [icmp_type, icmp_code] = answer.to_be_bytes();
            number(line, b",\"response_icmp_type\":", icmp_type);
            number(line, b",\"response_icmp_code\":", icmp_code);
        }
    }
    if let Some(name) = app_proto(record) {
        line.extend_from_slice(b",\"app_proto\":\"");
        line.extend_from_slice(name.as_bytes());
        line.push(b'"');
    }
    flow(line, v, tcp.flatten());
    if let Some(state) = tcp {
        tcp_object(line, record.tcp_flags, state);
    }
    link(line, v);
    field(line, b",\"community_id\":", fields::communityId::of(v));
    line.extend_from_slice(b"}\n");
}

fn flow(line: &mut Vec<u8>, v: &View<'_>, tcp: Option<TcpState>) {
    let record = v.record;
    field(line, b",\"flow\":{\"pkts_toserver\":", fields::packetDeltaCount::of(v));
    field(line, b",\"pkts_toclient\":", fields::reversePacketDeltaCount::of(v));
    field(line, b",\"bytes_toserver\":", fields::octetDeltaCount::of(v));
    field(line, b",\"bytes_toclient\":", fields::reverseOctetDeltaCount::of(v));
    line.extend_from_slice(b",\"start\":\"");
    push_iso(line, record.first_ns);
    line.extend_from_slice(b"\",\"end\":\"");
    push_iso(line, record.last_ns);
    // As in Suricata: the difference of whole seconds.
    let second = |ns| ns / 1_000_000_000;
    number(line, b"\",\"age\":", second(record.last_ns) - second(record.first_ns));
    let state = match tcp {
        Some(TcpState::Closed) => "closed",
        Some(TcpState::SynSent | TcpState::SynReceived) => "new",
        Some(TcpState::Established | TcpState::FinWait | TcpState::CloseWait) => "established",
        None if record.packets[1] > 0 => "established",
        None => "new",
    };
    let reason = match record.end_reason {
        // In Suricata a flow ends by a timeout, even after FIN and RST.
        EndReason::Idle | EndReason::Active | EndReason::EndDetected => "timeout",
        EndReason::Forced => "shutdown",
        EndReason::LackOfResources => "forced",
    };
    for (before, text) in [(",\"state\":\"", state), ("\",\"reason\":\"", reason)] {
        line.extend_from_slice(before.as_bytes());
        line.extend_from_slice(text.as_bytes());
    }
    line.extend_from_slice(b"\",\"alerted\":false}");
}

fn tcp_object(line: &mut Vec<u8>, flags: [u8; 2], state: Option<TcpState>) {
    const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"];
    let both = flags[0] | flags[1];
    let fields = [
        ("\"tcp_flags\":\"", both),
        ("\",\"tcp_flags_ts\":\"", flags[0]),
        ("\",\"tcp_flags_tc\":\"", flags[1]),
    ];
    line.extend_from_slice(b",\"tcp\":{");
    for (before, flags) in fields {
        line.extend_from_slice(before.as_bytes());
        push_hex(line, flags);
    }
    line.push(b'"');
    for (bit, name) in NAMES.iter().enumerate() {
        if both >> bit & 1 == 1 {
            line.extend_from_slice(b",\"");
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(b"\":true");
        }
    }
    if let Some(state) = state {
        line.extend_from_slice(b",\"state\":\"");
        line.extend_from_slice(state.name().as_bytes());
        line.push(b'"');
    }
    line.push(b'}');
}

/// The link addresses, in Suricata's form of lists, and the tunnel.
fn link(line: &mut Vec<u8>, v: &View<'_>) {
    let (mut destinations, mut sources) = (macs(v, 1).peekable(), macs(v, 0));
    if destinations.peek().is_some() {
        list(line, b",\"ether\":{\"dest_macs\":[", &mut destinations);
        list(line, b"],\"src_macs\":[", &mut sources);
        line.extend_from_slice(b"]}");
    }
    if let Some(tunnel) = &v.path.tunnel {
        field(line, b",\"tunnel\":{\"src_ip\":", fields::tunnelSourceIPAddress::of(v));
        field(line, b",\"dest_ip\":", fields::tunnelDestinationIPAddress::of(v));
        line.extend_from_slice(b",\"proto\":\"");
        push_protocol(line, tunnel.kind.protocol());
        line.extend_from_slice(b"\",\"depth\":1}");
    }
}

/// The link addresses of an end in both directions: 0 the initiator, 1 the other one.
fn macs<'a>(v: &View<'a>, end: usize) -> impl Iterator<Item = &'a [u8; 6]> {
    let of = |path: &'a Path, end: usize| (path.macs != [[0; 6]; 2]).then(|| &path.macs[end]);
    let first = of(v.path, end);
    let further = v.reverse_path.and_then(|path| of(path, 1 - end));
    first.into_iter().chain(further.filter(|mac| Some(*mac) != first))
}

/// Appends `before` and a list of link addresses.
fn list<'a>(line: &mut Vec<u8>, before: &[u8], macs: impl Iterator<Item = &'a [u8; 6]>) {
    line.extend_from_slice(before);
    for (at, mac) in macs.enumerate() {
        if at > 0 {
            line.push(b',');
        }
        Value::Mac(mac).json(line);
    }
}

/// The protocol in Suricata's spelling; the number for rare ones.
pub(crate) fn push_protocol(line: &mut Vec<u8>, protocol: u8) {
    let name = match protocol {
        0 => "HOPOPT",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IP-in-IP",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "IPv6-ICMP",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDPLite",
        137 => "MPLS-in-IP",
        _ => return push_number(line, protocol),
    };
    line.extend_from_slice(name.as_bytes());
}

/// The state of a TCP connection, from the packets seen.
#[derive(Clone, Copy)]
enum TcpState {
    SynSent,
    SynReceived,
    Established,
    /// The client has sent its FIN.
    FinWait,
    /// The server has sent its FIN.
    CloseWait,
    Closed,
}

impl TcpState {
    /// `None` for a connection whose beginning was not seen: Suricata does not track those either.
    fn of(history: History) -> Option<Self> {
        let has = |letter| history.has(letter);
        Some(match (has('F'), has('f')) {
            _ if has('R') || has('r') => Self::Closed,
            (true, true) => Self::Closed,
            _ if !has('S') && !has('h') => return None,
            (true, false) => Self::FinWait,
            (false, true) => Self::CloseWait,
            _ if !has('h') => Self::SynSent,
            _ if has('A') || has('D') => Self::Established,
            _ => Self::SynReceived,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::SynSent => "syn_sent",
            Self::SynReceived => "syn_recv",
            Self::Established => "established",
            Self::FinWait => "fin_wait1",
            Self::CloseWait => "close_wait",
            Self::Closed => "closed",
        }
    }
}

/// Appends `before` and a number.
#[inline(always)]
fn number(line: &mut Vec<u8>, before: &[u8], number: impl Into<u64>) {
    line.extend_from_slice(before);
    push_number(line, number);
}

/// Appends `before` and a value, if there is one.
#[inline(always)]
fn field(line: &mut Vec<u8>, before: &[u8], value: Option<Value<'_>>) {
    if let Some(value) = value {
        line.extend_from_slice(before);
        value.json(line);
    }
}
