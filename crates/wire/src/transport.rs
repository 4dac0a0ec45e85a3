//! Transport headers: ports, TCP control bits, ICMP type and code, and whether data follows.
//!
//! ```text
//!          0         2         4          8          12    13     14
//!  TCP     | source  | dest    | sequence | ack      | off | bits |      RFC 9293
//!  others  | source  | dest    | …        UDP, UDP-Lite, SCTP, DCCP
//!  ICMP    | type|code         | …        ICMP, ICMPv6
//! ```
//!
//! The lengths decide whether data follows, not the captured bytes: the length in the IP header, and for TCP `off`, in
//! words of four bytes.
//!
//! Invariant: a field is set only if all of its bytes were captured and are inside the packet.

use crate::record::{Flags, PacketRecord};
use crate::segment::{SEGMENT_LEN, Segment};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// A TCP header up to its control bits; longer than a UDP header.
pub(crate) const PLAIN_LEN: usize = 14;
const UDP_HEADER_LEN: u8 = 8;
const TCP_HEADER_LEN: u32 = 20;
const DCCP: u8 = 33;
pub(crate) const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The data that a TCP or UDP packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The TCP or UDP header.
    pub header: &'a [u8],
    /// The captured bytes behind the header.
    pub bytes: &'a [u8],
    /// TCP: the sequence number in the header; that of the first byte, unless SYN is set. Otherwise 0.
    pub sequence: u32,
}

/// The fields at the start of a TCP or UDP header.
pub(crate) struct Plain {
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) tcp_flags: u8,
    /// Of [`Flags::DATA`] and [`Flags::IRREGULAR`].
    pub(crate) flags: u16,
    /// The length of the header in bytes.
    pub(crate) header_len: u8,
}

/// Reads the start of a TCP or UDP header; `len` is the length of header and data. Without a branch between the two
/// protocols: they alternate at random, so it would often be mispredicted.
#[inline(always)]
pub(crate) fn plain(protocol: u8, t: &[u8; PLAIN_LEN], len: u32) -> Plain {
    let tcp_mask = 0u8.wrapping_sub(u8::from(protocol == TCP));
    let port = |at| u16::from_be_bytes([t[at], t[at + 1]]);
    let header_len = tcp_header_len(t[12]) & tcp_mask | UDP_HEADER_LEN & !tcp_mask;
    let data = u16::from(len > u32::from(header_len)) * Flags::DATA.0;
    let other_len = (port(4) ^ len as u16) & !u16::from_ne_bytes([tcp_mask; 2]);
    let irregular = u16::from(other_len != 0) * Flags::IRREGULAR.0;
    Plain {
        src_port: port(0),
        dst_port: port(2),
        tcp_flags: t[13] & tcp_mask,
        flags: data | irregular,
        header_len,
    }
}

/// The length of a TCP header from its offset byte: 20 to 60.
#[inline(always)]
fn tcp_header_len(offset: u8) -> u8 {
    (offset >> 4 << 2).max(20)
}

/// The captured bytes behind a TCP or UDP header, inside the packet.
#[inline(always)]
pub(crate) fn data(protocol: u8, payload: &[u8]) -> Option<Payload<'_>> {
    match protocol {
        TCP => {
            let &[_, _, _, _, s0, s1, s2, s3, _, _, _, _, offset] = payload.first_chunk::<13>()?;
            let (header, bytes) = payload.split_at_checked(tcp_header_len(offset).into())?;
            Some(Payload { header, bytes, sequence: u32::from_be_bytes([s0, s1, s2, s3]) })
        }
        UDP => {
            let &[l0, l1] = payload.get(4..6)?.first_chunk()?;
            // A length of 0 means a jumbogram, or a length that the network card sets.
            let len = match usize::from(u16::from_be_bytes([l0, l1])) {
                0 => payload.len(),
                len => len.min(payload.len()),
            };
            let (header, bytes) = payload.get(..len)?.split_at_checked(UDP_HEADER_LEN.into())?;
            Some(Payload { header, bytes, sequence: 0 })
        }
        _ => None,
    }
}

/// The segment at the start of a TCP header, if that was captured up to its window; `len` as for [`read`].
pub(crate) fn segment(payload: &[u8], len: u32) -> Option<Segment> {
    let header = payload.first_chunk::<SEGMENT_LEN>().filter(|_| len >= TCP_HEADER_LEN)?;
    Some(Segment::read(header, len, tcp_header_len(header[12])))
}

/// Whether the payload of a UDP datagram follows from the length of its packet ([`Flags::IRREGULAR`]).
fn is_regular(header: &[u8], len: u32, packet: &PacketRecord) -> bool {
    let ip_header = if packet.flags.contains(Flags::IPV6) { 40 } else { 20 };
    let is_own = |&[.., high, low]: &[u8; 6]| u32::from(u16::from_be_bytes([high, low])) == len;
    len >= UDP_HEADER_LEN.into()
        && header.first_chunk().is_some_and(is_own)
        && packet.ip_len.wrapping_sub(len) == ip_header
}

/// Reads the transport header of an unfragmented packet or first fragment; `len` is the length of header and data
/// according to the IP header. Returns true if the ports, or the ICMP type and code, were set.
pub(crate) fn read(payload: &[u8], len: u32, out: &mut PacketRecord) -> bool {
    if out.protocol == UDP && !is_regular(payload, len, out) {
        out.flags.insert(Flags::IRREGULAR);
    }
    match out.protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE => {
            let Some(&[s0, s1, d0, d1]) = payload.first_chunk::<4>() else { return false };
            out.src_port = u16::from_be_bytes([s0, s1]);
            out.dst_port = u16::from_be_bytes([d0, d1]);
            out.flags.insert(Flags::PORTS);
            if out.protocol == TCP
                && let Some(&bits) = payload.get(13)
            {
                out.tcp_flags = bits;
            }
            let header_len = match out.protocol {
                TCP => payload.get(12).map(|&offset| tcp_header_len(offset)),
                UDP => Some(UDP_HEADER_LEN),
                _ => None,
            };
            if header_len.is_some_and(|header_len| len > u32::from(header_len)) {
                out.flags.insert(Flags::DATA);
            }
            true
        }
        ICMP | ICMPV6 => {
            let Some(&kind) = payload.first_chunk::<2>() else { return false };
            out.dst_port = u16::from_be_bytes(kind);
            true
        }
        _ => false,
    }
}
