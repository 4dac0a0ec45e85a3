//! `Network`: the packet of the network layer within a frame.

use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// The network layer that the link layer declares, and its packet.
#[derive(Clone, Copy)]
pub(crate) enum Network<'a> {
    Ipv4(Span<'a>),
    Ipv6(Span<'a>),
}

impl<'a> Network<'a> {
    /// The packet of the version in the first four bits; `None` if these are not 4 or 6.
    pub(crate) fn by_version(packet: Span<'a>) -> Result<Option<Self>, NonIp> {
        let [first, ..] = packet.bytes else { return Err(NonIp::Truncated(Layer::Ip)) };
        Ok(match first >> 4 {
            4 => Some(Self::Ipv4(packet)),
            6 => Some(Self::Ipv6(packet)),
            _ => None,
        })
    }
}
