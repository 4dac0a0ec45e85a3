//! The flow key: the 5-tuple, kept in the direction of the initiator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringtap_wire::{Flags, PacketRecord};

/// 4 or 6, as in the header.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

impl IpVersion {
    /// The version of this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            4 => Some(Self::V4),
            6 => Some(Self::V6),
            _ => None,
        }
    }
}

/// The endpoints and protocol of a flow. A biflow has one key; its other direction is
/// [`FlowKey::reversed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// IP version of both addresses.
    pub version: IpVersion,
    /// Source address; IPv4 in the first four bytes, the rest zero.
    pub src: [u8; 16],
    /// Destination address, laid out as `src`.
    pub dst: [u8; 16],
    /// Source port; 0 if the protocol has none or it is unknown.
    pub src_port: u16,
    /// Destination port; 0 if the protocol has none or it is unknown.
    pub dst_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

pub(crate) const ICMP: u8 = 1;
const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
const DCCP: u8 = 33;
pub(crate) const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;
/// The first port that is none of the system's, and the first one that systems give to clients.
const FIRST_USER_PORT: u16 = 1_024;
const FIRST_DYNAMIC_PORT: u16 = 32_768;

impl FlowKey {
    /// The side that serves, whose port a flow counts for: 0 is the source, 1 the destination.
    ///
    /// It is the destination if the begin of the connection was seen (`is_begin_known`). Otherwise the first packet may be
    /// an answer, and the side with the port of the lower class serves: below 1,024, below 32,768, from there on, none (0). Of
    /// equal classes it is the destination, too.
    #[inline]
    pub fn server_side(&self, is_begin_known: bool) -> usize {
        let class = |port: u16| match port {
            0 => 3,
            _ => u8::from(port >= FIRST_USER_PORT) + u8::from(port >= FIRST_DYNAMIC_PORT),
        };
        usize::from(is_begin_known || class(self.src_port) >= class(self.dst_port))
    }

    /// The key of a packet in its own direction. Meaningless for non-IP packets.
    #[inline(always)]
    pub fn of(packet: &PacketRecord) -> Self {
        let (src_port, dst_port) = Self::ports_of(packet);
        let [src, dst] = packet.addresses();
        Self {
            version: if packet.flags.contains(Flags::IPV6) { IpVersion::V6 } else { IpVersion::V4 },
            src,
            dst,
            src_port,
            dst_port,
            protocol: packet.protocol,
        }
    }

    /// The ports for the key. ICMP type and code are not included, or a request and its reply would
    /// be different flows.
    #[inline(always)]
    pub(crate) fn ports_of(packet: &PacketRecord) -> (u16, u16) {
        // A later fragment of ICMP has the type and code of its first one.
        let from_first = || {
            let icmp = packet.protocol == ICMP || packet.protocol == ICMPV6;
            packet.flags.contains(Flags::PORTS_FROM_FIRST) && !icmp
        };
        if packet.flags.contains(Flags::PORTS) || from_first() {
            (packet.src_port, packet.dst_port)
        } else {
            (0, 0)
        }
    }

    /// Whether the protocol has ports; without, they are 0.
    #[inline]
    pub const fn has_ports(&self) -> bool {
        matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }

    /// The same flow in the other direction.
    #[inline(always)]
    pub const fn reversed(&self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            ..*self
        }
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        self.version.address(&self.src)
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        self.version.address(&self.dst)
    }

    /// Source and destination address, in the order of the counters of a record.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.source(), self.destination()]
    }
}

impl IpVersion {
    /// Reads 16 bytes laid out as in [`FlowKey::src`].
    pub fn address(self, bytes: &[u8; 16]) -> IpAddr {
        match self {
            Self::V4 => {
                let [a, b, c, d, ..] = *bytes;
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            Self::V6 => IpAddr::V6(Ipv6Addr::from(*bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_is_asked_serves_unless_the_first_packet_may_be_an_answer() {
        let side = |src_port, dst_port, is_begin_known| {
            let [src, dst] = [[1; 16], [2; 16]];
            let (version, protocol) = (IpVersion::V6, 17);
            FlowKey { version, src, dst, src_port, dst_port, protocol }.server_side(is_begin_known)
        };
        for (source, destination, guess) in [
            (50_000, 443, 1),
            (443, 50_000, 0),
            (53, 2_000, 0),
            (2_000, 53, 1),
            (8_080, 50_000, 0),
            (50_000, 40_000, 1),
            (40_000, 50_000, 1),
            (5_000, 4_000, 1),
            (123, 123, 1),
            (1_023, 1_024, 0),
            (32_767, 32_768, 0),
            (0, 5_000, 1),
            (5_000, 0, 0),
            (0, 65_535, 1),
            (65_535, 0, 0),
            (0, 0, 1),
        ] {
            assert_eq!(side(source, destination, false), guess, "{source} {destination}");
            assert_eq!(side(source, destination, true), 1);
        }
    }
}
