//! GRE: version 0 (RFC 2784, RFC 2890, RFC 1701) and version 1, of PPTP (RFC 2637).
//!
//! ```text
//!  0          2      4
//!  |CRKSs···v | type | checksum, offset? | key? | sequence? | routing? | packet       v = 0
//!  |··KS····A·v | 880b | length | call | sequence? | acknowledged? | PPP               v = 1
//!
//!  routing:  | family (2) | offset | length | … |  …  | 0 (2) | · | 0 |               while R is set
//! ```
//!
//! `type` is an EtherType, or a number of ERSPAN, WCCP, PPP or of Aruba's access points, which send IEEE 802.11 frames.

use super::erspan;
use super::inside::{Inside, ether_type};
use crate::ip::check;
use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const ACKNOWLEDGED: u16 = 0x0080;
const VERSION: u16 = 0x0007;

const PPP: u16 = 0x880b;
const WCCP: u16 = 0x883e;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
/// Every sixteenth number up to the last one.
const ARUBA_FIRST: u16 = 0x8200;
const ARUBA_LAST: u16 = 0x8370;

pub(super) fn open(packet: Span<'_>) -> Option<Inside<'_>> {
    let (&[f0, f1, t0, t1], rest) = packet.take::<4>()?;
    let (flags, protocol) = (u16::from_be_bytes([f0, f1]), u16::from_be_bytes([t0, t1]));
    match flags & VERSION {
        0 => version_0(flags, protocol, rest),
        1 if protocol == PPP => version_1(flags, rest),
        _ => None,
    }
}

fn version_0(flags: u16, protocol: u16, mut rest: Span<'_>) -> Option<Inside<'_>> {
    if flags & (CHECKSUM | ROUTING) != 0 {
        rest = rest.skip(4)?;
    }
    let mut id = 0;
    if flags & KEY != 0 {
        let (key, inner) = rest.take::<4>()?;
        (id, rest) = (u32::from_be_bytes(*key), inner);
    }
    let sequence = flags & SEQUENCE != 0;
    if sequence {
        rest = rest.skip(4)?;
    }
    if flags & ROUTING != 0 {
        rest = routing(rest)?;
    }
    let content = match protocol {
        ERSPAN | ERSPAN_3 => return erspan::open(sequence, rest),
        WCCP => wccp(rest)?.into(),
        PPP => ppp(rest)?.into(),
        ARUBA_FIRST..=ARUBA_LAST if protocol & 0x0f == 0 => {
            link::wireless(rest, &mut Stack::default()).ok()?.into()
        }
        _ => ether_type(protocol, rest)?,
    };
    Some(Inside::of(TunnelKind::Gre, id, content))
}

/// Skips a list of source routes; the last one is empty.
fn routing(mut rest: Span<'_>) -> Option<Span<'_>> {
    loop {
        let (&[_, _, _, len], route) = rest.take::<4>()?;
        rest = route.skip(usize::from(len))?;
        if len == 0 {
            return Some(rest);
        }
    }
}

/// A redirected IPv4 packet; in WCCP version 2 it follows four bytes.
fn wccp(rest: Span<'_>) -> Option<Network<'_>> {
    let behind = Network::Ipv4(rest.skip(4)?);
    let direct = Network::Ipv4(rest);
    Some(if check::is_likely(&direct) && !check::is_proven(&behind) { direct } else { behind })
}

/// Without a sequence number it is an acknowledgement without data.
fn version_1(flags: u16, rest: Span<'_>) -> Option<Inside<'_>> {
    let (&[l0, l1, c0, c1], mut rest) = rest.take::<4>()?;
    if flags & KEY == 0 || flags & SEQUENCE == 0 {
        return None;
    }
    rest = rest.skip(if flags & ACKNOWLEDGED != 0 { 8 } else { 4 })?;
    let network = ppp(rest.limit(u32::from(u16::from_be_bytes([l0, l1]))))?;
    let id = u32::from(u16::from_be_bytes([c0, c1]));
    Some(Inside::of(TunnelKind::Gre, id, network))
}

fn ppp(rest: Span<'_>) -> Option<Network<'_>> {
    link::strip(LinkType::PPP, rest, &mut Stack::default()).ok()
}
