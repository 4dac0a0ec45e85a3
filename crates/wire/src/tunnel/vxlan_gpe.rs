//! VXLAN with a protocol field, "generic protocol extension" (draft-ietf-nvo3-vxlan-gpe).
//!
//! ```text
//!  0              1              3      4            7   8
//!  |··version·IPBO| reserved (2) | next | network (3) | · | packet or frame
//! ```
//!
//! `next` has the numbers of a network service header; without P it is an Ethernet frame, as in VXLAN. O: a control message.

use super::inside::{Inside, ethernet, service};
use crate::path::TunnelKind;
use crate::span::Span;

const VERSION: u8 = 0x30;
const HAS_NETWORK: u8 = 0x08;
const HAS_PROTOCOL: u8 = 0x04;
const CONTROL: u8 = 0x01;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    let (&[flags, _, _, next, n0, n1, n2, _], rest) = data.take::<8>()?;
    if flags & (VERSION | CONTROL) != 0 || flags & (HAS_NETWORK | HAS_PROTOCOL) == 0 {
        return None;
    }
    let content = match flags & HAS_PROTOCOL {
        0 => ethernet(rest)?,
        _ => service(next, rest)?,
    };
    let id = if flags & HAS_NETWORK != 0 { u32::from_be_bytes([0, n0, n1, n2]) } else { 0 };
    Some(Inside::of(TunnelKind::VxlanGpe, id, content))
}
