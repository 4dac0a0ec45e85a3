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
//! A packet declared to be IPv6 counts as IPv6 even if its header is unusable
//! ([`Flags::BAD_HEADER`]).

use super::Fragment;
use crate::fragments::{DatagramKey, FragmentTable};
use crate::hash::HashKey;
use crate::record::{Flags, PacketRecord};
use crate::span::Span;
use crate::transport::{self, TCP, UDP};

const HEADER_LEN: u32 = 40;
/// RFC 8200 knows seven in a row; whoever sends more than this is not worth following.
const EXTENSIONS_MAX: u32 = 24;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Any packet declared to be IPv6.
#[inline]
pub(crate) fn decode(
    key: &HashKey,
    table: &mut FragmentTable,
    packet: Span<'_>,
    out: &mut PacketRecord,
) {
    out.flags.insert(Flags::IPV6);
    let Some((h, rest)) = packet.take::<40>().filter(|(h, _)| h[0] >> 4 == 6) else {
        out.flags.insert(Flags::BAD_HEADER);
        return;
    };
    let [_, _, _, _, l0, l1, next, hop_limit, addresses @ ..] = h;
    let (src, dst) = addresses.split_at(16);
    out.src.copy_from_slice(src);
    out.dst.copy_from_slice(dst);
    out.pair_hash = key.pair(&out.src, &out.dst);
    out.tos = h[0] << 4 | h[1] >> 4;
    out.ttl = *hop_limit;
    let payload_len = u32::from(u16::from_be_bytes([*l0, *l1]));
    out.ip_len = HEADER_LEN + payload_len;
    out.protocol = *next;
    // Length 0 is a jumbogram, or was left to the network card by segmentation offload.
    let payload = if payload_len == 0 { rest } else { rest.limit(payload_len) };
    if *next == TCP || *next == UDP {
        transport::read(payload.bytes, out);
    } else {
        extensions(table, payload.bytes, out);
    }
}

/// Walks the extension headers; `out.protocol` is always the last next-header value captured.
#[cold]
fn extensions(table: &mut FragmentTable, mut payload: &[u8], out: &mut PacketRecord) {
    for _ in 0..EXTENSIONS_MAX {
        let len = match (out.protocol, payload) {
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6, [_, words, ..]) => {
                (usize::from(*words) + 1) * 8
            }
            (AUTHENTICATION, [_, words, ..]) => (usize::from(*words) + 2) * 4,
            (FRAGMENT, [next, _, p0, p1, i0, i1, i2, i3, rest @ ..]) => {
                let place = u16::from_be_bytes([*p0, *p1]);
                let key = DatagramKey {
                    src: out.src,
                    dst: out.dst,
                    identification: u32::from_be_bytes([*i0, *i1, *i2, *i3]),
                    protocol: DatagramKey::IPV6,
                };
                out.protocol = *next;
                let fragment = Fragment { key, later: place >> 3 != 0, more: place & 1 != 0 };
                super::fragment(table, fragment, rest, out);
                return;
            }
            _ => break,
        };
        let Some(rest) = payload.get(len..) else { return };
        out.protocol = payload[0];
        payload = rest;
    }
    transport::read(payload, out);
}
