//! Determines a frame's queue from a few of its bytes, before it is decoded.
//!
//! ```text
//! link ─▶ IP addresses ─▶ Some(pair hash)     protocols 4, 41, 47 and tunnel ports:    None
//!   └───▶ not IP       ─▶ Some(0)             malformed or extended headers:           None
//! ```
//!
//! Invariant: `Some` is the pair hash of the only record that [`Decoder`](crate::Decoder) makes of the frame. After
//! `None` the frame must be decoded.

use crate::hash::HashKey;
use crate::ip::v4::widen;
use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::span::Span;
use crate::transport::{ICMP, ICMPV6, TCP, UDP};
use crate::tunnel::{GENEVE_PORT, GTP_PORT, TEREDO_PORT, VXLAN_PORT, VXLAN_PORT_OLD};

const TUNNEL_PORTS: [u16; 5] = [VXLAN_PORT, VXLAN_PORT_OLD, GENEVE_PORT, GTP_PORT, TEREDO_PORT];
/// One bit for each of them, by their lower six bits: one test excludes nearly all other ports.
const TUNNEL_BITS: u64 = {
    let mut bits = 0;
    let mut at = 0;
    while at < TUNNEL_PORTS.len() {
        bits |= 1 << (TUNNEL_PORTS[at] & 63);
        at += 1;
    }
    bits
};
/// IP protocols of tunnels: IPv4, IPv6, GRE.
const TUNNELS: [u8; 3] = [4, 41, 47];

/// The pair hash of a frame's record, if it is certain without decoding the frame: `None` for tunnels and for malformed
/// or extended headers, 0 for frames without IP. `original_len` as for [`Decoder::decode`](crate::Decoder::decode).
#[inline(always)]
pub fn pair_hash(key: &HashKey, link: LinkType, frame: &[u8], original_len: u32) -> Option<u32> {
    if link == LinkType::ETHERNET
        && let Some(hash) = plain(key, frame).or_else(|| plain6(key, frame))
    {
        return Some(hash);
    }
    look(key, link, frame, original_len)
}

/// The common case, without a branch between TCP and UDP, because they alternate at random: untagged Ethernet, IPv4
/// without options, and not a tunnel's port. A fragment may be read as having ports; this does not change the result.
#[inline(always)]
fn plain(key: &HashKey, frame: &[u8]) -> Option<u32> {
    let h = frame.first_chunk::<38>()?;
    let type_and_version = u32::from_le_bytes([h[12], h[13], h[14], h[15]]) & 0x00ff_ffff;
    let total_len = u16::from_be_bytes([h[16], h[17]]);
    let (protocol, src, dst) = (h[23], h[35], h[37]);
    let tunnel = (TUNNEL_BITS >> (src & 63) | TUNNEL_BITS >> (dst & 63)) & 1;
    let certain = (type_and_version == 0x0045_0008)
        & (total_len >= 20)
        & ((protocol == TCP) | ((protocol == UDP) & (tunnel == 0)));
    if !certain {
        return None;
    }
    let src = widen([h[26], h[27], h[28], h[29]]);
    let dst = widen([h[30], h[31], h[32], h[33]]);
    Some(key.pair(&src, &dst))
}

/// The common case of IPv6, like [`plain`].
#[inline(always)]
fn plain6(key: &HashKey, frame: &[u8]) -> Option<u32> {
    let h = frame.first_chunk::<58>()?;
    let version = h[14] >> 4;
    let (protocol, src, dst) = (h[20], h[55], h[57]);
    let tunnel = (TUNNEL_BITS >> (src & 63) | TUNNEL_BITS >> (dst & 63)) & 1;
    let certain = ([h[12], h[13]] == [0x86, 0xdd])
        & (version == 6)
        & ((protocol == TCP) | ((protocol == UDP) & (tunnel == 0)));
    if !certain {
        return None;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[22..38]);
    dst.copy_from_slice(&h[38..54]);
    Some(key.pair(&src, &dst))
}

/// Handles every case.
#[inline(never)]
fn look(key: &HashKey, link: LinkType, frame: &[u8], original_len: u32) -> Option<u32> {
    let frame = Span::frame(frame, original_len);
    match link::strip(link, frame, &mut Stack::default()) {
        Ok(Network::Ipv4(packet)) => v4(key, packet.bytes),
        Ok(Network::Ipv6(packet)) => v6(key, packet.bytes),
        Err(_) => Some(0),
    }
}

fn v4(key: &HashKey, packet: &[u8]) -> Option<u32> {
    let h = packet.first_chunk::<20>()?;
    let header_len = u16::from(h[0] & 0x0f) * 4;
    let total_len = u16::from_be_bytes([h[2], h[3]]);
    // A total length of 0: the network card sets it when it sends.
    if (h[0] >> 4 != 4)
        | (header_len < 20)
        | (total_len.wrapping_sub(1) < header_len.wrapping_sub(1))
    {
        return None;
    }
    let later = u16::from_be_bytes([h[6], h[7]]) & 0x1fff != 0;
    if !later && may_be_tunnel(h[9], packet, usize::from(header_len)) {
        return None;
    }
    let src = widen([h[12], h[13], h[14], h[15]]);
    let dst = widen([h[16], h[17], h[18], h[19]]);
    Some(key.pair(&src, &dst))
}

fn v6(key: &HashKey, packet: &[u8]) -> Option<u32> {
    let h = packet.first_chunk::<40>()?;
    // Other headers behind it are rare, and may contain a tunnel.
    let plain = matches!(h[6], TCP | UDP | ICMPV6);
    if h[0] >> 4 != 6 || !plain || may_be_tunnel(h[6], packet, 40) {
        return None;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[8..24]);
    dst.copy_from_slice(&h[24..40]);
    Some(key.pair(&src, &dst))
}

/// Returns true if a packet of this protocol, whose header starts at `at`, may carry another packet.
fn may_be_tunnel(protocol: u8, packet: &[u8], at: usize) -> bool {
    match protocol {
        TCP | ICMP => false,
        UDP => match packet.get(at..at + 4) {
            Some(&[s0, s1, d0, d1]) => {
                let (src, dst) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                TUNNEL_PORTS.contains(&src) || TUNNEL_PORTS.contains(&dst)
            }
            _ => true,
        },
        other => TUNNELS.contains(&other),
    }
}
