//! Tunnels: finds the packet inside an IP packet.
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
//! UDP ports are only a hint, so all fields of the tunnel's header must be valid, and the inner header must be one: its
//! packet must fit into the datagram, and its checksum be right. Otherwise the packet is treated as an ordinary one.
//!
//! Invariants: an opened tunnel has a complete and valid inner IP header. The caller opens nested tunnels, so nothing
//! recurses here.

mod choice;
mod erspan;
mod geneve;
mod gre;
mod gtp;
mod inside;
mod teredo;
mod vxlan;
mod watched;

use crate::carried::Carried;
use crate::ip::check;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::record::PacketRecord;
use crate::span::Span;
use crate::transport::UDP;

pub use choice::Tunnels;
pub(crate) use inside::Inside;
pub(crate) use watched::{GENEVE_PORT, GTP_PORT, TEREDO_PORT, VXLAN_PORT, VXLAN_PORT_OLD, Watched};

/// Most nested tunnels that are opened.
pub(crate) const DEPTH_MAX: usize = 8;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const UDP_HEADER_LEN: usize = 8;

/// Opens the tunnel in the payload of `outer`; `None` if it is not a tunnel with an IP packet.
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
    let is_packet = match protocol {
        // A first fragment has only a part of the inner packet.
        UDP if whole => check::is_likely(&inside.network),
        _ => check::len(&inside.network).is_some(),
    };
    is_packet.then_some(inside)
}

/// The destination port is checked before the source port.
fn by_port<'a>(outer: &PacketRecord, data: Span<'a>, whole: bool) -> Option<Inside<'a>> {
    match (outer.src_port, outer.dst_port) {
        (_, VXLAN_PORT | VXLAN_PORT_OLD) => vxlan::open(data),
        (_, GENEVE_PORT) => geneve::open(data),
        (_, GTP_PORT) | (GTP_PORT, _) => gtp::open(data, whole),
        (_, TEREDO_PORT) | (TEREDO_PORT, _) => teredo::open(data),
        _ => None,
    }
}
