//! Flow records as JSON lines: one object a line, its fields as listed in the [parent](super).
//!
//! ```text
//! {"flowStartMilliseconds":1,"flowEndMilliseconds":2,"sourceIPv4Address":"10.0.0.1",…,"communityId":"1:…"}
//! ```
//!
//! Laid out by hand: every name and value is known to need no escaping. Counts are whole numbers
//! up to 2⁶⁴ - 1; readers that know only doubles lose digits above 2⁵³.

use std::io::{self, Write};

use super::address::push_address;
use super::{CommunityId, ICMP, ICMPV6, Lines, RecordWriter, TCP, has_ports};
use super::{milliseconds, push_number};
use crate::{FlowRecord, IpVersion};

/// Writes one JSON object a line.
pub struct JsonLines<W: Write + Send>(Lines<W>);

impl<W: Write + Send> JsonLines<W> {
    /// A writer to `out`, which needs no buffer of its own.
    pub fn new(out: W) -> Self {
        Self(Lines::new(out))
    }
}

impl<W: Write + Send> RecordWriter for JsonLines<W> {
    fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        self.0.write(|line| object(line, record))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.out.flush()
    }
}

fn object(line: &mut Vec<u8>, record: &FlowRecord) {
    let key = &record.key;
    let (source, destination): (&[u8], &[u8]) = match key.version {
        IpVersion::V4 => (b",\"sourceIPv4Address\":\"", b"\",\"destinationIPv4Address\":\""),
        IpVersion::V6 => (b",\"sourceIPv6Address\":\"", b"\",\"destinationIPv6Address\":\""),
    };

    number(line, b"{\"flowStartMilliseconds\":", milliseconds(record.first_ns));
    number(line, b",\"flowEndMilliseconds\":", milliseconds(record.last_ns));
    line.extend_from_slice(source);
    push_address(line, key.version, &key.src);
    line.extend_from_slice(destination);
    push_address(line, key.version, &key.dst);
    line.push(b'"');
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
    if record.path.vlan_tags > 0 {
        number(line, b",\"vlanId\":", record.path.vlans[0]);
    }
    number(line, b",\"flowEndReason\":", record.end_reason as u8);
    line.extend_from_slice(b",\"communityId\":\"");
    line.extend_from_slice(CommunityId::of(record).as_bytes());
    line.extend_from_slice(b"\"}");
}

/// A field that holds a number, with what stands before it.
#[inline(always)]
fn number(line: &mut Vec<u8>, before: &[u8], number: impl itoa::Integer) {
    line.extend_from_slice(before);
    push_number(line, number);
}
