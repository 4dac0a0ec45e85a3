//! MPLS label stack (RFC 3032) and its payload (RFC 4385, RFC 4448, RFC 5586).
//!
//! ```text
//!  | label (20 bits) | class | bottom | TTL |  …  | payload         four bytes an entry
//! ```
//!
//! Labels do not contain the payload's type, so its first four bits decide: 4 and 6 are IP, 1 is a control channel, 0
//! is an Ethernet pseudowire, usually with a control word.

use super::{LinkType, Network, Stack, ip_by_version, strip};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// Generic associated channel label: a control channel follows, for any first bits.
const CHANNEL_LABEL: u32 = 13;

pub(super) fn labels<'a>(mut rest: Span<'a>, stack: &mut Stack) -> Result<Network<'a>, NonIp> {
    loop {
        let (entry, inner) = rest.take::<4>().ok_or(NonIp::Truncated(Layer::Mpls))?;
        rest = inner;
        let entry = u32::from_be_bytes(*entry);
        stack.mpls_label.get_or_insert(entry >> 12);
        if entry & 0x100 == 0 {
            stack.deeper()?;
            continue;
        }
        if entry >> 12 == CHANNEL_LABEL {
            return channel(rest);
        }
        if let Some(network) = ip_by_version(rest)? {
            return Ok(network);
        }
        return match rest.bytes[0] >> 4 {
            0 => pseudowire(rest, stack),
            1 => channel(rest),
            _ => Err(NonIp::Mpls),
        };
    }
}

/// `0001 | version | reserved | channel type | …`: IP has its PPP number as channel type.
fn channel(rest: Span<'_>) -> Result<Network<'_>, NonIp> {
    let (header, payload) = rest.take::<4>().ok_or(NonIp::Truncated(Layer::Mpls))?;
    match u16::from_be_bytes([header[2], header[3]]) {
        0x0021 => Ok(Network::Ipv4(payload)),
        0x0057 => Ok(Network::Ipv6(payload)),
        _ => Err(NonIp::Mpls),
    }
}

/// An Ethernet frame behind a control word, unless it is valid only without one.
fn pseudowire<'a>(rest: Span<'a>, stack: &mut Stack) -> Result<Network<'a>, NonIp> {
    const CONTROL_WORD: usize = 4;
    let plausible = |at: usize| {
        let number = rest.bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        matches!(number, Some(0x0800 | 0x0806 | 0x86dd | 0x8100 | 0x88a8 | 0x8847 | 0x8864))
    };
    stack.deeper()?;
    if !plausible(CONTROL_WORD + 12) && plausible(12) {
        return strip(LinkType::ETHERNET, rest, stack);
    }
    let (_, frame) = rest.take::<CONTROL_WORD>().ok_or(NonIp::Truncated(Layer::Mpls))?;
    strip(LinkType::ETHERNET, frame, stack)
}
