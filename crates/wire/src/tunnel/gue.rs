//! Generic UDP encapsulation (draft-ietf-intarea-gue).
//!
//! ```text
//!  variant 0   | 00·C·words (5) | protocol | flags (2) | options, as many words of four bytes | packet
//!  variant 1   | IP packet, whose version begins with 01
//! ```
//!
//! C: a control message. `protocol` is a number of IP.

use super::inside::Inside;
use super::ip;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

const CONTROL: u8 = 0x20;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    match data.bytes.first()? >> 6 {
        0 => {
            let (&[first, protocol, _, _], rest) = data.take::<4>()?;
            if first & CONTROL != 0 {
                return None;
            }
            let inside = ip::open(protocol, rest.skip(usize::from(first & 0x1f) * 4)?)?;
            Some(Inside { kind: TunnelKind::Gue, id: 0, ..inside })
        }
        1 => Some(Inside::of(TunnelKind::Gue, 0, Network::by_version(data).ok()??)),
        _ => None,
    }
}
