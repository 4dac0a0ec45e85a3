//! The payload of an IP header, for further decoding.

use crate::span::Span;

/// The payload of an IP header; empty in a later fragment.
pub(crate) struct Carried<'a> {
    pub(crate) protocol: u8,
    pub(crate) payload: Span<'a>,
    /// False for a first fragment: the datagram has more bytes than `payload`.
    pub(crate) whole: bool,
}

impl Carried<'_> {
    pub(crate) const NOTHING: Self =
        Self { protocol: NO_NEXT_HEADER, payload: Span { bytes: &[], wire: 0 }, whole: true };
}

/// RFC 8200, section 4.7.
const NO_NEXT_HEADER: u8 = 59;
