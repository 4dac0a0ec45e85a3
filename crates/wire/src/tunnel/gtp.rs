//! GTP version 1, user plane (3GPP TS 29.281).
//!
//! ```text
//!  0          1      2        4          8
//!  | 001P·ESN | type | length | endpoint | sequence (2) | number (1) | next (1)?    if E, S or N
//!                             |<--- length: what stands behind the first 8 bytes --->
//!
//!  while next is not 0:  | words | … | next |                                        if E
//! ```
//!
//! P is 1 (not GTP'); type 255 is a user packet.

use super::inside::Inside;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

const VERSION_AND_PROTOCOL: u8 = 0xf0;
const VERSION_1: u8 = 0x30;
const EXTENDED: u8 = 0x04;
const OPTIONAL: u8 = 0x07;
const USER_PACKET: u8 = 255;

/// If the datagram is not `whole`, the header's length may exceed it.
pub(super) fn open(data: Span<'_>, whole: bool) -> Option<Inside<'_>> {
    let (&[flags, kind, l0, l1, e0, e1, e2, e3], rest) = data.take::<8>()?;
    if flags & VERSION_AND_PROTOCOL != VERSION_1 || kind != USER_PACKET {
        return None;
    }
    let length = u32::from(u16::from_be_bytes([l0, l1]));
    if whole && length > rest.wire {
        return None;
    }
    let mut rest = rest.limit(length);
    if flags & OPTIONAL != 0 {
        let (&[_, _, _, mut next], behind) = rest.take::<4>()?;
        rest = behind;
        while flags & EXTENDED != 0 && next != 0 {
            let len = usize::from(*rest.bytes.first()?) * 4;
            next = *rest.bytes.get(len.checked_sub(1)?)?;
            rest = rest.skip(len)?;
        }
    }
    let id = u32::from_be_bytes([e0, e1, e2, e3]);
    Some(Inside::of(TunnelKind::GtpU, id, Network::by_version(rest).ok()??))
}
