//! IPv6 (RFC 8200) with its extension headers.
//!
//! ```text
//!  0      4          6      7     8        24            40
//!  | flow | payload  | next | hop | source | destination | extension headers … transport
//!  | info | length   |      |     |        |             |
//!
//!  extension:  | next | length | …           (length + 1) × 8 bytes; AH: (length + 2) × 4
//!  fragment:   | next | 0 | offset·00M | identification |
//! ```
//!
//! A truncated header still counts as IPv6 ([`Flags::BAD_HEADER`]). A packet of another version does not: no other
//! protocol uses that EtherType.

use super::fragment::{self, Fragment};
use super::{Context, Data, length};
use crate::carried::Carried;
use crate::fragments::DatagramKey;
use crate::part::Part;
use crate::reason::{Layer, NonIp};
use crate::record::{Flags, PacketRecord};
use crate::span::Span;
use crate::transport::{self, PLAIN_LEN, Plain, TCP, UDP};

const HEADER_LEN: u32 = 40;
/// RFC 8200 has seven extension headers in a row; longer chains than this are not followed.
const EXTENSIONS_MAX: u32 = 64;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const SHIM6: u8 = 140;
const NO_NEXT_HEADER: u8 = 59;

/// Decodes the common case completely: no extension headers, TCP, or UDP on ports that are not watched, with at least
/// 14 captured bytes of header and payload. Writes all of `out`; fields that do not come from the packet are copied
/// from `base`. Returns false for other cases; `out` is then undefined.
#[inline(always)]
pub(crate) fn decode_plain(
    context: &Context<'_>,
    base: PacketRecord,
    packet: Span<'_>,
    out: &mut PacketRecord,
) -> Option<Data> {
    let (h, rest) = packet.take::<40>()?;
    let t = rest.bytes.first_chunk::<PLAIN_LEN>()?;
    let payload_len = declared(h);
    let protocol = h[6];
    let plain = (h[0] >> 4 == 6)
        & (payload_len >= PLAIN_LEN as u32)
        & ((protocol == TCP) | (protocol == UDP));
    if !plain {
        return None;
    }
    let (src, dst) = addresses(h);
    let Plain { src_port, dst_port, tcp_flags, flags, header_len } =
        transport::plain(protocol, t, payload_len);
    *out = PacketRecord {
        src,
        dst,
        src_port,
        dst_port,
        ip_len: HEADER_LEN + payload_len,
        pair_hash: context.key.pair(&src, &dst),
        flags: Flags(base.flags.0 | Flags::IPV6.0 | Flags::PORTS.0 | flags),
        protocol,
        tcp_flags,
        ttl: h[7],
        tos: h[0] << 4 | h[1] >> 4,
        ..base
    };
    context.read_segment(rest.bytes, payload_len, out);
    let data = Data { at: HEADER_LEN + u32::from(header_len), end: HEADER_LEN + payload_len };
    let ports = [out.src_port, out.dst_port];
    (!context.watched.suspects(protocol, ports, t)).then_some(data)
}

/// Decodes any packet declared as IPv6.
pub(crate) fn decode<'a>(
    context: &mut Context<'_>,
    packet: Span<'a>,
    out: &mut PacketRecord,
) -> Result<Carried<'a>, NonIp> {
    let Some((h, rest)) = packet.take::<40>().filter(|(h, _)| h[0] >> 4 == 6) else {
        return decode_bad(packet, out).map(|()| Carried::NOTHING);
    };
    let payload_len = payload_len(h, rest);
    out.flags.insert(Flags::IPV6);
    (out.src, out.dst) = addresses(h);
    out.pair_hash = context.key.pair(&out.src, &out.dst);
    out.tos = h[0] << 4 | h[1] >> 4;
    out.ttl = h[7];
    out.ip_len = HEADER_LEN + payload_len;
    out.protocol = h[6];
    Ok(extensions(context, rest, payload_len, out))
}

