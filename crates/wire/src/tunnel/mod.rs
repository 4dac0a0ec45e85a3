//! Tunnels: finds the packet inside an IP packet.
//!
//! ```text
//!  IP │ 4                          IP within IP             RFC 2003
//!     │ 41                         IPv6 within IP           RFC 4213
//!     │ 47   GRE                   gre, erspan
//!     │ 97   EtherIP               etherip
//!     │ 115  L2TP version 3        l2tp
//!     │ 17   UDP │ ports           vxlan, geneve, gtp, …
//!                │ any             teredo
//! ```
//!
//! UDP ports are only a hint, so all fields of the tunnel's header must be valid, and the inner header must be one: its
//! packet must fit into the datagram, and its checksum be right. Otherwise the packet is treated as an ordinary one.
//!
//! Invariants: an opened tunnel has a complete and valid inner IP header. The caller opens nested tunnels, so nothing
//! recurses here.

mod capwap;
mod choice;
mod erspan;
mod etherip;
mod geneve;
mod gre;
mod gtp;
mod gue;
mod inside;
mod ip;
mod l2tp;
mod lisp;
mod ports;
mod teredo;
mod vxlan;
mod vxlan_gpe;

use crate::carried::Carried;
use crate::ip::check;
use crate::path::TunnelKind;
use crate::record::PacketRecord;
use crate::span::Span;
use crate::transport::UDP;

pub use choice::{PortKind, Tunnels};
pub(crate) use inside::Inside;
pub(crate) use ip::is_protocol;
pub use ports::{InvalidTunnelPorts, TunnelPorts};
pub(crate) use ports::{Watched, has_ipv6};

/// Most nested tunnels that are opened.
pub(crate) const DEPTH_MAX: usize = 8;

const UDP_HEADER_LEN: usize = 8;

/// Opens the tunnel in the payload of `outer`; `None` if it is not a tunnel with an IP packet.
#[inline(always)]
pub(crate) fn open<'a>(
    outer: &PacketRecord,
    carried: &Carried<'a>,
    ports: &TunnelPorts,
) -> Option<Inside<'a>> {
    match carried.protocol {
        protocol if protocol == UDP || is_protocol(protocol) => try_open(outer, carried, ports),
        _ => None,
    }
}

#[inline(never)]
fn try_open<'a>(
    outer: &PacketRecord,
    carried: &Carried<'a>,
    ports: &TunnelPorts,
) -> Option<Inside<'a>> {
    let &Carried { protocol, payload, whole } = carried;
    let inside = match protocol {
        UDP => by_port(outer, payload, whole, ports)?,
        _ => ip::open(protocol, payload)?,
    };
    let is_packet = match protocol {
        // A first fragment has only a part of the inner packet.
        UDP if whole => check::is_likely(&inside.network),
        _ => check::len(&inside.network).is_some(),
    };
    is_packet.then_some(inside)
}

/// The tunnels over UDP, by the destination port, then by the source port, then by the content.
fn by_port<'a>(
    outer: &PacketRecord,
    payload: Span<'a>,
    whole: bool,
    ports: &TunnelPorts,
) -> Option<Inside<'a>> {
    let data = payload.skip(UDP_HEADER_LEN)?;
    let ends = [outer.dst_port, outer.src_port];
    if ends.iter().any(|port| ports.kind(*port) == Some(PortKind::None)) {
        return None;
    }
    let open = |kind| of_kind(kind, data, whole);
    let by_dst = || ports.kind(outer.dst_port).and_then(open);
    let by_src = || ports.kind(outer.src_port).filter(|kind| is_either(*kind)).and_then(open);
    let by_content = || payload.bytes.first_chunk().filter(|start| has_ipv6(start));
    by_dst().or_else(by_src).or_else(|| by_content().and_then(|_| teredo::unannounced(data)))
}

/// Whether answers come from the port of these tunnels; the others have any source port.
fn is_either(kind: PortKind) -> bool {
    matches!(kind, PortKind::Capwap | PortKind::GtpU | PortKind::L2tp | PortKind::Teredo)
}

fn of_kind(kind: PortKind, data: Span<'_>, whole: bool) -> Option<Inside<'_>> {
    match kind {
        PortKind::Capwap => capwap::open(data),
        PortKind::Geneve => geneve::open(data),
        PortKind::Gre => Some(Inside { kind: TunnelKind::GreUdp, ..gre::open(data)? }),
        PortKind::GtpU => gtp::open(data, whole),
        PortKind::Gue => gue::open(data),
        PortKind::L2tp => l2tp::over_udp(data),
        PortKind::Lisp => lisp::open(data),
        PortKind::Mpls => {
            let network = inside::ether_type(MPLS, data)?;
            Some(Inside::of(TunnelKind::MplsUdp, 0, network))
        }
        PortKind::None => None,
        PortKind::Teredo => teredo::open(data),
        PortKind::Vxlan => vxlan::open(data),
        PortKind::VxlanGpe => vxlan_gpe::open(data),
    }
}

/// The EtherType of labels.
const MPLS: u16 = 0x8847;
