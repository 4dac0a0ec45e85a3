//! PPP (RFC 1661, RFC 1662), PPPoE sessions (RFC 2516) and Cisco HDLC.
//!
//! ```text
//!  PPP     | FF 03 (may lack) | protocol: 2 bytes, or 1 if odd (compressed) | …
//!  PPPoE   | version·type | code | session (2) | length (2) | PPP without FF 03
//!  MP      | B·E·000000 | sequence (3) | PPP, whole if B and E are set            RFC 1990
//!  C-HDLC  | 0F or 8F | 00 | EtherType | …
//! ```

use super::{Next, Stack};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// PPP as captured on a serial line; Cisco HDLC occurs with the same link type.
pub(super) fn framed<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    match frame.bytes {
        [0xff, ..] => {
            let (_, rest) = frame.take::<2>().ok_or(NonIp::Truncated(Layer::Ppp))?;
            protocol(rest, stack)
        }
        [0x0f | 0x8f, ..] => cisco_hdlc(frame),
        _ => protocol(frame, stack),
    }
}

/// Parses a PPPoE session header and the PPP packet in it.
pub(super) fn pppoe_session<'a>(packet: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let (header, rest) = packet.take::<6>().ok_or(NonIp::Truncated(Layer::Ppp))?;
    protocol(rest.limit(u32::from(u16::from_be_bytes([header[4], header[5]]))), stack)
}

/// Cisco HDLC.
pub(super) fn cisco_hdlc(frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    let (header, rest) = frame.take::<4>().ok_or(NonIp::Truncated(Layer::Link))?;
    match u16::from_be_bytes([header[2], header[3]]) {
        number @ (0x0800 | 0x86dd | 0x8847 | 0x8848 | 0x6558) => Ok(Next::EtherType(number, rest)),
        other => Err(NonIp::EtherType(other)),
    }
}

pub(super) fn protocol<'a>(packet: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const MULTILINK: u16 = 0x003d;
    const WHOLE: u8 = 0xc0;

    let truncated = NonIp::Truncated(Layer::Ppp);
    let (number, rest) = match packet.bytes {
        [odd, ..] if odd & 1 == 1 => {
            let (&[odd], rest) = packet.take::<1>().ok_or(truncated)?;
            (u16::from(odd), rest)
        }
        _ => {
            let (&number, rest) = packet.take::<2>().ok_or(truncated)?;
            (u16::from_be_bytes(number), rest)
        }
    };
    match number {
        0x0021 => Ok(Next::Ipv4(rest)),
        0x0057 => Ok(Next::Ipv6(rest)),
        MULTILINK => {
            let (header, inner) = rest.take::<4>().ok_or(truncated)?;
            stack.deeper()?;
            match header[0] & WHOLE {
                WHOLE => protocol(inner, stack),
                _ => Err(NonIp::Ppp(number)),
            }
        }
        0x0281 | 0x0283 => Ok(Next::Labels(rest)),
        other => Err(NonIp::Ppp(other)),
    }
}
