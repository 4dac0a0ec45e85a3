//! The packet record: the fields of a packet that analyses need, in exactly one cache line.
//!
//! ```text
//!  0        8        24       40    44    48    52    56    58   60    61    62  63  64
//!  | ts_ns  | src    | dst    |ports|wire |ip   |pair |flags|path|proto|tcp  |ttl|tos|
//!  |        |        |        |2 × 2|_len |_len |_hash|     |    |col  |flags|   |   |
//! ```
//!
//! It has no payload and no pointer, so a ring can copy it between cores.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One decoded packet: the one of the outermost IP header, or with [`Flags::INNER`] a packet inside a tunnel.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PacketRecord {
    /// Time of capture, nanoseconds since 1970-01-01 UTC.
    pub ts_ns: u64,
    /// Source address; IPv4 in the first four bytes, the rest zero, or with [`Flags::SEGMENT`] fields of the TCP header
    /// ([`Segment`](crate::Segment)); all zero for non-IP.
    pub src: [u8; 16],
    /// Destination address, laid out as `src`.
    pub dst: [u8; 16],
    /// Source port (TCP, UDP, UDP-Lite, SCTP, DCCP); otherwise 0.
    pub src_port: u16,
    /// Destination port; for ICMP and ICMPv6 `type << 8 | code`; for non-IP the EtherType or 0.
    pub dst_port: u16,
    /// Bytes on the wire (the original length of the frame; at least the captured bytes).
    pub wire_len: u32,
    /// IPv4 total length, or 40 + payload length for IPv6, as in the header, even if it is wrong. A length of 0
    /// (segmentation offload, BIG TCP) is replaced by the packet's length on the wire, but at most that in a jumbo option.
    /// 0 for non-IP and if the field was not captured.
    pub ip_len: u32,
    /// Symmetric keyed hash of the address pair: equal for both directions and all fragments;
    /// 0 for non-IP.
    pub pair_hash: u32,
    /// Properties of the packet.
    pub flags: Flags,
    /// Its path, as a number in [`Paths`](crate::Paths); 0: unknown.
    pub path: u16,
    /// IP protocol number behind all captured IPv6 extension headers.
    pub protocol: u8,
    /// TCP control bits FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128;
    /// 0 unless the packet is TCP and its flags were captured.
    pub tcp_flags: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Type of service (DSCP and ECN), or traffic class.
    pub tos: u8,
}

const _: () = assert!(size_of::<PacketRecord>() == 64 && align_of::<PacketRecord>() == 64);

/// Properties of a packet. A bit is never reused for another meaning.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// IPv4.
    pub const IPV4: Self = Self(1);
    /// IPv6.
    pub const IPV6: Self = Self(1 << 1);
    /// A fragment: IPv4 with MF or an offset, or IPv6 with a fragment header (also an atomic fragment).
    pub const FRAGMENT: Self = Self(1 << 2);
    /// A fragment with an offset other than 0: it carries no transport header.
    pub const LATER_FRAGMENT: Self = Self(1 << 3);
    /// The ports were read from this packet's own transport header.
    pub const PORTS: Self = Self(1 << 4);
    /// The ports (for ICMP, type and code) are those of the datagram's first fragment, seen
    /// earlier. Never together with [`Flags::PORTS`].
    pub const PORTS_FROM_FIRST: Self = Self(1 << 5);
    /// Fewer bytes were captured than were on the wire.
    pub const TRUNCATED: Self = Self(1 << 6);
    /// At least one VLAN tag was present.
    pub const VLAN: Self = Self(1 << 7);
    /// Declared as IP, but without a valid header: another version, a header length below the minimum, or truncated
    /// before the end of the addresses. Such a packet counts as IP; its addresses are zero and its pair hash is 0, so
    /// it belongs to no flow.
    pub const BAD_HEADER: Self = Self(1 << 8);
    /// Data follows the transport header (TCP, UDP), according to the lengths in the headers.
    pub const DATA: Self = Self(1 << 9);
    /// The packet carries a tunnel; the record of the inner packet follows.
    pub const TUNNEL: Self = Self(1 << 10);
    /// The packet was inside a tunnel.
    pub const INNER: Self = Self(1 << 11);
    /// Fields of the TCP header were read for the measurement of performance ([`Segment`](crate::Segment)).
    pub const SEGMENT: Self = Self(1 << 12);
    /// UDP whose payload is not its layer 3 octets less a header of 20 (IPv6: 40) and of 8 octets: a fragment, behind options
    /// or extension headers, with another length in its own header, or without that captured.
    pub const IRREGULAR: Self = Self(1 << 13);

    /// True if every bit of `other` is set here.
    #[inline(always)]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other`.
    #[inline(always)]
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl PacketRecord {
    /// An empty record: all fields zero.
    pub const EMPTY: Self = Self {
        ts_ns: 0,
        src: [0; 16],
        dst: [0; 16],
        src_port: 0,
        dst_port: 0,
        wire_len: 0,
        ip_len: 0,
        pair_hash: 0,
        flags: Flags(0),
        path: 0,
        protocol: 0,
        tcp_flags: 0,
        ttl: 0,
        tos: 0,
    };

    /// True for IPv4 and IPv6 packets.
    #[inline(always)]
    pub const fn is_ip(&self) -> bool {
        self.flags.0 & (Flags::IPV4.0 | Flags::IPV6.0) != 0
    }

    /// Source and destination, without fields of the TCP header: IPv4 in the first four bytes, the rest zero.
    #[inline(always)]
    pub fn addresses(&self) -> [[u8; 16]; 2] {
        let mask = if self.flags.contains(Flags::IPV4) { u128::from(u32::MAX) } else { u128::MAX };
        [self.src, self.dst].map(|bytes| (u128::from_le_bytes(bytes) & mask).to_le_bytes())
    }

    /// The source address, `None` for non-IP packets.
    pub fn source(&self) -> Option<IpAddr> {
        self.address(&self.src)
    }

    /// The destination address, `None` for non-IP packets.
    pub fn destination(&self) -> Option<IpAddr> {
        self.address(&self.dst)
    }

    fn address(&self, bytes: &[u8; 16]) -> Option<IpAddr> {
        if self.flags.contains(Flags::IPV4) {
            let [a, b, c, d, ..] = *bytes;
            Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        } else if self.flags.contains(Flags::IPV6) {
            Some(IpAddr::V6(Ipv6Addr::from(*bytes)))
        } else {
            None
        }
    }
}

impl Default for PacketRecord {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for PacketRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.source(), self.destination()) {
            (Some(src), Some(dst)) => write!(
                f,
                "{} ns: {src}.{} > {dst}.{} protocol {} flags {:#04x} {} octets",
                self.ts_ns,
                self.src_port,
                self.dst_port,
                self.protocol,
                self.tcp_flags,
                self.ip_len
            ),
            _ => write!(
                f,
                "{} ns: non-IP {:#06x}, {} bytes",
                self.ts_ns, self.dst_port, self.wire_len
            ),
        }
    }
}
