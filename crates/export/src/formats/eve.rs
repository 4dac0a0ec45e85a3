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

use crate::formats::address::{push_address, push_mac};
use crate::formats::date::push_iso;
use crate::formats::ids::flow_id;
use crate::formats::lines::{push_hex, push_number};
use crate::formats::protocol::{TCP, has_ports, is_icmp};
use crate::formats::service::app_proto;
use crate::formats::way::{macs, outer_protocol, outer_version, vlans, way};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> = Some(TextFormat { head: None, line, tail: None });

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, interfaces: &Interfaces) {
    let key = &record.key;
    let path = way(record);
    let tcp = (key.protocol == TCP).then(|| TcpState::of(record.history));

    line.extend_from_slice(b"{\"timestamp\":\"");
    push_iso(line, record.last_ns);
    number(line, b"\",\"flow_id\":", flow_id(record));
    if let Some(interface) = interfaces.quoted_name(record.path.ingress) {
        line.extend_from_slice(b",\"in_iface\":");
        line.extend_from_slice(interface.as_bytes());
    }
    line.extend_from_slice(b",\"event_type\":\"flow\"");
    for (at, &vlan) in vlans(&path).iter().enumerate() {
        number(line, if at == 0 { b",\"vlan\":[" } else { b"," }, vlan);
    }
    line.extend_from_slice(if path.vlan_tags > 0 { b"],\"src_ip\":\"" } else { b",\"src_ip\":\"" });
    push_address(line, key.version, &key.src);
    line.push(b'"');
    if has_ports(key.protocol) {
        number(line, b",\"src_port\":", key.src_port);
    }
    line.extend_from_slice(b",\"dest_ip\":\"");
    push_address(line, key.version, &key.dst);
    line.push(b'"');
    if has_ports(key.protocol) {
        number(line, b",\"dest_port\":", key.dst_port);
    }
    number(line, b",\"ip_v\":", key.version as u8);
    line.extend_from_slice(b",\"proto\":\"");
    push_protocol(line, key.protocol);
    line.push(b'"');
    if is_icmp(key.protocol) {
        let [icmp_type, icmp_code] = record.icmp_type_code.to_be_bytes();
        number(line, b",\"icmp_type\":", icmp_type);
        number(line, b",\"icmp_code\":", icmp_code);
    }
    if let Some(name) = app_proto(record) {
        line.extend_from_slice(b",\"app_proto\":\"");
        line.extend_from_slice(name.as_bytes());
        line.push(b'"');
    }
    flow(line, record, tcp.flatten());
    if let Some(state) = tcp {
        tcp_object(line, record.tcp_flags, state);
    }
    link(line, &path);
    line.extend_from_slice(b",\"community_id\":\"");
    line.extend_from_slice(CommunityId::of(record).as_bytes());
    line.extend_from_slice(b"\"}\n");
}

fn flow(line: &mut Vec<u8>, record: &FlowRecord, tcp: Option<TcpState>) {
    number(line, b",\"flow\":{\"pkts_toserver\":", record.packets[0]);
    number(line, b",\"pkts_toclient\":", record.packets[1]);
    number(line, b",\"bytes_toserver\":", record.octets[0]);
    number(line, b",\"bytes_toclient\":", record.octets[1]);
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
fn link(line: &mut Vec<u8>, path: &Path) {
    if let Some([source, destination]) = macs(path) {
        line.extend_from_slice(b",\"ether\":{\"dest_macs\":[\"");
        push_mac(line, destination);
        line.extend_from_slice(b"\"],\"src_macs\":[\"");
        push_mac(line, source);
        line.extend_from_slice(b"\"]}");
    }
    if let Some(tunnel) = &path.tunnel {
        line.extend_from_slice(b",\"tunnel\":{\"src_ip\":\"");
        push_address(line, outer_version(tunnel), &tunnel.src);
        line.extend_from_slice(b"\",\"dest_ip\":\"");
        push_address(line, outer_version(tunnel), &tunnel.dst);
        line.extend_from_slice(b"\",\"proto\":\"");
        push_protocol(line, outer_protocol(tunnel.kind));
        line.extend_from_slice(b"\",\"depth\":1}");
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
