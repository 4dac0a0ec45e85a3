//! `Inside`: the content of a tunnel; and what tunnels have in common.

use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

/// The content of a tunnel.
pub(crate) struct Inside<'a> {
    pub(crate) kind: TunnelKind,
    /// The tunnel's identifier, as in [`Tunnel::id`](crate::Tunnel::id).
    pub(crate) id: u32,
    pub(crate) network: Network<'a>,
    /// Destination and source of its Ethernet header; zeros without one.
    pub(crate) macs: [u8; 12],
}

/// What follows the headers of a tunnel.
pub(super) struct Content<'a> {
    pub(super) network: Network<'a>,
    macs: [u8; 12],
}

impl<'a> From<Network<'a>> for Content<'a> {
    fn from(network: Network<'a>) -> Self {
        Self { network, macs: [0; 12] }
    }
}

impl<'a> Inside<'a> {
    pub(super) fn of(kind: TunnelKind, id: u32, content: impl Into<Content<'a>>) -> Self {
        let Content { network, macs } = content.into();
        Self { kind, id, network, macs }
    }
}

/// The network layer declared by an EtherType in a tunnel's header: IP, MPLS, a whole frame and others.
pub(super) fn ether_type(number: u16, packet: Span<'_>) -> Option<Content<'_>> {
    let mut stack = Stack::in_tunnel();
    let network = link::ether_type(number, packet, &mut stack).ok()?;
    Some(Content { network, macs: stack.macs })
}

/// The network layer behind a network service header or the like, by the number in it.
pub(super) fn service(number: u8, packet: Span<'_>) -> Option<Content<'_>> {
    let mut stack = Stack::in_tunnel();
    let network = link::service(number, packet, &mut stack).ok()?;
    Some(Content { network, macs: stack.macs })
}

/// The network layer of a whole Ethernet frame.
pub(super) fn ethernet(frame: Span<'_>) -> Option<Content<'_>> {
    of_link(LinkType::ETHERNET, frame)
}

/// The network layer of a frame of any link.
pub(super) fn of_link(link: LinkType, frame: Span<'_>) -> Option<Content<'_>> {
    let mut stack = Stack::in_tunnel();
    let network = link::strip(link, frame, &mut stack).ok()?;
    Some(Content { network, macs: stack.macs })
}
