//! Tunnels that are protocols of IP.

use super::inside::Inside;
use super::{etherip, gre, l2tp};
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHER_IP: u8 = 97;
const L2TP: u8 = 115;

/// Whether packets of this IP protocol, which is not UDP, may be tunnels.
#[inline(always)]
pub(crate) const fn is_protocol(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6 | GRE | ETHER_IP | L2TP)
}

/// Opens the tunnel of an IP protocol.
pub(super) fn open(protocol: u8, payload: Span<'_>) -> Option<Inside<'_>> {
    match protocol {
        IPV4 => Some(Inside::of(TunnelKind::IpIp, 0, Network::Ipv4(payload))),
        IPV6 => Some(Inside::of(TunnelKind::SixInFour, 0, Network::Ipv6(payload))),
        GRE => gre::open(payload),
        ETHER_IP => etherip::open(payload),
        L2TP => l2tp::over_ip(payload),
        _ => None,
    }
}
