//! LISP data (RFC 9300).
//!
//! ```text
//!  0          1                      4                 7      8
//!  |NLEVIRKK  | nonce or version (3) | instance (3)    | bits | IP packet       without I the last four bytes are bits
//! ```

use super::inside::Inside;
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

const INSTANCE: u8 = 0x08;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    let (&[flags, _, _, _, i0, i1, i2, _], packet) = data.take::<8>()?;
    let id = if flags & INSTANCE != 0 { u32::from_be_bytes([0, i0, i1, i2]) } else { 0 };
    Some(Inside::of(TunnelKind::Lisp, id, Network::by_version(packet).ok()??))
}
