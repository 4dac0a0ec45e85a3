//! Whether bytes that were only guessed to be an IP packet are one.

use super::{v4, v6};
use crate::network::Network;
use crate::span::Span;

/// The length of a packet with its header; `None` if the header was not captured completely, if it has another version, or
/// if the lengths in it contradict each other.
pub(crate) fn len(network: &Network<'_>) -> Option<u32> {
    match network {
        Network::Ipv4(packet) => {
            let h = packet.bytes.first_chunk::<20>()?;
            let (header_len, total_len) = (v4::header_len(h[0]), v4::total_len(packet)?);
            (h[0] >> 4 == 4 && header_len >= 20 && total_len >= header_len).then_some(total_len)
        }
        Network::Ipv6(packet) => {
            let (h, rest) = packet.take::<40>()?;
            (h[0] >> 4 == 6).then(|| 40 + v6::payload_len(h, rest))
        }
    }
}

/// Whether the header is complete and consistent, and its packet not longer than the bytes on the wire.
pub(crate) fn fits(network: &Network<'_>) -> bool {
    let (Network::Ipv4(packet) | Network::Ipv6(packet)) = network;
    len(network).is_some_and(|len| len <= packet.wire)
}

/// Whether bytes that no field declares as IP are an IP header: it fits, and has what random bytes rarely have, the right
/// checksum (IPv4) or a source that is no group (IPv6).
pub(crate) fn is_proven(network: &Network<'_>) -> bool {
    fits(network)
        && match network {
            Network::Ipv4(packet) => sum(packet) == Some(0xffff),
            Network::Ipv6(packet) => packet.bytes[8] != 0xff,
        }
}

/// Whether a header behind a field that is only a hint, as a UDP port is, is one: it fits, and its checksum is right or 0, as
/// it is before a network card sets it.
pub(crate) fn is_likely(network: &Network<'_>) -> bool {
    let unset = |packet: &Span<'_>| packet.bytes[10..12] == [0, 0];
    match network {
        Network::Ipv4(packet) => fits(network) && (unset(packet) || is_proven(network)),
        Network::Ipv6(_) => is_proven(network),
    }
}

/// The sum of an IPv4 header (RFC 1071), 0xffff if it is right; `None` if it was not captured completely.
fn sum(packet: &Span<'_>) -> Option<u16> {
    let header = packet.bytes.get(..v4::header_len(*packet.bytes.first()?) as usize)?;
    let words = header.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    // At most 30 words: two foldings are enough.
    let fold = |sum: u32| (sum >> 16) + (sum & 0xffff);
    Some(fold(fold(words.sum())) as u16)
}
