//! EtherIP (RFC 3378): an Ethernet frame behind two bytes, whose first four bits are the version, 3.

use super::inside::{Inside, ethernet};
use crate::path::TunnelKind;
use crate::span::Span;

pub(super) fn open(packet: Span<'_>) -> Option<Inside<'_>> {
    let (&[version, _], frame) = packet.take::<2>()?;
    if version >> 4 != 3 {
        return None;
    }
    Some(Inside::of(TunnelKind::EtherIp, 0, ethernet(frame)?))
}
