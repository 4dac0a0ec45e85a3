//! Linux cooked captures, a link type for captures of all interfaces ("any").
//!
//! ```text
//!  version 1   0      2          4          6         14         16
//!              | kind | hardware | addr len | address | protocol | …
//!  version 2   0          2   4       8          10     11         12        20
//!              | protocol | 0 | index | hardware | kind | addr len | address | …
//! ```
//!
//! `protocol` is an EtherType, or below 0x0600 a number of Linux. Netlink messages have this header, too, but their
//! protocol numbers are not EtherTypes.

use super::{Next, Stack, ethernet, ppp};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// `ARPHRD_NETLINK`
const NETLINK: u16 = 824;

/// LINKTYPE_LINUX_SLL.
pub(super) fn version_1<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (h, rest) = frame.take::<16>().ok_or(NonIp::Truncated(Layer::Link))?;
    protocol([h[2], h[3]], [h[14], h[15]], rest, stack)
}

/// LINKTYPE_LINUX_SLL2.
pub(super) fn version_2<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (h, rest) = frame.take::<20>().ok_or(NonIp::Truncated(Layer::Link))?;
    protocol([h[8], h[9]], [h[0], h[1]], rest, stack)
}

fn protocol<'a>(
    hardware: [u8; 2],
    protocol: [u8; 2],
    rest: Span<'a>,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    if u16::from_be_bytes(hardware) == NETLINK {
        return Err(NonIp::Netlink);
    }
    match u16::from_be_bytes(protocol) {
        0x0001 => Err(NonIp::RawIpx),
        0x0003 => ethernet::frame(rest, stack),
        0x0004 => ethernet::llc(rest, stack),
        0x0007 => ppp::framed(rest, stack),
        number => ethernet::ether_type(number, rest, stack),
    }
}
