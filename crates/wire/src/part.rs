//! Fragments as the parts of their datagram, which the reassembly of datagrams joins.

use crate::fragments::DatagramKey;
use crate::record::{Flags, PacketRecord};
use crate::transport::{self, Payload};

/// A fragment that was captured completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its datagram.
    pub datagram: DatagramKey,
    /// The protocol of the datagram. Of IPv6 only the first part is sure to have it.
    pub protocol: u8,
    /// Where its bytes begin in the datagram.
    pub offset: u32,
    /// Whether others follow.
    pub more: bool,
    /// Its part of the transport header and the data.
    pub bytes: &'a [u8],
}

/// A datagram of this protocol joined from its parts: the record of the last one as if it had arrived in one packet, and its
/// payload. `None` if it is not of TCP or UDP, or has no whole header.
pub fn joined<'a>(
    last: &PacketRecord,
    protocol: u8,
    bytes: &'a [u8],
) -> Option<(PacketRecord, Payload<'a>)> {
    const OF_PARTS: u16 = Flags::FRAGMENT.0
        | Flags::LATER_FRAGMENT.0
        | Flags::PORTS_FROM_FIRST.0
        | Flags::PORTS.0
        | Flags::DATA.0;
    let flags = Flags(last.flags.0 & !OF_PARTS);
    let mut record = PacketRecord { protocol, flags, tcp_flags: 0, ..*last };
    transport::read(bytes, bytes.len() as u32, &mut record);
    // As of a datagram in one packet, though `ip_len` is that of the last part.
    record.flags.0 &= !Flags::IRREGULAR.0;
    Some((record, transport::data(protocol, bytes)?))
}
