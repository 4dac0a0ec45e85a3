//! VXLAN (RFC 7348).
//!
//! ```text
//!  0       1              4            7   8
//!  |····1··| reserved (3) | network (3) | · | Ethernet frame
//! ```
//!
//! Reserved bits are ignored, as the RFC requires: extensions use them.

use super::inside::{Inside, ethernet};
use crate::path::TunnelKind;
use crate::span::Span;

const HAS_NETWORK: u8 = 0x08;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    let (&[flags, _, _, _, n0, n1, n2, _], frame) = data.take::<8>()?;
    if flags & HAS_NETWORK == 0 {
        return None;
    }
    let id = u32::from_be_bytes([0, n0, n1, n2]);
    Some(Inside::of(TunnelKind::Vxlan, id, ethernet(frame)?))
}
