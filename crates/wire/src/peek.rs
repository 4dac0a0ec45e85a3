//! Determines a frame's queue from a few of its bytes, before it is decoded.
//!
//! ```text
//! link ─▶ IP addresses ─▶ Some(pair hash)     protocols and ports of tunnels:           None
//!   └───▶ not IP       ─▶ Some(0)             bad or cut IP headers, UDP without ports: None
//! ```
//!
//! Invariant: `Some` is the pair hash of the only record that [`Decoder`](crate::Decoder) makes of the frame. After
//! `None` the frame must be decoded.

use crate::hash::HashKey;
use crate::ip::{self, v4::widen};
use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::span::Span;
use crate::transport::{ICMP, PLAIN_LEN, TCP, UDP};
use crate::tunnel::{self, TunnelPorts, has_ipv6};

/// The pair hash of a frame's record, if it is certain without decoding the frame: `None` for tunnels, for IP headers that
/// are bad or cut, and for UDP without ports; 0 for frames without IP. `original_len` as for
/// [`Decoder::decode`](crate::Decoder::decode), `ports` as for the decoder.
#[inline(always)]
pub fn pair_hash(
    key: &HashKey,
    ports: &TunnelPorts,
    link: LinkType,
    frame: &[u8],
    original_len: u32,
) -> Option<u32> {
    if link == LinkType::ETHERNET
        && let Some(hash) = plain(key, ports, frame).or_else(|| plain6(key, ports, frame))
    {
        return Some(hash);
    }
    look(key, ports, link, frame, original_len)
}

/// The common case, without a branch between TCP and UDP, because they alternate at random: untagged Ethernet, IPv4
/// without options, and not a tunnel. A fragment may be read as having ports; this does not change the result.
#[inline(always)]
fn plain(key: &HashKey, ports: &TunnelPorts, frame: &[u8]) -> Option<u32> {
    let (h, rest) = frame.split_first_chunk::<34>()?;
    let t = rest.first_chunk::<PLAIN_LEN>()?;
    let type_and_version = u32::from_le_bytes([h[12], h[13], h[14], h[15]]) & 0x00ff_ffff;
    let total_len = u16::from_be_bytes([h[16], h[17]]);
    let certain = (type_and_version == 0x0045_0008) & (total_len >= 20) & is_plain(h[23], t, ports);
    if !certain {
        return None;
    }
    let src = widen([h[26], h[27], h[28], h[29]]);
    let dst = widen([h[30], h[31], h[32], h[33]]);
    Some(key.pair(&src, &dst))
}

/// The common case of IPv6, like [`plain`].
#[inline(always)]
fn plain6(key: &HashKey, ports: &TunnelPorts, frame: &[u8]) -> Option<u32> {
    let (h, rest) = frame.split_first_chunk::<54>()?;
    let t = rest.first_chunk::<PLAIN_LEN>()?;
    let version = h[14] >> 4;
    let certain = ([h[12], h[13]] == [0x86, 0xdd]) & (version == 6) & is_plain(h[20], t, ports);
    if !certain {
        return None;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[22..38]);
    dst.copy_from_slice(&h[38..54]);
    Some(key.pair(&src, &dst))
}

/// TCP, or UDP that is certainly not a tunnel's; `t` is the start of its header.
#[inline(always)]
fn is_plain(protocol: u8, t: &[u8; PLAIN_LEN], ports: &TunnelPorts) -> bool {
    let of = [u16::from_be_bytes([t[0], t[1]]), u16::from_be_bytes([t[2], t[3]])];
    let known = (protocol == TCP) | (protocol == UDP);
    known & !ports.filter().suspects(protocol, of, t)
}

/// Handles every case.
#[inline(never)]
fn look(
    key: &HashKey,
    ports: &TunnelPorts,
    link: LinkType,
    frame: &[u8],
    original_len: u32,
) -> Option<u32> {
    let frame = Span::frame(frame, original_len);
    match link::strip(link, frame, &mut Stack::default()) {
        Ok(Network::Ipv4(packet)) => v4(key, ports, packet.bytes),
        Ok(Network::Ipv6(packet)) => v6(key, ports, packet),
        Err(_) => Some(0),
    }
}

fn v4(key: &HashKey, ports: &TunnelPorts, packet: &[u8]) -> Option<u32> {
    let h = packet.first_chunk::<20>()?;
    let header_len = u16::from(h[0] & 0x0f) * 4;
    let total_len = u16::from_be_bytes([h[2], h[3]]);
    // A total length of 0: the network card sets it when it sends. Then the header must be there.
    let is_unset = total_len == 0 && packet.len() < usize::from(header_len);
    if (h[0] >> 4 != 4)
        | (header_len < 20)
        | (total_len.wrapping_sub(1) < header_len.wrapping_sub(1))
        | is_unset
    {
        return None;
    }
    let later = u16::from_be_bytes([h[6], h[7]]) & 0x1fff != 0;
    let payload = packet.get(usize::from(header_len)..).unwrap_or_default();
    if !later && may_be_tunnel(ports, h[9], payload) {
        return None;
    }
    let src = widen([h[12], h[13], h[14], h[15]]);
    let dst = widen([h[16], h[17], h[18], h[19]]);
    Some(key.pair(&src, &dst))
}

fn v6(key: &HashKey, ports: &TunnelPorts, packet: Span<'_>) -> Option<u32> {
    let (h, rest) = packet.take::<40>().filter(|(h, _)| h[0] >> 4 == 6)?;
    if let Some((protocol, payload)) = ip::v6::carried(h, rest)
        && may_be_tunnel(ports, protocol, payload.bytes)
    {
        return None;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[8..24]);
    dst.copy_from_slice(&h[24..40]);
    Some(key.pair(&src, &dst))
}

/// Returns true if a packet of this protocol, whose header `payload` begins with, may carry another packet.
fn may_be_tunnel(ports: &TunnelPorts, protocol: u8, payload: &[u8]) -> bool {
    match protocol {
        TCP | ICMP => false,
        UDP => {
            let Some(&[s0, s1, d0, d1]) = payload.first_chunk() else { return true };
            let known = [[s0, s1], [d0, d1]].map(u16::from_be_bytes);
            known.into_iter().any(|port| ports.has(port))
                || payload.first_chunk().is_some_and(has_ipv6)
        }
        other => tunnel::is_protocol(other),
    }
}
