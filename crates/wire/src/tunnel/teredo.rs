//! Teredo (RFC 4380): IPv6 through IPv4 address translators.
//!
//! ```text
//!  | 00 01 | n | m | identifier (n) | value (m) | nonce (8) | confirmation |     authentication, may lack
//!  | 00 00 | port (2) | address (4) |                                            origin, may lack
//!  | IPv6 packet | trailers, may lack
//! ```
//!
//! One address of a packet belongs to a Teredo client, in 2001::/32 (3ffe:831f::/32 in the draft). Messages between
//! clients and servers for their discovery come from fe80::/10 instead.
//!
//! Servers have port 3544, clients and relays any. Between those no other bytes precede or follow the packet.

use super::inside::Inside;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

pub(super) fn open(mut data: Span<'_>) -> Option<Inside<'_>> {
    if let [0, 1, identifier, value, ..] = *data.bytes {
        data = data.skip(13 + usize::from(identifier) + usize::from(value))?;
    }
    if let [0, 0, ..] = *data.bytes {
        data = data.skip(8)?;
    }
    let header = data.bytes.first_chunk::<40>()?;
    let (src, dst) = (header[8..].first_chunk::<4>()?, header[24..].first_chunk::<4>()?);
    let link_local = src[0] == 0xfe && src[1] & 0xc0 == 0x80;
    if !(client(src) || client(dst) || link_local) {
        return None;
    }
    Some(Inside::of(TunnelKind::Teredo, 0, Network::Ipv6(data)))
}

/// A packet between ports that are not the server's: nothing but an IPv6 packet of a client.
pub(super) fn unannounced(data: Span<'_>) -> Option<Inside<'_>> {
    let header = data.bytes.first_chunk::<40>()?;
    let (src, dst) = (header[8..].first_chunk::<4>()?, header[24..].first_chunk::<4>()?);
    (assigned(src) || assigned(dst)).then(|| Inside::of(TunnelKind::Teredo, 0, Network::Ipv6(data)))
}

fn assigned(prefix: &[u8; 4]) -> bool {
    *prefix == [0x20, 0x01, 0, 0]
}

fn client(prefix: &[u8; 4]) -> bool {
    assigned(prefix) || *prefix == [0x3f, 0xfe, 0x83, 0x1f]
}
