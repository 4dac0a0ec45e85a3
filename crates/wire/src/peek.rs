//! A glance at a frame that tells which queue it belongs to, for who shares frames out before they
//! are decoded.
//!
//! ```text
//!  link ─▶ IP addresses ─▶ Some(pair hash)     protocols 4, 41, 47 and a tunnel's ports: None
//!    └───▶ not IP       ─▶ Some(0)             broken or extended headers:               None
//! ```
//!
//! Invariant: `Some` is the pair hash of the only record that [`Decoder`](crate::Decoder) makes of
//! the frame. Whoever gets `None` has to decode it.

use crate::hash::HashKey;
use crate::link::{self, LinkType, Network, Stack};
use crate::span::Span;
use crate::transport::{ICMP, ICMPV6, TCP, UDP};

/// UDP ports that carry packets within packets: VXLAN (and as Linux first numbered it), Geneve,
/// GTP-U, Teredo.
const TUNNEL_PORTS: [u16; 5] = [4789, 8472, 6081, 2152, 3544];
/// IP protocols that do: IPv4, IPv6, GRE.
const TUNNELS: [u8; 3] = [4, 41, 47];

/// The pair hash of a frame's record, if it is certain without decoding the frame; see the module.
#[inline]
pub fn pair_hash(key: &HashKey, link: LinkType, frame: &[u8]) -> Option<u32> {
    let wire = u32::try_from(frame.len()).ok()?;
    let frame = Span { bytes: frame, wire };
    if link == LinkType::ETHERNET
        && let Some((header, packet)) = frame.take::<14>()
    {
        match [header[12], header[13]] {
            [0x08, 0x00] => return v4(key, packet.bytes),
            [0x86, 0xdd] => return v6(key, packet.bytes),
            _ => {}
        }
    }
    strip(key, link, frame)
}

#[inline(never)]
fn strip(key: &HashKey, link: LinkType, frame: Span<'_>) -> Option<u32> {
    match link::strip(link, frame, &mut Stack::default()) {
        Ok(Network::Ipv4(packet)) => v4(key, packet.bytes),
        Ok(Network::Ipv6(packet)) => v6(key, packet.bytes),
        Err(_) => Some(0),
    }
}

#[inline(always)]
fn v4(key: &HashKey, packet: &[u8]) -> Option<u32> {
    let h = packet.first_chunk::<20>()?;
    let header_len = u16::from(h[0] & 0x0f) * 4;
    let total_len = u16::from_be_bytes([h[2], h[3]]);
    if h[0] >> 4 != 4 || header_len < 20 || (total_len < header_len && total_len != 0) {
        return None;
    }
    let later = u16::from_be_bytes([h[6], h[7]]) & 0x1fff != 0;
    if !later && may_be_tunnel(h[9], packet, usize::from(header_len)) {
        return None;
    }
    Some(key.pair(&widen(&h[12..16]), &widen(&h[16..20])))
}

#[inline(always)]
fn v6(key: &HashKey, packet: &[u8]) -> Option<u32> {
    let h = packet.first_chunk::<40>()?;
    // Whatever else may follow the header is rare, and may hide a tunnel.
    let plain = matches!(h[6], TCP | UDP | ICMPV6);
    if h[0] >> 4 != 6 || !plain || may_be_tunnel(h[6], packet, 40) {
        return None;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[8..24]);
    dst.copy_from_slice(&h[24..40]);
    Some(key.pair(&src, &dst))
}

/// Whether a packet of this protocol, whose header begins at `at`, may carry another packet.
#[inline(always)]
fn may_be_tunnel(protocol: u8, packet: &[u8], at: usize) -> bool {
    match protocol {
        TCP | ICMP => false,
        UDP => match packet.get(at..at + 4) {
            Some(&[s0, s1, d0, d1]) => {
                let (src, dst) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                TUNNEL_PORTS.contains(&src) | TUNNEL_PORTS.contains(&dst)
            }
            _ => true,
        },
        other => TUNNELS.contains(&other),
    }
}

#[inline(always)]
fn widen(address: &[u8]) -> [u8; 16] {
    let mut wide = [0; 16];
    wide[..4].copy_from_slice(address);
    wide
}
