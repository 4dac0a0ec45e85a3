//! Flow records as CSV (RFC 4180, but lines end in LF): a header line, then one line a record,
//! with the columns listed in the [parent](super).
//!
//! ```text
//! flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,…,flowEndReason,communityId
//! 1700000000000,1700000000250,10.0.0.1,…,3,1:…
//! ```
//!
//! Every line has the same number of fields, and none needs quotes. The header is there even if no
//! record is.

use std::io::{self, Write};

use super::address::push_address;
use super::{CommunityId, ICMP, ICMPV6, Lines, RecordWriter, TCP, has_ports};
use super::{milliseconds, push_number};
use crate::FlowRecord;

const HEADER: &[u8] = b"flowStartMilliseconds,flowEndMilliseconds,\
    sourceIPAddress,destinationIPAddress,sourceTransportPort,destinationTransportPort,\
    protocolIdentifier,octetDeltaCount,packetDeltaCount,\
    reverseOctetDeltaCount,reversePacketDeltaCount,tcpControlBits,reverseTcpControlBits,\
    icmpTypeCode,vlanId,flowEndReason,communityId";

/// Writes a header line and one line of fields a record.
pub struct Csv<W: Write + Send> {
    lines: Lines<W>,
    headed: bool,
}

impl<W: Write + Send> Csv<W> {
    /// A writer to `out`, which needs no buffer of its own.
    pub fn new(out: W) -> Self {
        Self { lines: Lines::new(out), headed: false }
    }

    fn head(&mut self) -> io::Result<()> {
        if !self.headed {
            self.lines.write(|line| line.extend_from_slice(HEADER))?;
            self.headed = true;
        }
        Ok(())
    }
}

impl<W: Write + Send> RecordWriter for Csv<W> {
    fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        self.head()?;
        self.lines.write(|line| fields(line, record))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.head()?;
        self.lines.out.flush()
    }
}

fn fields(line: &mut Vec<u8>, record: &FlowRecord) {
    let key = &record.key;
    let ports = has_ports(key.protocol);
    let tcp = key.protocol == TCP;
    let icmp = matches!(key.protocol, ICMP | ICMPV6);

    number(line, milliseconds(record.first_ns));
    number(line, milliseconds(record.last_ns));
    push_address(line, key.version, &key.src);
    line.push(b',');
    push_address(line, key.version, &key.dst);
    line.push(b',');
    number_if(ports, line, key.src_port);
    number_if(ports, line, key.dst_port);
    number(line, key.protocol);
    number(line, record.octets[0]);
    number(line, record.packets[0]);
    number(line, record.octets[1]);
    number(line, record.packets[1]);
    number_if(tcp, line, record.tcp_flags[0]);
    number_if(tcp, line, record.tcp_flags[1]);
    number_if(icmp, line, record.icmp_type_code);
    number_if(record.path.vlan_tags > 0, line, record.path.vlans[0]);
    number(line, record.end_reason as u8);
    line.extend_from_slice(CommunityId::of(record).as_bytes());
}

/// A field and the comma behind it.
#[inline(always)]
fn number(line: &mut Vec<u8>, number: impl itoa::Integer) {
    push_number(line, number);
    line.push(b',');
}

/// The same, empty where the flow has none.
#[inline(always)]
fn number_if(present: bool, line: &mut Vec<u8>, number: impl itoa::Integer) {
    if present {
        push_number(line, number);
    }
    line.push(b',');
}