/// The payload length in the header.
#[inline(always)]
fn declared(h: &[u8; 40]) -> u32 {
    u32::from(u16::from_be_bytes([h[4], h[5]]))
}

/// The length of the payload `rest` of this header.
pub(super) fn payload_len(h: &[u8; 40], rest: Span<'_>) -> u32 {
    effective(declared(h), h[6], rest)
}

/// The payload length from the fields of the header. A packet without a payload has none, also in a longer frame.
fn effective(declared: u32, next: u8, rest: Span<'_>) -> u32 {
    match (declared, next) {
        (0, NO_NEXT_HEADER) => 0,
        (0, HOP_BY_HOP) => length::effective(0, rest.wire, jumbo_payload_len(rest.bytes)),
        _ => length::effective(declared, rest.wire, None),
    }
}

#[inline(always)]
fn addresses(h: &[u8; 40]) -> ([u8; 16], [u8; 16]) {
    let [_, _, _, _, _, _, _, _, addresses @ ..] = h;
    let mut src = [0; 16];
    let mut dst = [0; 16];
    src.copy_from_slice(&addresses[..16]);
    dst.copy_from_slice(&addresses[16..]);
    (src, dst)
}

/// Handles a truncated or invalid header.
#[cold]
fn decode_bad(packet: Span<'_>, out: &mut PacketRecord) -> Result<(), NonIp> {
    if packet.bytes.first().is_some_and(|first| first >> 4 != 6) {
        return Err(NonIp::Malformed(Layer::Ip));
    }
    out.flags.insert(Flags::IPV6);
    out.flags.insert(Flags::BAD_HEADER);
    if let [_, _, _, _, l0, l1, next, ..] = *packet.bytes {
        let rest = Span { bytes: &[], wire: packet.wire.saturating_sub(HEADER_LEN) };
        out.ip_len = HEADER_LEN + effective(u16::from_be_bytes([l0, l1]).into(), next, rest);
        out.protocol = next;
    }
    Ok(())
}

/// Walks the extension headers in a payload of `len` bytes. `out.protocol` becomes the last captured next-header value.
///
/// The mobility (135) and host identity (139) headers end the chain, as ESP does: no header may follow them (RFC 6275,
/// section 6.1.1; RFC 7401, section 5.1).
fn extensions<'a>(
    context: &mut Context<'_>,
    rest: Span<'a>,
    mut len: u32,
    out: &mut PacketRecord,
) -> Carried<'a> {
    let mut payload = rest.limit(len);
    let mut fragment: Option<Fragment> = None;
    for _ in 0..EXTENSIONS_MAX {
        let Some(extension_len) = extension_len(out.protocol, payload.bytes) else { break };
        if let (FRAGMENT, [_, _, p0, p1, i0, i1, i2, i3, ..]) = (out.protocol, payload.bytes) {
            let place = u16::from_be_bytes([*p0, *p1]);
            let key = DatagramKey {
                src: out.src,
                dst: out.dst,
                identification: u32::from_be_bytes([*i0, *i1, *i2, *i3]),
                protocol: DatagramKey::IPV6,
                scope: context.scope,
            };
            fragment = Some(Fragment { key, later: place >> 3 != 0, more: place & 1 != 0 });
        }
        let Some(rest) = payload.skip(extension_len) else { break };
        out.protocol = payload.bytes[0];
        payload = rest;
        len = len.saturating_sub(extension_len as u32);
        if fragment.is_some_and(|fragment| fragment.later) {
            break;
        }
    }
    let protocol = out.protocol;
    let (mut later, mut whole) = (false, true);
    match fragment {
        Some(fragment) => {
            (later, whole) = (fragment.later, !fragment.more);
            fragment::read(context.fragments, fragment, payload.bytes, len, out);
        }
        None => {
            transport::read(payload.bytes, len, out);
            context.read_segment(payload.bytes, len.min(payload.wire), out);
        }
    }
    if later { Carried::NOTHING } else { Carried { protocol, payload, whole } }
}

