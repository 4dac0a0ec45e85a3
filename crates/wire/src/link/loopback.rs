//! BSD loopback headers and raw IP.
//!
//! ```text
//!  NULL   | address family, 4 bytes, byte order of the machine that captured | IP …
//!  LOOP   | address family, 4 bytes, network byte order                      | IP …
//!  RAW    | IP …
//! ```
//!
//! IPv4 is family 2 on all systems; IPv6 is 10 on Linux, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS.

use super::{Next, Stack, ethernet, ppp};
use crate::network::Network;
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// LINKTYPE_NULL. Old systems also write PPP, a 16-bit family or an EtherType here.
pub(super) fn null<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    if frame.bytes.starts_with(&[0xff, 0x03]) {
        return ppp::framed(frame, stack);
    }
    let (header, rest) = frame.take::<4>().ok_or(NonIp::Truncated(Layer::Link))?;
    // A big-endian family has a zero upper half, a 16-bit one a zero lower half. EtherTypes start at 0x0600, so their
    // upper byte is not zero.
    let family = match (*header, u32::from_be_bytes(*header)) {
        (_, big @ ..=0xffff) => big,
        ([0, 1..=5, ..], big) => big >> 16,
        (header, _) => u32::from_le_bytes(header),
    };
    match family {
        0x0600..=0xffff => ethernet::ether_type(family as u16, rest, stack),
        _ => by_family(family, rest),
    }
}

/// LINKTYPE_LOOP.
pub(super) fn network_order(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    let (header, rest) = frame.take::<4>().ok_or(NonIp::Truncated(Layer::Link))?;
    by_family(u32::from_be_bytes(*header), rest)
}

/// LINKTYPE_RAW. Old Linux and Irix systems wrote PPP with this link type.
pub(super) fn raw<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    if frame.bytes.starts_with(&[0xff, 0x03]) {
        return ppp::framed(frame, stack);
    }
    // With fewer than two words the protocol cannot be recognised.
    if frame.bytes.len() < 8 {
        return Err(NonIp::Truncated(Layer::Ip));
    }
    Network::by_version(frame)?.map(Next::from).ok_or(NonIp::Malformed(Layer::Ip))
}

pub(super) fn by_family(family: u32, rest: Span<'_>) -> Result<Next<'_>, NonIp> {
    match family {
        2 => Ok(Next::Ipv4(rest)),
        10 | 24 | 28 | 30 => Ok(Next::Ipv6(rest)),
        other => Err(NonIp::Family(other as u16)),
    }
}
