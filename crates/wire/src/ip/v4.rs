//! IPv4 (RFC 791).
//!
//! ```text
//!  0     1     2           4           6           8     9     10    12      16           20
//!  |4|IHL| TOS | total len | identific.| 0DM|offset| TTL |proto| sum | source | destination| options
//! ```
//!
//! The header is parsed even if its checksum is wrong: captures of sent packets have incomplete checksums. A packet
//! declared as IPv4 counts as IPv4 even if its header is invalid ([`Flags::BAD_HEADER`]).

use super::fragment::{self, Fragment};
use super::{Context, Data, length};
use crate::carried::Carried;
use crate::fragments::DatagramKey;
use crate::part::Part;
use crate::record::{Flags, PacketRecord};
use crate::span::Span;
use crate::transport::{self, PLAIN_LEN, Plain, TCP, UDP};

const HEADER_LEN: u32 = 20;

/// Decodes the common case completely: no options, not a fragment, TCP, or UDP on ports that are not watched, with at
/// least 14 captured bytes of header and payload. Writes all of `out`; fields that do not come from the packet are
/// copied from `base`. Returns the place of the data; `None` for other cases, and `out` is then undefined.
#[inline(always)]
pub(crate) fn decode_plain(
    context: &Context<'_>,
    base: PacketRecord,
    packet: Span<'_>,
    out: &mut PacketRecord,
) -> Option<Data> {
    let (h, rest) = packet.take::<20>()?;
    let t = rest.bytes.first_chunk::<PLAIN_LEN>()?;
    let total_len = u32::from(u16::from_be_bytes([h[2], h[3]]));
    let protocol = h[9];
    // Version 4, a header of five words, no more fragments, offset 0.
    let plain = (h[0] == 0x45)
        & (u16::from_be_bytes([h[6], h[7]]) & 0x3fff == 0)
        & (total_len >= HEADER_LEN + PLAIN_LEN as u32)
        & ((protocol == TCP) | (protocol == UDP));
    if !plain {
        return None;
    }
    let src = widen([h[12], h[13], h[14], h[15]]);
    let dst = widen([h[16], h[17], h[18], h[19]]);
    let Plain { src_port, dst_port, tcp_flags, flags, header_len } =
        transport::plain(protocol, t, total_len - HEADER_LEN);
    *out = PacketRecord {
        src,
        dst,
        src_port,
        dst_port,
        ip_len: total_len,
        pair_hash: context.key.pair(&src, &dst),
        flags: Flags(base.flags.0 | Flags::IPV4.0 | Flags::PORTS.0 | flags),
        protocol,
        tcp_flags,
        ttl: h[8],
        tos: h[1],
        ..base
    };
    context.read_segment(rest.bytes, total_len - HEADER_LEN, out);
    let data = Data { at: HEADER_LEN + u32::from(header_len), end: total_len };
    let ports = [out.src_port, out.dst_port];
    (!context.watched.suspects(protocol, ports, t)).then_some(data)
}

/// Decodes any packet declared as IPv4.
pub(crate) fn decode<'a>(
    context: &mut Context<'_>,
    packet: Span<'a>,
    out: &mut PacketRecord,
) -> Carried<'a> {
    out.flags.insert(Flags::IPV4);
    // Bytes that were not captured read as zero and are not used.
    let mut h = [0; HEADER_LEN as usize];
    let captured = packet.bytes.len().min(h.len());
    h[..captured].copy_from_slice(&packet.bytes[..captured]);

    let header_len = header_len(h[0]);
    if h[0] >> 4 != 4 || header_len < HEADER_LEN {
        out.flags.insert(Flags::BAD_HEADER);
        return Carried::NOTHING;
    }
    if let Some(total_len) = total_len(&packet) {
        out.ip_len = total_len;
        if total_len < header_len {
            out.flags.insert(Flags::BAD_HEADER);
            return Carried::NOTHING;
        }
    }
    let (mut later, mut more) = (false, false);
    if captured >= 8 {
        let place = u16::from_be_bytes([h[6], h[7]]);
        (later, more) = (place & 0x1fff != 0, place & 0x2000 != 0);
    }
    out.tos = h[1];
    out.ttl = h[8];
    out.protocol = h[9];
    if captured < h.len() {
        if later || more {
            out.flags.insert(Flags::FRAGMENT);
        }
        if later {
            out.flags.insert(Flags::LATER_FRAGMENT);
        }
        out.flags.insert(Flags::BAD_HEADER);
        return Carried::NOTHING;
    }
    out.src = widen([h[12], h[13], h[14], h[15]]);
    out.dst = widen([h[16], h[17], h[18], h[19]]);
    out.pair_hash = context.key.pair(&out.src, &out.dst);

    let payload = packet.limit(out.ip_len).skip(header_len as usize);
    let payload = payload.unwrap_or(Carried::NOTHING.payload);
    let len = out.ip_len.saturating_sub(header_len);
    let carried = Carried { protocol: out.protocol, payload, whole: !more };
    if !later && !more {
        transport::read(payload.bytes, len, out);
        context.read_segment(payload.bytes, len.min(payload.wire), out);
        return carried;
    }
    let key = DatagramKey {
        src: out.src,
        dst: out.dst,
        identification: u32::from(u16::from_be_bytes([h[4], h[5]])),
        protocol: u16::from(out.protocol),
        scope: context.scope,
    };
    let fragment = Fragment { key, later, more };
    fragment::read(context.fragments, fragment, payload.bytes, len, out);
    if later { Carried::NOTHING } else { carried }
}

/// The length of a header with this first byte.
#[inline(always)]
pub(super) fn header_len(first: u8) -> u32 {
    u32::from(first & 0x0f) * 4
}

/// The length of a packet with its header; `None` if the field was not captured.
#[inline(always)]
pub(super) fn total_len(packet: &Span<'_>) -> Option<u32> {
    let [_, _, high, low] = *packet.bytes.first_chunk::<4>()?;
    Some(length::effective(u16::from_be_bytes([high, low]).into(), packet.wire, None))
}

/// The bytes behind the header of a packet of `ip_len` bytes.
pub(crate) fn behind(packet: Span<'_>, ip_len: u32) -> Option<Span<'_>> {
    packet.limit(ip_len).skip(header_len(*packet.bytes.first()?) as usize)
}

/// The part of a datagram in a fragment, if it was captured completely.
pub(crate) fn part(packet: Span<'_>, scope: u32) -> Option<Part<'_>> {
    let h = packet.bytes.first_chunk::<20>()?;
    let total_len = total_len(&packet)?;
    let payload = packet.limit(total_len).skip(header_len(h[0]) as usize)?;
    if packet.bytes.len() < total_len as usize {
        return None;
    }
    let place = u16::from_be_bytes([h[6], h[7]]);
    let datagram = DatagramKey {
        src: widen([h[12], h[13], h[14], h[15]]),
        dst: widen([h[16], h[17], h[18], h[19]]),
        identification: u32::from(u16::from_be_bytes([h[4], h[5]])),
        protocol: h[9].into(),
        scope,
    };
    let offset = u32::from(place & 0x1fff) * 8;
    let more = place & 0x2000 != 0;
    Some(Part { datagram, protocol: h[9], offset, more, bytes: payload.bytes })
}

/// The address in the first four bytes, then zeros (written as one wide word instead of single bytes).
#[inline(always)]
pub(crate) fn widen(address: [u8; 4]) -> [u8; 16] {
    u128::from(u32::from_le_bytes(address)).to_le_bytes()
}
