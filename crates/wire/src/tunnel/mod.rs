//! Tunnels: from an IP header that carries one to the packet within.
//!
//! ```text
//!  IP │ 4                          IP within IP             RFC 2003
//!     │ 41                         IPv6 within IP           RFC 4213
//!     │ 47   GRE                   gre, erspan
//!     │ 17   UDP │ 4789, 8472 →    vxlan
//!                │ 6081 →          geneve
//!                │ 2152            gtp
//!                │ 3544            teredo
//! ```
//!
//! UDP ports are a mere hint, so what they lead to must look like the tunnel in every detail, and the packet within must
//! fit into the datagram. Whatever does not is no tunnel but a packet like any other.
//!
//! Invariants: an opened tunnel holds an IP header that was captured whole and is usable. What lies in a tunnel is
//! opened again by the caller, so nothing here recurses.

mod choice;
mod erspan;
mod geneve;
mod gre;
mod gtp;
mod teredo;
mod vxlan;
mod watched;

use crate::carried::Carried;
use crate::link::{self, Network, Stack};
use crate::path::TunnelKind;
use crate::record::PacketRecord;
use crate::span::Span;
use crate::transport::UDP;

pub use choice::Tunnels;
pub(crate) use watched::Watched;

/// Tunnels within tunnels are followed this deep.
pub(crate) const DEPTH_MAX: usize = 8;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const UDP_HEADER_LEN: usize = 8;

pub(crate) const GTP_PORT: u16 = 2152;
pub(crate) const TEREDO_PORT: u16 = 3544;
pub(crate) const VXLAN_PORT: u16 = 4789;
pub(crate) const GENEVE_PORT: u16 = 6081;
/// Where Linux sent VXLAN before there was a port for it.
pub(crate) const VXLAN_PORT_OLD: u16 = 8472;

/// What a tunnel holds.
pub(crate) struct Inside<'a> {
    pub(crate) kind: TunnelKind,
    /// See [`Tunnel::id`](crate::Tunnel::id).
    pub(crate) id: u32,
    pub(crate) network: Network<'a>,
}

/// Opens the tunnel that `outer` carries, if it is one with an IP packet within.
#[inline(always)]
pub(crate) fn open<'a>(outer: &PacketRecord, carried: &Carried<'a>) -> Option<Inside<'a>> {
    match carried.protocol {
        IPV4 | IPV6 | GRE | UDP => try_open(outer, carried),
        _ => None,
    }
}

#[inline(never)]
fn try_open<'a>(outer: &PacketRecord, carried: &Carried<'a>) -> Option<Inside<'a>> {
    let &Carried { protocol, payload, whole } = carried;
    let inside = match protocol {
        IPV4 => Inside { kind: TunnelKind::IpIp, id: 0, network: Network::Ipv4(payload) },
        IPV6 => Inside { kind: TunnelKind::SixInFour, id: 0, network: Network::Ipv6(payload) },
        GRE => gre::open(payload)?,
        UDP => by_port(outer, payload.skip(UDP_HEADER_LEN)?, whole)?,
        _ => return None,
    };
    // Of a first fragment only a part of what is within is here.
    let must_fit = whole && protocol == UDP;
    usable(&inside.network, must_fit).then_some(inside)
}

/// The destination's port says more than the source's.
fn by_port<'a>(outer: &PacketRecord, data: Span<'a>, whole: bool) -> Option<Inside<'a>> {
    match (outer.src_port, outer.dst_port) {
        (_, VXLAN_PORT | VXLAN_PORT_OLD) => vxlan::open(data),
        (_, GENEVE_PORT) => geneve::open(data),
        (_, GTP_PORT) | (GTP_PORT, _) => gtp::open(data, whole),
        (_, TEREDO_PORT) | (TEREDO_PORT, _) => teredo::open(data),
        _ => None,
    }
}

/// Whether there is a whole header that does not contradict itself and, if asked, is not longer than there is room.
fn usable(network: &Network<'_>, must_fit: bool) -> bool {
    let word = |high, low| u32::from(u16::from_be_bytes([high, low]));
    match network {
        Network::Ipv4(packet) => packet.bytes.first_chunk::<20>().is_some_and(|h| {
            let (header_len, total_len) = (u32::from(h[0] & 0x0f) * 4, word(h[2], h[3]));
            h[0] >> 4 == 4
                && header_len >= 20
                && (total_len == 0 || total_len >= header_len)
                && (!must_fit || total_len <= packet.wire)
        }),
        Network::Ipv6(packet) => packet
            .bytes
            .first_chunk::<40>()
            .is_some_and(|h| h[0] >> 4 == 6 && (!must_fit || 40 + word(h[4], h[5]) <= packet.wire)),
    }
}

/// What an EtherType in a tunnel's header declares: IP, MPLS, a whole frame, ….
fn ether_type(number: u16, packet: Span<'_>) -> Option<Network<'_>> {
    link::ether_type(number, packet, &mut Stack::default()).ok()
}

/// What a whole Ethernet frame holds.
fn ethernet(frame: Span<'_>) -> Option<Network<'_>> {
    link::strip(link::LinkType::ETHERNET, frame, &mut Stack::default()).ok()
}
