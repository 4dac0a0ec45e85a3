//! Geneve (RFC 8926).
//!
//! ```text
//!  0                      1     2      4             7   8
//!  | version (2) · words  | OC· | type | network (3) | · | options, as many words of four bytes | …
//! ```
//!
//! `type` is an EtherType, usually that of a bridged frame.

use super::inside::{Inside, ether_type};
use crate::path::TunnelKind;
use crate::span::Span;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    let (&[first, _, t0, t1, n0, n1, n2, _], rest) = data.take::<8>()?;
    if first >> 6 != 0 {
        return None;
    }
    let packet = rest.skip(usize::from(first & 0x3f) * 4)?;
    let id = u32::from_be_bytes([0, n0, n1, n2]);
    let network = ether_type(u16::from_be_bytes([t0, t1]), packet)?;
    Some(Inside::of(TunnelKind::Geneve, id, network))
}
