//! Ethernet II and IEEE 802.3 with LLC and SNAP, and the headers nested in them.
//!
//! ```text
//!  0              6              12      14
//!  | destination  | source       | type  | …                          type ≥ 0x0600
//!  | destination  | source       | length| DSAP|SSAP|control| …       length ≤ 1500 (802.2)
//!                                          AA   AA   03 | OUI (3) | type | …      (SNAP)
//!  VLAN   (8100, 88a8, 9100, 9200)   PCP·DEI·VID | type | …           802.1Q, 802.1ad, QinQ
//!  MPLS   (8847, 8848)               label entries                    RFC 3032
//!  PPPoE  (8864)                     session data                     RFC 2516
//!  NSH    (894f)                     nsh                              RFC 8300
//!  MACsec (88e5)                     macsec                           802.1AE
//!  others                            tags
//! ```

use super::{LinkType, Next, Stack, macsec, nsh, tags};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
const LENGTH_MAX: u16 = 1500;

/// Parses a whole frame.
pub(super) fn frame<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (number, rest) = header(frame, stack)?;
    payload(number, rest, stack)
}

/// Parses the payload of an EtherType.
pub(super) fn ether_type<'a>(
    number: u16,
    rest: Span<'a>,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    match number {
        1..=LENGTH_MAX => Err(NonIp::EtherType(number)),
        _ => type_or_length(number, rest, stack),
    }
}

/// Parses the payload of a field that is an EtherType or, up to 1500, a length.
pub(super) fn type_or_length<'a>(
    number: u16,
    rest: Span<'a>,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    let (number, rest) = tags(number, rest, stack)?;
    payload(number, rest, stack)
}

/// The type or length in the header of a frame, behind all tags, and its payload.
#[inline(always)]
pub(super) fn header<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<(u16, Span<'a>), NonIp> {
    let (header, rest) = frame.take::<14>().ok_or(NonIp::Truncated(Layer::Link))?;
    stack.ethernet(header);
    tags(u16::from_be_bytes([header[12], header[13]]), rest, stack)
}

/// Removes VLAN tags.
#[inline(always)]
fn tags<'a>(
    mut number: u16,
    mut rest: Span<'a>,
    stack: &mut Stack,
) -> Result<(u16, Span<'a>), NonIp> {
    while let 0x8100 | 0x88a8 | 0x9100 | 0x9200 = number {
        stack.deeper()?;
        if let Some(&tag) = rest.bytes.first_chunk::<2>() {
            stack.tag(tag);
        }
        let (tag, inner) = rest.take::<4>().ok_or(NonIp::Truncated(Layer::Vlan))?;
        number = u16::from_be_bytes([tag[2], tag[3]]);
        rest = inner;
    }
    Ok((number, rest))
}

#[inline(never)]
fn payload<'a>(number: u16, rest: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    match number {
        IPV4 => Ok(Next::Ipv4(rest)),
        IPV6 => Ok(Next::Ipv6(rest)),
        1..=LENGTH_MAX => {
            let payload = rest.limit(u32::from(number));
            match payload.bytes {
                [0xff, 0xff, ..] => Err(NonIp::RawIpx),
                _ => llc(payload, stack),
            }
        }
        0x8847 | 0x8848 => Ok(Next::Labels(rest)),
        0x8864 => Ok(Next::Frame(LinkType::PPP_ETHER, rest)),
        nsh::ETHER_TYPE => nsh::open(rest, stack),
        macsec::ETHER_TYPE => macsec::open(rest, stack),
        _ => tags::open(number, rest, stack).unwrap_or(Err(NonIp::EtherType(number))),
    }
}

/// IEEE 802.2: access point 06 is IP, AA is SNAP.
pub(super) fn llc<'a>(rest: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const UNNUMBERED_INFORMATION: u8 = 0x03;
    const IP: u8 = 0x06;
    const SNAP: u8 = 0xaa;

    let truncated = NonIp::Truncated(Layer::Llc);
    let (&[dsap, ssap, control], rest) = rest.take::<3>().ok_or(truncated)?;
    // Unnumbered frames have one control byte; numbered information frames have two. Other frames carry no data.
    let payload = match control {
        UNNUMBERED_INFORMATION => rest,
        _ if control & 1 == 0 => rest.take::<1>().ok_or(truncated)?.1,
        _ => return Err(NonIp::Llc(dsap)),
    };
    match (dsap, ssap) {
        (SNAP, SNAP) => {
            let (header, payload) = payload.take::<5>().ok_or(truncated)?;
            let number = u16::from_be_bytes([header[3], header[4]]);
            match header[..3] {
                [0, 0, 0] | [0, 0, 0xf8] => ether_type(number, payload, stack),
                _ => Err(NonIp::Snap),
            }
        }
        (IP, _) => Ok(Next::Ipv4(payload)),
        _ => Err(NonIp::Llc(dsap)),
    }
}
