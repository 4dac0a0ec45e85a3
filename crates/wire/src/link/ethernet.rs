//! Ethernet II with stacked VLAN tags (IEEE 802.3, 802.1Q, 802.1ad).
//!
//! ```text
//!  0              6              12      14            16      18
//!  | destination  | source       | 8100  | PCP·DEI·VID | type  | …      type ≥ 0x0600
//! ```

use super::{Network, Vlan};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// More stacked tags than this are no real network.
const DEPTH_MAX: u32 = 8;

pub(super) fn frame<'a>(frame: Span<'a>, vlan: &mut Vlan) -> Result<Network<'a>, NonIp> {
    let (header, rest) = frame.take::<14>().ok_or(NonIp::Truncated(Layer::Link))?;
    ether_type(u16::from_be_bytes([header[12], header[13]]), rest, vlan)
}

/// What follows an EtherType.
pub(super) fn ether_type<'a>(
    mut number: u16,
    mut rest: Span<'a>,
    vlan: &mut Vlan,
) -> Result<Network<'a>, NonIp> {
    for _ in 0..DEPTH_MAX {
        match number {
            0x0800 => return Ok(Network::Ipv4(rest)),
            0x86dd => return Ok(Network::Ipv6(rest)),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                let (tag, inner) = rest.take::<4>().ok_or(NonIp::Truncated(Layer::Vlan))?;
                vlan.outermost.get_or_insert(u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff);
                number = u16::from_be_bytes([tag[2], tag[3]]);
                rest = inner;
            }
            other => return Err(NonIp::EtherType(other)),
        }
    }
    Err(NonIp::TooDeep)
}
