//! Network service header (RFC 8300), and the numbers of its payloads, which VXLAN-GPE has, too.
//!
//! ```text
//!  0                                   2                     3      4          7       8
//!  | version (2)·OU·TTL (6)·words (6)  | ····metadata (4)    | next | path (3) | index | metadata …
//! ```
//!
//! `words` is the length of the whole header in words of four bytes.

use super::{LinkType, Next, Stack};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

pub(super) const ETHER_TYPE: u16 = 0x894f;

/// Parses the header and returns what follows it.
pub(super) fn open<'a>(packet: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const LEN: usize = 8;
    let header = packet.bytes.first_chunk::<LEN>().ok_or(NonIp::Truncated(Layer::Nsh))?;
    let len = usize::from(header[1] & 0x3f) * 4;
    if header[0] >> 6 != 0 || len < LEN {
        return Err(NonIp::Malformed(Layer::Nsh));
    }
    let rest = packet.skip(len).ok_or(NonIp::Truncated(Layer::Nsh))?;
    by_number(header[3], rest, stack)
}

/// Parses the payload of this number.
pub(super) fn by_number<'a>(
    number: u8,
    rest: Span<'a>,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    stack.deeper()?;
    match number {
        1 => Ok(Next::Ipv4(rest)),
        2 => Ok(Next::Ipv6(rest)),
        3 => Ok(Next::Frame(LinkType::ETHERNET, rest)),
        4 => Ok(Next::EtherType(ETHER_TYPE, rest)),
        5 => Ok(Next::Labels(rest)),
        _ => Err(NonIp::EtherType(ETHER_TYPE)),
    }
}
