//! `Next`: what comes behind a link header.

use super::link_type::LinkType;
use crate::network::Network;
use crate::span::Span;

/// What a link header declares as its payload.
#[derive(Clone, Copy)]
pub(super) enum Next<'a> {
    Ipv4(Span<'a>),
    Ipv6(Span<'a>),
    /// A frame of another link type.
    Frame(LinkType, Span<'a>),
    /// The payload of a field that is an EtherType or, up to 1500, a length.
    EtherType(u16, Span<'a>),
    /// An MPLS label stack.
    Labels(Span<'a>),
}

impl<'a> From<Network<'a>> for Next<'a> {
    fn from(network: Network<'a>) -> Self {
        match network {
            Network::Ipv4(packet) => Self::Ipv4(packet),
            Network::Ipv6(packet) => Self::Ipv6(packet),
        }
    }
}
