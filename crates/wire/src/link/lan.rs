//! Local networks other than Ethernet, and Ethernet behind a capture device's header.
//!
//! ```text
//!  Token Ring   | access | control | destination (6) | source (6) | route? | LLC …       IEEE 802.5
//!  FDDI         | control | destination (6) | source (6) | LLC …
//!  Fibre Ch.    | destination (8) | source (8) | LLC …                                   RFC 2625
//!  ATM          | LLC …        bridged Ethernet: SNAP of 00-80-C2, 2 bytes of padding    RFC 2684
//!  InfiniBand   | global routing header (40) | EtherType | 0 (2) | …                     RFC 4391
//!  netANALYZER  | 4 bytes | Ethernet with checksum          transparent: 8 bytes of preamble between
//! ```
//!
//! If the first bit of a Token Ring source address is set, routing information follows it: at least two bytes; the
//! lower five bits of its first byte are its length.

use super::{Next, Stack, ethernet};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);

/// LINKTYPE_IEEE802_5.
pub(super) fn token_ring<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const LLC: u8 = 1;
    let (header, mut rest) = frame.take::<14>().ok_or(TRUNCATED)?;
    if header[1] >> 6 != LLC {
        return Err(NonIp::LanControl);
    }
    if header[8] & 0x80 != 0 {
        let route_len = usize::from(rest.bytes.first().ok_or(TRUNCATED)? & 0x1f);
        if route_len < 2 {
            return Err(NonIp::Malformed(Layer::Link));
        }
        rest = rest.skip(route_len).ok_or(TRUNCATED)?;
    }
    ethernet::llc(rest, stack)
}

/// LINKTYPE_FDDI.
pub(super) fn fddi<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (header, rest) = frame.take::<13>().ok_or(TRUNCATED)?;
    match header[0] >> 4 {
        // Asynchronous and synchronous LLC with addresses of 48 bits.
        0x5 | 0xd => ethernet::llc(rest, stack),
        _ => Err(NonIp::LanControl),
    }
}

/// LINKTYPE_IP_OVER_FC.
pub(super) fn fibre_channel<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (_, rest) = frame.take::<16>().ok_or(TRUNCATED)?;
    ethernet::llc(rest, stack)
}

/// LINKTYPE_ATM_RFC1483.
pub(super) fn atm<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    match frame.bytes {
        // Bridged Ethernet, with or without its checksum.
        [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 1 | 7, ..] => {
            ethernet::frame(frame.skip(10).ok_or(TRUNCATED)?, stack)
        }
        _ => ethernet::llc(frame, stack),
    }
}

/// LINKTYPE_IPOIB.
pub(super) fn infiniband<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (header, rest) = frame.take::<44>().ok_or(TRUNCATED)?;
    ethernet::ether_type(u16::from_be_bytes([header[40], header[41]]), rest, stack)
}

/// LINKTYPE_NETANALYZER and, with a preamble, LINKTYPE_NETANALYZER_TRANSPARENT.
pub(super) fn net_analyzer<'a>(
    frame: Span<'a>,
    preamble_len: usize,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    ethernet::frame(frame.skip(4 + preamble_len).ok_or(TRUNCATED)?, stack)
}
