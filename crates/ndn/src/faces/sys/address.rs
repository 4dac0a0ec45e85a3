//! Socket addresses in the kernel's layout, written and read byte by byte.
//!
//! ```text
//!  IPv4      | family 2 | port 2 | address 4 | 0 × 8 |                           16 bytes
//!  IPv6      | family 2 | port 2 | flow 4 | address 16 | scope 4 |               28
//!  Ethernet  | family 2 | protocol 2 | interface 4 | hardware 2 | kind 1 | length 1 | MAC 8 |   20
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::faces::remote::Mac;

/// Maximum length of an address, in bytes.
pub(crate) const ADDRESS_MAX: usize = 28;

/// An address; equal addresses are equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Address {
    bytes: [u8; ADDRESS_MAX],
    len: u8,
}

/// A neighbour on an Ethernet, and for a received frame whom it is for.
pub(crate) struct LinkAddress {
    pub(crate) from: Mac,
    /// `PACKET_HOST`, `PACKET_MULTICAST` and so on.
    pub(crate) kind: u8,
}

impl Address {
    /// The address of a UDP socket.
    pub(crate) fn of(address: &SocketAddr) -> Self {
        let mut bytes = [0; ADDRESS_MAX];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, 16)
            }
            SocketAddr::V6(v6) => {
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, 28)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        Self { bytes, len }
    }

    /// The address of a neighbour on an Ethernet interface.
    pub(crate) fn link(interface: u32, protocol: u16, to: Mac) -> Self {
        let mut bytes = [0; ADDRESS_MAX];
        bytes[..2].copy_from_slice(&(libc::AF_PACKET as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&protocol.to_be_bytes());
        bytes[4..8].copy_from_slice(&interface.to_ne_bytes());
        bytes[11] = to.0.len() as u8;
        bytes[12..18].copy_from_slice(&to.0);
        Self { bytes, len: 20 }
    }

    /// The source of a frame of this kind: `PACKET_HOST`, `PACKET_MULTICAST` and so on.
    pub(crate) fn with_kind(mut self, kind: u8) -> Self {
        self.bytes[10] = kind;
        self
    }

    /// An address that the kernel returned, without the IPv6 flow label, which does not identify
    /// the peer.
    pub(crate) fn received(raw: &[u8; ADDRESS_MAX], len: usize) -> Self {
        let len = len.min(ADDRESS_MAX);
        let mut bytes = [0; ADDRESS_MAX];
        bytes[..len].copy_from_slice(&raw[..len]);
        if len == ADDRESS_MAX {
            bytes[4..8].fill(0);
        }
        Self { bytes, len: len as u8 }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The same UDP address with another port.
    pub(crate) fn other_port(&self) -> Self {
        let mut other = *self;
        other.bytes[3] ^= 1;
        // Port 0 means any.
        other.bytes[2] |= u8::from(other.bytes[2..4] == [0; 2]);
        other
    }

    /// As a UDP address; `None` if it is not one.
    pub(crate) fn udp(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        match self.len {
            16 => {
                let ip: [u8; 4] = self.bytes[4..8].try_into().ok()?;
                Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
            }
            28 => {
                let ip: [u8; 16] = self.bytes[8..24].try_into().ok()?;
                let scope = u32::from_ne_bytes(self.bytes[24..28].try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// As an Ethernet address; `None` if it is not one.
    pub(crate) fn ethernet(&self) -> Option<LinkAddress> {
        if self.len < 18 || self.len == ADDRESS_MAX as u8 || self.bytes[11] != 6 {
            return None;
        }
        let from = Mac(self.bytes[12..18].try_into().ok()?);
        Some(LinkAddress { from, kind: self.bytes[10] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_addresses_are_read_back() {
        for text in ["192.0.2.1:6363", "[2001:db8::1]:6363", "[fe80::1%3]:9"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Address::of(&address).udp(), Some(address));
        }
        let other = |port| Address::of(&([192, 0, 2, 1], port).into()).other_port().udp().unwrap();
        assert_eq!([0, 1, 2, 6363].map(|port| other(port).port()), [1, 256, 3, 6362]);
        let mac = Mac([2, 0, 0, 0, 0, 7]);
        let link = Address::link(4, 0x8624, mac);
        assert_eq!((link.ethernet().unwrap().from, link.udp()), (mac, None));
        assert!(Address::of(&"1.2.3.4:5".parse().unwrap()).ethernet().is_none());
    }
}
