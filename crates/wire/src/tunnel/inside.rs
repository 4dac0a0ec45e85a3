//! `Inside`: the content of a tunnel; and what tunnels have in common.

use crate::link::{self, Stack};
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

/// The content of a tunnel.
pub(crate) struct Inside<'a> {
    pub(crate) kind: TunnelKind,
    /// The tunnel's identifier, as in [`Tunnel::id`](crate::Tunnel::id).
    pub(crate) id: u32,
    pub(crate) network: Network<'a>,
}

/// The network layer declared by an EtherType in a tunnel's header: IP, MPLS, a whole frame and others.
pub(super) fn ether_type(number: u16, packet: Span<'_>) -> Option<Network<'_>> {
    link::ether_type(number, packet, &mut Stack::default()).ok()
}

/// The network layer of a whole Ethernet frame.
pub(super) fn ethernet(frame: Span<'_>) -> Option<Network<'_>> {
    link::strip(link::LinkType::ETHERNET, frame, &mut Stack::default()).ok()
}
