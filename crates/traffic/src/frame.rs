//! Encodes a packet description as bytes.
//!
//! ```text
//! | Ethernet 14 | VLAN 4 | IPv4 20 or IPv6 40 | fragment 8 | TCP 20, UDP 8, ICMP 8 | zeros |
//! ```
//!
//! Payloads are zeros, so checksums need only the headers and lengths; [`FrameBuffer::write_message`] writes other
//! payloads, for which a checksum is computed from all bytes. All checksums are valid for the whole frame,
//! also of frames that are truncated later.
//!
//! Invariant: behind the headers the buffer contains zeros.

use crate::address::Address;
use crate::segment::Segment;

/// FIN of the TCP control bits.
pub(crate) const FIN: u8 = 1;
/// SYN.
pub(crate) const SYN: u8 = 2;
/// RST.
pub(crate) const RST: u8 = 4;
/// PSH.
pub(crate) const PSH: u8 = 8;
/// ACK.
pub(crate) const ACK: u8 = 16;

/// The usual window of a TCP segment.
pub(crate) const WINDOW: u16 = 0xfaf0;

const HEADERS_MAX: usize = 96;
/// The largest frame without its check sequence, with a tag and a fragment header.
const BUFFER: usize = 9018 + 8;
/// The smallest Ethernet frame, without its check sequence.
const FRAME_MIN: usize = 60;

/// The payload of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp {
        flags: u8,
        seq: u32,
        ack: u32,
        window: u16,
    },
    Udp,
    Echo {
        reply: bool,
        seq: u16,
    },
    /// The first fragment of a UDP datagram; `more` bytes follow in the second.
    FirstFragment {
        more: u32,
    },
    /// The second fragment of a UDP datagram, at this offset (a multiple of 8).
    LaterFragment {
        offset: u32,
    },
    Arp {
        reply: bool,
    },
}

/// The description of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) source: Address,
    pub(crate) destination: Address,
    /// The identifier of an echo.
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    /// 0: no tag.
    pub(crate) vlan: u16,
    /// IP identification.
    pub(crate) ident: u32,
    pub(crate) body: Body,
    /// Bytes behind the transport header; in fragments, behind the IP headers.
    pub(crate) payload: u32,
}

impl Packet {
    /// Bytes of Ethernet (without the tag), IP and transport header.
    pub(crate) fn headers(ipv6: bool, body: &Body) -> u32 {
        let ip = 14 + if ipv6 { 40 } else { 20 };
        match body {
            Body::Tcp { .. } => ip + 20,
            Body::Udp | Body::Echo { .. } => ip + 8,
            Body::FirstFragment { .. } | Body::LaterFragment { .. } if ipv6 => ip + 8,
            Body::FirstFragment { .. } | Body::LaterFragment { .. } => ip,
            Body::Arp { .. } => 14 + 28,
        }
    }
}

/// A frame's lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Bytes of the frame, padding included.
    pub(crate) frame: u32,
    /// Bytes of the IP packet; 0 for ARP.
    pub(crate) ip: u32,
}

/// A buffer for one frame at a time.
pub(crate) struct FrameBuffer {
    bytes: Box<[u8; BUFFER]>,
}

impl FrameBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: Box::new([0; BUFFER]) }
    }

    pub(crate) fn bytes(&self) -> &[u8; BUFFER] {
        &self.bytes
    }

    /// Writes a packet; replaces the previous one.
    #[inline]
    pub(crate) fn write(&mut self, packet: &Packet) -> Written {
        self.bytes[..HEADERS_MAX].fill(0);
        let b = &mut self.bytes[..];
        // Two routers, so that the packets of a pair have mirrored addresses.
        let (to, from) = if packet.source <= packet.destination { (2, 1) } else { (1, 2) };
        b[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
        let mut at = 12;
        if packet.vlan != 0 {
            put16(b, at, 0x8100);
            put16(b, at + 2, packet.vlan);
            at += 4;
        }
        let ipv6 = packet.source.ipv6;
        let (end, ip) = match packet.body {
            Body::Arp { reply } => {
                put16(b, at, 0x0806);
                arp(&mut b[at + 2..], packet, reply);
                (at + 2 + 28, 0)
            }
            _ if ipv6 => {
                put16(b, at, 0x86dd);
                let ip = ip6(&mut b[at + 2..], packet);
                (at + 2 + ip, ip)
            }
            _ => {
                put16(b, at, 0x0800);
                let ip = ip4(&mut b[at + 2..], packet);
                (at + 2 + ip, ip)
            }
        };
        Written { frame: end.max(FRAME_MIN) as u32, ip: ip as u32 }
    }

    /// Writes a UDP or TCP packet with this payload, of as many bytes as the packet has; replaces the previous one. A
    /// buffer for this is not used for other packets.
    pub(crate) fn write_message(&mut self, packet: &Packet, payload: &[u8]) -> Written {
        self.bytes[FRAME_MIN..].fill(0);
        let written = self.write(packet);
        let frame = &mut self.bytes[..written.frame as usize];
        if let Some(segment) = Segment::find(frame) {
            frame[segment.payload..segment.end].copy_from_slice(payload);
            segment.seal(frame);
        }
        written
    }
}

