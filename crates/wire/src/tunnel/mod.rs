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
mod l2tp;
mod lisp;
mod ports;
mod teredo;
mod vxlan;
mod vxlan_gpe;

use crate::carried::Carried;
use crate::ip::check;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::record::PacketRecord;
use crate::span::Span;
use crate::transport::UDP;

pub use choice::{PortKind, Tunnels};
pub(crate) use inside::Inside;
pub use ports::{InvalidTunnelPorts, TunnelPorts};
pub(crate) use ports::{Watched, has_ipv6};

/// Most nested tunnels that are opened.
pub(crate) const DEPTH_MAX: usize = 8;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHER_IP: u8 = 97;
const L2TP: u8 = 115;
const UDP_HEADER_LEN: usize = 8;

/// Whether packets of this IP protocol, which is not UDP, may be tunnels.
#[inline(always)]
pub(crate) const fn is_protocol(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6 | GRE | ETHER_IP | L2TP)
}

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
        _ => of_protocol(protocol, payload)?,
    };
    let is_packet = match protocol {
        // A first fragment has only a part of the inner packet.
        UDP if whole => check::is_likely(&inside.network),
        _ => check::len(&inside.network).is_some(),
    };
    is_packet.then_some(inside)
}

/// The tunnels that have an IP protocol.
fn of_protocol(protocol: u8, payload: Span<'_>) -> Option<Inside<'_>> {
    match protocol {
        IPV4 => Some(Inside::of(TunnelKind::IpIp, 0, Network::Ipv4(payload))),
        IPV6 => Some(Inside::of(TunnelKind::SixInFour, 0, Network::Ipv6(payload))),
        GRE => gre::open(payload),
        ETHER_IP => etherip::open(payload),
        L2TP => l2tp::over_ip(payload),
        _ => None,
    }
}

/// The tunnels over UDP, by the destination port, then by the source port, then by the content.
fn by_port<'a>(
    outer: &PacketRecord,
    payload: Span<'a>,
    whole: bool,
    ports: &TunnelPorts,
) -> Option<Inside<'a>> {
    let data = payload.skip(UDP_HEADER_LEN)?;
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
