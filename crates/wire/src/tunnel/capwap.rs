//! CAPWAP data (RFC 5415): frames between an access point and its controller.
//!
//! ```text
//!  0                  1                                                     4                          8
//!  | version·type     | words (5) · radio (5) · binding (5) · TFLWMK · ···  | fragment (2) | place (2) | options | frame
//! ```
//!
//! `words` is the length of the header with its options in words of four bytes. Type 1 is DTLS. T: the frame is of the
//! binding (1 is IEEE 802.11), otherwise IEEE 802.3; F: it is a part of one; K: there is none.

use super::inside::{Inside, ethernet};
use crate::link::{self, Stack};
use crate::path::TunnelKind;
use crate::span::Span;

const HEADER_LEN: usize = 8;
const NATIVE: u32 = 0x100;
const FRAGMENT: u32 = 0x80;
const KEEP_ALIVE: u32 = 0x08;
const IEEE80211: u32 = 1;

pub(super) fn open(data: Span<'_>) -> Option<Inside<'_>> {
    let &[0, a, b, c, ..] = data.bytes.first_chunk::<HEADER_LEN>()? else { return None };
    let bits = u32::from_be_bytes([0, a, b, c]);
    let len = (bits >> 19) as usize * 4;
    if len < HEADER_LEN || bits & (FRAGMENT | KEEP_ALIVE) != 0 {
        return None;
    }
    let frame = data.skip(len)?;
    let content = match (bits & NATIVE != 0, bits >> 9 & 0x1f) {
        (false, _) => ethernet(frame)?,
        (true, IEEE80211) => link::wireless(frame, &mut Stack::default()).ok()?.into(),
        (true, _) => return None,
    };
    Some(Inside::of(TunnelKind::Capwap, 0, content))
}
