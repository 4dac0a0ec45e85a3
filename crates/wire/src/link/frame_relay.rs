//! Frame Relay: Q.922 addresses with multiprotocol encapsulation (RFC 2427), or with EtherTypes as on Cisco devices.
//!
//! ```text
//!  RFC 2427 | address (2 to 4) | 03 | 00? | NLPID | …        CC IPv4, 8E IPv6, 80 SNAP
//!  Cisco    | address (2 to 4) | EtherType | …
//! ```
//!
//! The last byte of an address has its lowest bit set. The byte 00 behind the control byte 03 is padding.

use super::{Next, Stack, ethernet};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);
const ADDRESS_MAX: usize = 4;
const UNNUMBERED_INFORMATION: u8 = 0x03;

/// LINKTYPE_FRELAY.
pub(super) fn frame<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let is_last = |byte: &u8| byte & 1 == 1;
    let last = match frame.bytes.iter().take(ADDRESS_MAX).position(is_last) {
        None if frame.bytes.len() < ADDRESS_MAX => return Err(TRUNCATED),
        // An address has at least two bytes.
        None | Some(0) => return Err(NonIp::Malformed(Layer::Link)),
        Some(last) => last,
    };
    let rest = frame.skip(last + 1).ok_or(TRUNCATED)?;
    match rest.bytes {
        [UNNUMBERED_INFORMATION, 0, ..] => nlpid(rest.skip(2).ok_or(TRUNCATED)?, stack),
        [UNNUMBERED_INFORMATION, ..] => nlpid(rest.skip(1).ok_or(TRUNCATED)?, stack),
        _ => {
            let (&number, rest) = rest.take::<2>().ok_or(TRUNCATED)?;
            ethernet::ether_type(u16::from_be_bytes(number), rest, stack)
        }
    }
}

/// Parses the payload of a network layer protocol identifier (ISO/IEC TR 9577).
fn nlpid<'a>(packet: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    match packet.take::<1>().ok_or(TRUNCATED)? {
        (&[0xcc], rest) => Ok(Next::Ipv4(rest)),
        (&[0x8e], rest) => Ok(Next::Ipv6(rest)),
        (&[0x80], rest) => {
            let (header, payload) = rest.take::<5>().ok_or(TRUNCATED)?;
            let number = u16::from_be_bytes([header[3], header[4]]);
            match (&header[..3], number) {
                ([0, 0, 0], _) => ethernet::ether_type(number, payload, stack),
                // Bridged Ethernet, with or without its checksum.
                ([0, 0x80, 0xc2], 1 | 7) => ethernet::frame(payload, stack),
                _ => Err(NonIp::Snap),
            }
        }
        (&[other], _) => Err(NonIp::Nlpid(other)),
    }
}
