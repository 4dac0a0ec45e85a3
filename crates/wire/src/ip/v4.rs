//! IPv4 (RFC 791).
//!
//! ```text
//!  0     1     2           4           6           8     9     10    12      16           20
//!  |4|IHL| TOS | total len | identific.| 0DM|offset| TTL |proto| sum | source | destination| options
//! ```
//!
//! The header is read whatever its checksum says: captures of sent packets hold unfinished ones.
//! A packet declared to be IPv4 counts as IPv4 even if its header is unusable
//! ([`Flags::BAD_HEADER`]).

use super::Fragment;
use crate::fragments::{DatagramKey, FragmentTable};
use crate::hash::HashKey;
use crate::record::{Flags, PacketRecord};
use crate::span::Span;
use crate::transport::{self, TCP, UDP};

const HEADER_LEN: u32 = 20;

/// The common case, whole: no options, no fragment, TCP or UDP with the header captured up to the
/// ports and control bits. Anything else is left untouched for [`decode`].
#[inline(always)]
pub(crate) fn decode_plain(key: &HashKey, packet: Span<'_>, out: &mut PacketRecord) -> bool {
    let Some((h, rest)) = packet.take::<20>() else { return false };
    let total_len = u16::from_be_bytes([h[2], h[3]]);
    // Version 4 and five words of header; neither more fragments nor an offset.
    let plain = h[0] == 0x45 && u16::from_be_bytes([h[6], h[7]]) & 0x3fff == 0;
    let protocol = h[9];
    let needed = if protocol == TCP { 14 } else { 8 };
    if !plain || !(protocol == TCP || protocol == UDP) || u32::from(total_len) < HEADER_LEN + needed
    {
        return false;
    }
    let Some(&[s0, s1, d0, d1, ..]) = rest.bytes.first_chunk::<8>() else { return false };
    let mut tcp_flags = 0;
    if protocol == TCP {
        let Some(&bits) = rest.bytes.get(13) else { return false };
        tcp_flags = bits;
    }
    let src = widen(h[12], h[13], h[14], h[15]);
    let dst = widen(h[16], h[17], h[18], h[19]);
    out.src = src;
    out.dst = dst;
    out.src_port = u16::from_be_bytes([s0, s1]);
    out.dst_port = u16::from_be_bytes([d0, d1]);
    out.ip_len = u32::from(total_len);
    out.pair_hash = key.pair(&src, &dst);
    out.flags.insert(Flags::IPV4);
    out.flags.insert(Flags::PORTS);
    out.protocol = protocol;
    out.tcp_flags = tcp_flags;
    out.ttl = h[8];
    out.tos = h[1];
    true
}

/// Any packet declared to be IPv4.
pub(crate) fn decode(
    key: &HashKey,
    table: &mut FragmentTable,
    packet: Span<'_>,
    out: &mut PacketRecord,
) {
    out.flags.insert(Flags::IPV4);
    // Bytes that were not captured read as zero; what they say is not used.
    let mut h = [0; HEADER_LEN as usize];
    let captured = packet.bytes.len().min(h.len());
    h[..captured].copy_from_slice(&packet.bytes[..captured]);

    let header_len = u32::from(h[0] & 0x0f) * 4;
    if h[0] >> 4 != 4 || header_len < HEADER_LEN {
        out.flags.insert(Flags::BAD_HEADER);
        return;
    }
    if captured >= 4 {
        out.ip_len = match u16::from_be_bytes([h[2], h[3]]) {
            // Left to the network card by TCP segmentation offload: as long as the frame.
            0 => packet.wire,
            total_len => u32::from(total_len),
        };
    }
    if out.ip_len < header_len {
        out.flags.insert(Flags::BAD_HEADER);
        return;
    }
    let place = u16::from_be_bytes([h[6], h[7]]);
    let (later, more) = (place & 0x1fff != 0, place & 0x2000 != 0);
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
        return;
    }
    out.src = widen(h[12], h[13], h[14], h[15]);
    out.dst = widen(h[16], h[17], h[18], h[19]);
    out.pair_hash = key.pair(&out.src, &out.dst);

    let payload = packet.limit(out.ip_len).bytes.get(header_len as usize..).unwrap_or_default();
    if !later && !more {
        transport::read(payload, out);
        return;
    }
    let key = DatagramKey {
        src: out.src,
        dst: out.dst,
        identification: u32::from(u16::from_be_bytes([h[4], h[5]])),
        protocol: u16::from(out.protocol),
    };
    super::fragment(table, Fragment { key, later, more }, payload, out);
}

#[inline(always)]
const fn widen(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}
