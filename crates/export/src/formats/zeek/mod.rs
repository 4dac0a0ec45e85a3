//! Zeek's `conn.log`, as tab-separated text that `zeek-cut` reads. Source: Zeek's log format and its scripts
//! `base/protocols/conn` and `policy/protocols/conn` (community-id-logging, vlan-logging, mac-logging).
//!
//! ```text
//! #separator \x09
//! #set_separator  ,
//! #empty_field  (empty)
//! #unset_field  -
//! #path  conn
//! #open  2023-11-14-22-13-20          the earliest packet of the first record
//! #fields  ts  uid  id.orig_h  …
//! #types  time  string  addr  …
//! 1700000000.123456  C…  10.0.0.1  …
//! #close  2023-11-14-22-15-00          the latest packet of all records
//! ```
//!
//! Both times are packet times in UTC, because no clock is read; without records they are those of 1970-01-01. Values
//! that are not metered are `-`: payload octets and missed bytes of other protocols than UDP, and which networks are
//! local.

mod state;

use ringtap_flow::{FlowRecord, Initiator};

use crate::fields::{self, Row, Value, View};
use crate::formats::date::{push_dashed, push_seconds};
use crate::formats::ids::{tunnel_uid, uid};
use crate::formats::protocol::{TCP, UDP, is_icmp};
use crate::formats::service::service;
use crate::formats::{Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> =
    Some(TextFormat { head: Some(head), line, tail: Some(tail) });

const COLUMNS: [(&str, &str); 27] = [
    ("ts", "time"),
    ("uid", "string"),
    ("id.orig_h", "addr"),
    ("id.orig_p", "port"),
    ("id.resp_h", "addr"),
    ("id.resp_p", "port"),
    ("proto", "enum"),
    ("service", "string"),
    ("duration", "interval"),
    ("orig_bytes", "count"),
    ("resp_bytes", "count"),
    ("conn_state", "string"),
    ("local_orig", "bool"),
    ("local_resp", "bool"),
    ("missed_bytes", "count"),
    ("history", "string"),
    ("orig_pkts", "count"),
    ("orig_ip_bytes", "count"),
    ("resp_pkts", "count"),
    ("resp_ip_bytes", "count"),
    ("tunnel_parents", "set[string]"),
    ("ip_proto", "count"),
    ("community_id", "string"),
    ("vlan", "int"),
    ("inner_vlan", "int"),
    ("orig_l2_addr", "string"),
    ("resp_l2_addr", "string"),
];

/// Appends the header. `open_ns` is the earliest packet of the first record.
pub(crate) fn head(line: &mut Vec<u8>, open_ns: u64, _interfaces: &Interfaces) {
    push_head(line, open_ns, "conn", &[&COLUMNS]);
}

/// Appends the header of the log of this name, with these groups of columns: names and types.
pub(crate) fn push_head(line: &mut Vec<u8>, open_ns: u64, log: &str, columns: &[&[(&str, &str)]]) {
    line.extend_from_slice(
        b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t",
    );
    line.extend_from_slice(log.as_bytes());
    line.extend_from_slice(b"\n#open\t");
    push_dashed(line, open_ns);
    line.extend_from_slice(b"\n#fields");
    for (name, _) in columns.iter().copied().flatten() {
        line.push(b'\t');
        line.extend_from_slice(name.as_bytes());
    }
    line.extend_from_slice(b"\n#types");
    for (_, kind) in columns.iter().copied().flatten() {
        line.push(b'\t');
        line.extend_from_slice(kind.as_bytes());
    }
    line.push(b'\n');
}

/// Appends the last line. `close_ns` is the latest packet of all records.
pub(crate) fn tail(line: &mut Vec<u8>, close_ns: u64) {
    line.extend_from_slice(b"#close\t");
    push_dashed(line, close_ns);
    line.push(b'\n');
}

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, _interfaces: &Interfaces) {
    let mut reversed = None;
    let v = &View::of(record, &mut reversed);
    let duration_ns = record.last_ns - record.first_ns;

    push_seconds(line, record.first_ns);
    line.push(b'\t');
    line.extend_from_slice(&uid(record));
    line.push(b'\t');
    let [source_port, destination_port] = ports(v);
    field(line, fields::sourceIPAddress::of(v));
    field(line, Some(Value::Number(source_port)));
    field(line, fields::destinationIPAddress::of(v));
    field(line, Some(Value::Number(destination_port)));
    line.extend_from_slice(match record.key.protocol {
        TCP => b"tcp\t",
        UDP => b"udp\t",
        protocol if is_icmp(protocol) => b"icmp\t",
        _ => b"unknown_transport\t",
    });
    line.extend_from_slice(service(record).unwrap_or("-").as_bytes());
    line.push(b'\t');
    if duration_ns > 0 {
        push_seconds(line, duration_ns);
    } else {
        line.push(b'-');
    }
    line.push(b'\t');
    // As in Zeek, a flow without a duration has none.
    let is_udp = record.key.protocol == UDP;
    let is_counted = is_udp && duration_ns > 0;
    field(line, fields::initiatorOctets::of(v).filter(|_| is_counted));
    field(line, fields::responderOctets::of(v).filter(|_| is_counted));
    line.extend_from_slice(state::of(record).as_bytes());
    line.extend_from_slice(if is_udp { b"\t-\t-\t0\t" } else { b"\t-\t-\t-\t" });
    history(line, v);
    field(line, fields::packetDeltaCount::of(v));
    field(line, fields::octetDeltaCount::of(v));
    field(line, fields::reversePacketDeltaCount::of(v));
    field(line, fields::reverseOctetDeltaCount::of(v));
    match &v.path.tunnel {
        Some(tunnel) => line.extend_from_slice(&tunnel_uid(tunnel)),
        None => line.push(b'-'),
    }
    line.push(b'\t');
    field(line, fields::protocolIdentifier::of(v));
    field(line, fields::communityId::of(v));
    field(line, fields::vlanId::of(v));
    field(line, fields::dot1qCustomerVlanId::of(v));
    field(line, fields::sourceMacAddress::of(v));
    field(line, fields::destinationMacAddress::of(v));
    line.pop();
    line.push(b'\n');
}

/// The ports, or 0; for ICMP type and code, as in Zeek.
fn ports(v: &View<'_>) -> [u64; 2] {
    let key = &v.record.key;
    if is_icmp(key.protocol) {
        return v.record.icmp_type_code.to_be_bytes().map(u64::from);
    }
    [key.src_port, key.dst_port].map(u64::from)
}

/// `^` means that the direction was determined by an answer.
fn history(line: &mut Vec<u8>, v: &View<'_>) {
    let letters = fields::history::of(v);
    if v.record.initiator == Initiator::SynAck {
        line.push(b'^');
    } else if letters.is_none() {
        line.push(b'-');
    }
    if let Some(letters) = letters {
        letters.csv(line);
    }
    line.push(b'\t');
}

/// Appends a field, `-` without a value, and a tab.
#[inline(always)]
fn field(line: &mut Vec<u8>, value: Option<Value<'_>>) {
    match value {
        Some(value) => value.csv(line),
        None => line.push(b'-'),
    }
    line.push(b'\t');
}