/// The length in bytes of the extension header `next` at the start of `bytes`; `None` if it is another header or
/// truncated.
fn extension_len(next: u8, bytes: &[u8]) -> Option<usize> {
    match (next, bytes) {
        (HOP_BY_HOP | ROUTING | DESTINATION | SHIM6, [_, words, ..]) => {
            Some((usize::from(*words) + 1) * 8)
        }
        (AUTHENTICATION, [_, words, ..]) => Some((usize::from(*words) + 2) * 4),
        (FRAGMENT, [_, _, _, _, _, _, _, _, ..]) => Some(8),
        _ => None,
    }
}

/// The bytes behind the extension headers of a packet that is not a later fragment.
pub(crate) fn behind(packet: Span<'_>) -> Option<Span<'_>> {
    let (h, rest) = packet.take::<40>()?;
    carried(h, rest).map(|(_, payload)| payload)
}

/// What [`decode`] finds behind the header `h`: the protocol behind the extension headers, or the number of the first one that
/// was not captured completely, and its bytes. `None` for a later fragment.
pub(crate) fn carried<'a>(h: &[u8; 40], rest: Span<'a>) -> Option<(u8, Span<'a>)> {
    let (mut next, mut payload) = (h[6], rest.limit(payload_len(h, rest)));
    for _ in 0..EXTENSIONS_MAX {
        let Some(len) = extension_len(next, payload.bytes) else { break };
        if let (FRAGMENT, [_, _, place_0, place_1, ..]) = (next, payload.bytes)
            && u16::from_be_bytes([*place_0, *place_1]) >> 3 != 0
        {
            return None;
        }
        let Some(rest) = payload.skip(len) else { break };
        next = payload.bytes[0];
        payload = rest;
    }
    Some((next, payload))
}

/// The part of a datagram in a fragment, if it was captured completely.
pub(crate) fn part(packet: Span<'_>, scope: u32) -> Option<Part<'_>> {
    let (h, rest) = packet.take::<40>()?;
    let len = payload_len(h, rest);
    if rest.bytes.len() < len as usize {
        return None;
    }
    let (mut next, mut payload) = (h[6], rest.limit(len));
    for _ in 0..EXTENSIONS_MAX {
        if next == FRAGMENT {
            let (&[protocol, _, p0, p1, i0, i1, i2, i3], behind) = payload.take::<8>()?;
            let place = u32::from(u16::from_be_bytes([p0, p1]));
            let (src, dst) = addresses(h);
            let datagram = DatagramKey {
                src,
                dst,
                identification: u32::from_be_bytes([i0, i1, i2, i3]),
                protocol: DatagramKey::IPV6,
                scope,
            };
            let (offset, more) = (place & !7, place & 1 != 0);
            return Some(Part { datagram, protocol, offset, more, bytes: behind.bytes });
        }
        let len = extension_len(next, payload.bytes)?;
        next = payload.bytes[0];
        payload = payload.skip(len)?;
    }
    None
}

/// The length in a jumbogram's hop-by-hop option (RFC 2675), above 65,535.
fn jumbo_payload_len(hop_by_hop: &[u8]) -> Option<u32> {
    const PAD_1: u8 = 0;
    const JUMBO: u8 = 0xc2;
    let words = usize::from(*hop_by_hop.get(1)?);
    let mut options = hop_by_hop.get(2..(words + 1) * 8)?;
    loop {
        options = match options {
            [JUMBO, 4, a, b, c, d, ..] => {
                return Some(u32::from_be_bytes([*a, *b, *c, *d])).filter(|&len| len > 0xffff);
            }
            [PAD_1, rest @ ..] => rest,
            [_, len, rest @ ..] => rest.get(usize::from(*len)..)?,
            _ => return None,
        };
    }
}
