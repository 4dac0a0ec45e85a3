//! ERSPAN: mirrored frames within GRE (draft-foschiano-erspan).
//!
//! ```text
//!  type I     | frame                                                     GRE without a sequence number
//!  type II    | 1·VLAN (2) | ····session (2) | index (4) | frame          version in the first four bits
//!  type III   | 2·VLAN (2) | ····session (2) | time (4) | group (2) | PFFFFF·········O (2) | sub-header (8)? | …
//! ```
//!
//! The session has ten bits. `F` is 0 before an Ethernet frame and 2 before an IP packet.

use super::inside::{Inside, ethernet};
use crate::network::Network;
use crate::path::TunnelKind;
use crate::span::Span;

/// Parses the bytes behind a GRE header with or without a sequence number.
pub(super) fn open(sequence: bool, packet: Span<'_>) -> Option<Inside<'_>> {
    let inside = |id, content| Inside::of(TunnelKind::Erspan, id, content);
    if !sequence {
        return Some(inside(0, ethernet(packet)?));
    }
    let &[version, _, s0, s1] = packet.bytes.first_chunk::<4>()?;
    let session = u32::from(u16::from_be_bytes([s0, s1]) & 0x03ff);
    match version >> 4 {
        1 => Some(inside(session, ethernet(packet.skip(8)?)?)),
        2 => {
            let (header, mut rest) = packet.take::<12>()?;
            if header[11] & 1 != 0 {
                rest = rest.skip(8)?;
            }
            let content = match header[10] >> 2 & 0x1f {
                0 => ethernet(rest)?,
                2 => Network::by_version(rest).ok()??.into(),
                _ => return None,
            };
            Some(inside(session, content))
        }
        _ => None,
    }
}
