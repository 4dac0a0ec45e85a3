//! ARCnet: RFC 1201, whose packets may be split into frames, and the older RFC 1051.
//!
//! ```text
//!  BSD     | source | destination | type | …                                                RFC 1051
//!          | source | destination | type | split | sequence (2) | …                         RFC 1201
//!          | source | destination | type | FF | FF FF | type | split | sequence (2) | …     exception
//!  Linux   | source | destination | offset (2) | type | …           as both, without exception
//! ```
//!
//! `split` is 0 for a whole packet, odd in the first of its frames and even in later ones.

use super::{Next, Stack, ethernet};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);

/// LINKTYPE_ARCNET_BSD.
pub(super) fn bsd<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    typed(frame.skip(2).ok_or(TRUNCATED)?, stack)
}

/// LINKTYPE_ARCNET_LINUX.
pub(super) fn linux<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    typed(frame.skip(4).ok_or(TRUNCATED)?, stack)
}

fn typed<'a>(rest: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const EXCEPTION: u8 = 0xff;
    let (&[kind], rest) = rest.take::<1>().ok_or(TRUNCATED)?;
    match kind {
        240 => return Ok(Next::Ipv4(rest)),
        241 => return ethernet::ether_type(ARP, rest, stack),
        _ => {}
    }
    let (&[mut split, ..], mut rest) = rest.take::<3>().ok_or(TRUNCATED)?;
    if split == EXCEPTION {
        let (&[_, own, ..], inner) = rest.take::<4>().ok_or(TRUNCATED)?;
        (split, rest) = (own, inner);
    }
    let later = split != 0 && split & 1 == 0;
    match kind {
        _ if later => Err(NonIp::Arcnet(kind)),
        212 => Ok(Next::Ipv4(rest)),
        196 => Ok(Next::Ipv6(rest)),
        213 => ethernet::ether_type(ARP, rest, stack),
        _ => Err(NonIp::Arcnet(kind)),
    }
}

const ARP: u16 = 0x0806;
