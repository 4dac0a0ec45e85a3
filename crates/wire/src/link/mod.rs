//! Link layers: from the outermost header, by the capture's link type, to the network layer.
//!
//! The numbers are the `LINKTYPE_…` values of the pcap file format
//! (<https://www.tcpdump.org/linktypes.html>).
//!
//! Invariant: a link layer never looks into an IP header further than its version; it says what
//! the layer below *declares* to follow, and `ip/` judges whether that is true.

mod ethernet;

use crate::reason::NonIp;
use crate::span::Span;

/// A link-layer header type, as pcap files number them (`LINKTYPE_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback, address family in the writer's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
}

/// What the link layer declares to follow it.
pub(crate) enum Network<'a> {
    Ipv4(Span<'a>),
    Ipv6(Span<'a>),
}

/// The outermost VLAN tag of a frame.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vlan {
    /// Identifier of the outermost tag, `None` while no tag was seen.
    pub(crate) outermost: Option<u16>,
}

/// Takes off all link headers.
pub(crate) fn strip<'a>(
    link: LinkType,
    frame: Span<'a>,
    vlan: &mut Vlan,
) -> Result<Network<'a>, NonIp> {
    match link {
        LinkType::ETHERNET => ethernet::frame(frame, vlan),
        LinkType(number) => Err(NonIp::UnsupportedLink(number)),
    }
}
