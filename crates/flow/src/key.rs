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

impl FlowKey {
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
        const KNOWN: u16 = Flags::PORTS.0 | Flags::PORTS_FROM_FIRST.0;
        const ICMP: u8 = 1;
        const ICMPV6: u8 = 58;
        // A later fragment has the type and code of its first one.
        let icmp = packet.protocol == ICMP || packet.protocol == ICMPV6;
        if packet.flags.0 & KNOWN != 0 && !icmp {
            (packet.src_port, packet.dst_port)
        } else {
            (0, 0)
        }
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
