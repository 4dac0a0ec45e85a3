//! MPLS label stack (RFC 3032) and its payload (RFC 4385, RFC 4448, RFC 5586).
//!
//! ```text
//!  | label (20 bits) | class | bottom | TTL |  …  | payload         four bytes an entry
//! ```
//!
//! No field names the payload of a label, and its first four bits may be those of an Ethernet address. Of these readings the
//! first that its own bytes confirm is taken:
//!
//! ```text
//!  first bits  reading                                       confirmed by
//!  4           IPv4                                          version, lengths, checksum
//!  0           control word, Ethernet frame                  an IP or ARP header in it that is right
//!  any         Ethernet frame                                the same
//!  6           IPv6                                          version, length, source
//!  1           control channel                               its version and reserved byte, 0
//!  0, any      as above                                      an IP header with a wrong checksum, or a known protocol
//! ```

use super::{LinkType, Stack};
use crate::ip::check;
use crate::network::Network;
use crate::reason::{Layer, NonIp, is_known};
use crate::span::Span;

/// Generic associated channel label: a control channel follows, for any first bits.
const CHANNEL_LABEL: u32 = 13;

/// Parses a frame of a link type.
type Strip<'a> = fn(LinkType, Span<'a>, &mut Stack) -> Result<Network<'a>, NonIp>;

pub(super) fn labels<'a>(
    mut rest: Span<'a>,
    stack: &mut Stack,
    strip: Strip<'a>,
) -> Result<Network<'a>, NonIp> {
    let (is_outermost, mut place) = (stack.mpls_label.is_none(), 0);
    loop {
        let (entry, inner) = rest.take::<4>().ok_or(NonIp::Truncated(Layer::Mpls))?;
        rest = inner;
        let entry = u32::from_be_bytes(*entry);
        stack.label(is_outermost, place, entry >> 12);
        place += 1;
        if entry & 0x100 == 0 {
            stack.deeper()?;
            continue;
        }
        if entry >> 12 == CHANNEL_LABEL {
            return channel(rest);
        }
        return payload(rest, stack, strip);
    }
}

fn payload<'a>(rest: Span<'a>, stack: &mut Stack, strip: Strip<'a>) -> Result<Network<'a>, NonIp> {
    let ip = Network::by_version(rest)?.filter(check::is_proven);
    if let Some(network @ Network::Ipv4(_)) = ip {
        return Ok(network);
    }
    let control_word = rest.bytes[0] >> 4 == 0;
    let mut likely = None;
    for frame in [rest.skip(4).filter(|_| control_word), Some(rest)].into_iter().flatten() {
        let mut read = *stack;
        read.deeper()?;
        let found = strip(LinkType::ETHERNET, frame, &mut read);
        // Readings count against the limit of nesting also if they are given up, so that their number is bounded.
        stack.depth = read.depth;
        match confirmation(frame, &found) {
            Some(Confirmed::Surely) => {
                *stack = read;
                return found;
            }
            Some(Confirmed::Likely) if likely.is_none() => likely = Some((found, read)),
            _ => {}
        }
    }
    match (ip, rest.bytes, likely) {
        (Some(network), ..) => Ok(network),
        (_, [0x10, 0, ..], _) => channel(rest),
        (.., Some((found, mut read))) => {
            read.depth = stack.depth;
            *stack = read;
            found
        }
        // The bytes that would confirm a reading were not captured.
        _ if rest.bytes.len() < CONFIRMING && rest.wire as usize > rest.bytes.len() => {
            Err(NonIp::Truncated(Layer::Ip))
        }
        _ => Err(NonIp::Mpls),
    }
}

/// Control word, Ethernet header, IPv6 header.
const CONFIRMING: usize = 4 + 14 + 40;

enum Confirmed {
    Surely,
    Likely,
}

/// How surely the bytes are the Ethernet frame as which they were read.
fn confirmation(frame: Span<'_>, found: &Result<Network<'_>, NonIp>) -> Option<Confirmed> {
    /// EtherType, Ethernet, IPv4, lengths of their addresses.
    const ARP: [u8; 8] = [0x08, 0x06, 0, 1, 0x08, 0, 6, 4];
    /// Spanning tree, IPX, NetBIOS, IS-IS.
    const ACCESS_POINTS: [u8; 4] = [0x42, 0xe0, 0xf0, 0xfe];
    match found {
        Ok(network) if check::is_proven(network) => Some(Confirmed::Surely),
        Ok(network) if check::fits(network) => Some(Confirmed::Likely),
        Err(_) if frame.bytes.get(12..20) == Some(&ARP) => Some(Confirmed::Surely),
        Err(NonIp::EtherType(number)) if is_known(*number) => Some(Confirmed::Likely),
        Err(NonIp::Llc(number)) if ACCESS_POINTS.contains(number) => Some(Confirmed::Likely),
        Err(NonIp::Snap | NonIp::RawIpx | NonIp::Ppp(_)) => Some(Confirmed::Likely),
        _ => None,
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