fn arp(b: &mut [u8], packet: &Packet, reply: bool) {
    b[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, if reply { 2 } else { 1 }]);
    b[8..14].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    put32(b, 14, packet.source.bits as u32);
    if reply {
        b[18..24].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    }
    put32(b, 24, packet.destination.bits as u32);
}

/// Returns the length of the IP packet.
#[inline]
fn ip4(b: &mut [u8], packet: &Packet) -> usize {
    put32(b, 12, packet.source.bits as u32);
    put32(b, 16, packet.destination.bits as u32);
    let pseudo = sum(&b[12..20]);
    let (protocol, fragment, length) = upper(&mut b[20..], packet, pseudo, false);
    b[0] = 0x45;
    put16(b, 2, (20 + length) as u16);
    put16(b, 4, packet.ident as u16);
    put16(b, 6, fragment);
    b[8] = 64;
    b[9] = protocol;
    let header = fold(sum(&b[..20]));
    put16(b, 10, header);
    20 + length
}

/// Returns the length of the IP packet.
#[inline]
fn ip6(b: &mut [u8], packet: &Packet) -> usize {
    b[8..24].copy_from_slice(&packet.source.bits.to_be_bytes());
    b[24..40].copy_from_slice(&packet.destination.bits.to_be_bytes());
    let pseudo = sum(&b[8..40]);
    let extension = match packet.body {
        Body::FirstFragment { .. } | Body::LaterFragment { .. } => 8,
        _ => 0,
    };
    let (protocol, fragment, length) = upper(&mut b[40 + extension..], packet, pseudo, true);
    b[0] = 0x60;
    put16(b, 4, (extension + length) as u16);
    b[6] = protocol;
    b[7] = 64;
    if extension > 0 {
        b[6] = 44;
        b[40] = protocol;
        // The 13 bits of the offset are three bits further left than in IPv4, MF is the lowest bit.
        put16(b, 42, fragment << 3 | fragment >> 13 & 1);
        put32(b, 44, packet.ident);
    }
    40 + extension + length
}

/// Writes the payload of the IP packet. Returns its protocol, the flags and offset for IPv4, and its length.
#[inline]
fn upper(b: &mut [u8], packet: &Packet, pseudo: u32, ipv6: bool) -> (u8, u16, usize) {
    const DONT_FRAGMENT: u16 = 0x4000;
    const MORE_FRAGMENTS: u16 = 0x2000;
    let payload = packet.payload;
    if !matches!(packet.body, Body::LaterFragment { .. }) {
        put16(b, 0, packet.source_port);
        put16(b, 2, packet.destination_port);
    }
    match packet.body {
        Body::Tcp { flags, seq, ack, window } => {
            put32(b, 4, seq);
            put32(b, 8, ack);
            b[12] = 0x50;
            b[13] = flags;
            put16(b, 14, window);
            let length = 20 + payload;
            let checksum = fold(pseudo + 6 + length + sum(&b[..20]));
            put16(b, 16, checksum);
            (6, DONT_FRAGMENT, length as usize)
        }
        Body::Udp => {
            let length = 8 + payload;
            udp(b, length, pseudo);
            (17, DONT_FRAGMENT, length as usize)
        }
        Body::Echo { reply, seq } => {
            let (kind, protocol) = match (ipv6, reply) {
                (false, false) => (8, 1),
                (false, true) => (0, 1),
                (true, false) => (128, 58),
                (true, true) => (129, 58),
            };
            let length = 8 + payload;
            put16(b, 0, kind << 8);
            put16(b, 2, 0);
            put16(b, 4, packet.source_port);
            put16(b, 6, seq);
            let pseudo = if ipv6 { pseudo + 58 + length } else { 0 };
            let checksum = fold(pseudo + sum(&b[..8]));
            put16(b, 2, checksum);
            (protocol, DONT_FRAGMENT, length as usize)
        }
        Body::FirstFragment { more } => {
            udp(b, payload + more, pseudo);
            (17, MORE_FRAGMENTS, payload as usize)
        }
        Body::LaterFragment { offset } => (17, (offset / 8) as u16, payload as usize),
        // Not an IP packet: `write` has handled it.
        Body::Arp { .. } => (0, 0, 0),
    }
}

#[inline]
fn udp(b: &mut [u8], length: u32, pseudo: u32) {
    put16(b, 4, length as u16);
    let checksum = fold(pseudo + 17 + length + sum(&b[..8]));
    // A checksum of 0 means that there is none.
    put16(b, 6, if checksum == 0 { 0xffff } else { checksum });
}

#[inline]
fn put16(b: &mut [u8], at: usize, value: u16) {
    b[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn put32(b: &mut [u8], at: usize, value: u32) {
    b[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn sum(b: &[u8]) -> u32 {
    b.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// The Internet checksum of a sum.
#[inline]
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
