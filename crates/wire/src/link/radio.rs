//! Headers that capture devices put before IEEE 802.11 frames: radiotap, Prism, AVS.
//!
//! ```text
//!  radiotap   | 0 | pad | length (LE) | present (LE, more while bit 31) | time? | flags? | …
//!  Prism      | code (4) | length (4, either byte order) | …              144 bytes as a rule
//!  AVS        | 80211001 or 80211002 (BE) | length (BE) | …
//! ```

use super::{Next, Stack, ieee80211};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Radio);
const MALFORMED: NonIp = NonIp::Malformed(Layer::Radio);

/// LINKTYPE_IEEE802_11_RADIOTAP.
pub(super) fn radiotap<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const HEADER_LEN: usize = 8;
    let header = frame.bytes.first_chunk::<HEADER_LEN>().ok_or(TRUNCATED)?;
    let len = usize::from(u16::from_le_bytes([header[2], header[3]]));
    if len < HEADER_LEN {
        return Err(MALFORMED);
    }
    let rest = frame.skip(len).ok_or(TRUNCATED)?;
    let padded = radiotap_flags(&frame.bytes[..len]).is_some_and(|flags| flags & 0x20 != 0);
    ieee80211::frame(rest, padded, stack)
}

/// The flags field, if present; bit 0x20: the 802.11 header is padded to a multiple of four bytes.
fn radiotap_flags(header: &[u8]) -> Option<u8> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    const EXTENDED: u32 = 1 << 31;
    let word =
        |at: usize| header.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let present = word(4)?;
    let mut at = 8;
    let mut last = present;
    while last & EXTENDED != 0 {
        last = word(at)?;
        at += 4;
    }
    if present & FLAGS == 0 {
        return None;
    }
    if present & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    header.get(at).copied()
}

/// LINKTYPE_IEEE802_11_PRISM; AVS headers occur with the same number.
pub(super) fn prism<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let header = frame.bytes.first_chunk::<8>().ok_or(TRUNCATED)?;
    if header.starts_with(&[0x80, 0x21, 0x10]) {
        return avs(frame, stack);
    }
    let len = [header[4], header[5], header[6], header[7]];
    // The byte order is unknown; a header's length is the smaller of both values.
    let len = u32::from_le_bytes(len).min(u32::from_be_bytes(len));
    let rest = frame.skip(len as usize).ok_or(TRUNCATED)?;
    ieee80211::frame(rest, false, stack)
}

/// LINKTYPE_IEEE802_11_AVS.
pub(super) fn avs<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let header = frame.bytes.first_chunk::<8>().ok_or(TRUNCATED)?;
    let len = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    if len < 8 {
        return Err(MALFORMED);
    }
    let rest = frame.skip(len as usize).ok_or(TRUNCATED)?;
    ieee80211::frame(rest, false, stack)
}
