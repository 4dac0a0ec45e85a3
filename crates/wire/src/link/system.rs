//! Headers that operating systems put before IP packets.
//!
//! ```text
//!  ENC     | address family, 4 bytes, either byte order | SPI (4) | flags (4) | IP …         OpenBSD's IPsec
//!  PFLOG   | length | address family | …                 up to a multiple of 4 | IP …        OpenBSD's packet filter
//!  IPNET   | version | address family | …                            24 bytes | IP …        Solaris
//!  NFLOG   | address family | 0 | resource (2) | (length | type | value | padding)* …        Linux' netfilter
//! ```
//!
//! Lengths and types in NFLOG have the byte order of the capturing machine. Types are below 256, with two flags in the
//! highest bits, so the byte that is zero without the flags shows the order. Type 9 is the packet.

use super::{Next, Stack, loopback, ppp};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);
const MALFORMED: NonIp = NonIp::Malformed(Layer::Link);

/// LINKTYPE_ENC.
pub(super) fn enc(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    let (header, rest) = frame.take::<12>().ok_or(TRUNCATED)?;
    let [a, b, c, d, ..] = *header;
    let family = match u32::from_be_bytes([a, b, c, d]) {
        big @ ..=0xffff => big,
        _ => u32::from_le_bytes([a, b, c, d]),
    };
    loopback::by_family(family, rest)
}

/// LINKTYPE_PFLOG.
pub(super) fn pflog(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    /// The oldest header, which ends at the direction field.
    const LEAST: u8 = 45;
    let &[len, family] = frame.bytes.first_chunk::<2>().ok_or(TRUNCATED)?;
    if len < LEAST {
        return Err(MALFORMED);
    }
    let rest = frame.skip(usize::from(len).next_multiple_of(4)).ok_or(TRUNCATED)?;
    loopback::by_family(family.into(), rest)
}

/// LINKTYPE_IPNET.
pub(super) fn ipnet(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    const INET6: u8 = 26;
    let (header, rest) = frame.take::<24>().ok_or(TRUNCATED)?;
    match header[1] {
        INET6 => Ok(Next::Ipv6(rest)),
        family => loopback::by_family(family.into(), rest),
    }
}

/// LINKTYPE_NFLOG.
pub(super) fn nflog(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    const PAYLOAD: u16 = 9;
    let (header, mut rest) = frame.take::<4>().ok_or(TRUNCATED)?;
    let &[family, version, ..] = header;
    if version != 0 {
        return Err(MALFORMED);
    }
    loop {
        let (&[l0, l1, t0, t1], value) = rest.take::<4>().ok_or(TRUNCATED)?;
        let read = if t1 & 0x3f == 0 { u16::from_le_bytes } else { u16::from_be_bytes };
        let (len, kind) = (read([l0, l1]), read([t0, t1]) & 0x3fff);
        if len < 4 {
            return Err(MALFORMED);
        }
        if kind == PAYLOAD {
            return loopback::by_family(family.into(), value.limit(u32::from(len) - 4));
        }
        rest = rest.skip(usize::from(len).next_multiple_of(4)).ok_or(TRUNCATED)?;
    }
}

/// LINKTYPE_PPP_PPPD: the first byte of the framing, FF, is replaced by a direction.
pub(super) fn pppd<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (_, rest) = frame.take::<2>().ok_or(NonIp::Truncated(Layer::Ppp))?;
    ppp::protocol(rest, stack)
}
