//! IEEE 802.11 data frames.
//!
//! ```text
//!  0         2          4      10     16     22         24      30    32
//!  | control | duration | addr | addr | addr | sequence | addr? | QoS?| HT control? | LLC, SNAP …
//!
//!  control: | subtype (4) · type (2) · version (2) | order · protected · … · fromDS · toDS |
//!
//!  aggregate (A-MSDU): | destination | source | length (BE) | LLC, SNAP … | pad to 4 | next …
//! ```
//!
//! Only the first packet of an aggregate is decoded, because a frame has one record.

use super::{Next, Stack, ethernet};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Ieee80211);

/// Parses a whole frame. `padded`: the radio padded the header to a multiple of four bytes.
pub(super) fn frame<'a>(
    frame: Span<'a>,
    padded: bool,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    let &control = frame.bytes.first_chunk::<2>().ok_or(TRUNCATED)?;
    controlled(control, frame, padded, stack)
}

/// Parses a whole frame whose control bytes are swapped, as some controllers send them.
pub(super) fn swapped<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let &[bits, kind] = frame.bytes.first_chunk::<2>().ok_or(TRUNCATED)?;
    controlled([kind, bits], frame, false, stack)
}

/// Parses a whole frame with these control bytes.
fn controlled<'a>(
    [kind, bits]: [u8; 2],
    frame: Span<'a>,
    padded: bool,
    stack: &mut Stack,
) -> Result<Next<'a>, NonIp> {
    const DATA: u8 = 2;
    const MANAGEMENT: u8 = 0;
    const QOS: u8 = 8;
    const NO_DATA: u8 = 4;
    const TO_FROM_DS: u8 = 0x03;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;

    if kind & 3 != 0 {
        return Err(NonIp::Malformed(Layer::Ieee80211));
    }
    match kind >> 2 & 3 {
        DATA => {}
        MANAGEMENT => return Err(NonIp::Management80211),
        _ => return Err(NonIp::Control80211),
    }
    let subtype = kind >> 4;
    if subtype & NO_DATA != 0 {
        return Err(NonIp::NoData80211);
    }
    if bits & PROTECTED != 0 {
        return Err(NonIp::Encrypted80211);
    }

    let mut len = if bits & TO_FROM_DS == TO_FROM_DS { 30 } else { 24 };
    let mut aggregate = false;
    if subtype & QOS != 0 {
        aggregate = frame.bytes.get(len).ok_or(TRUNCATED)? & AGGREGATE != 0;
        len += 2;
        if bits & ORDER != 0 {
            len += 4;
        }
    }
    if padded {
        len = len.next_multiple_of(4);
    }
    let mut body = frame.skip(len).ok_or(TRUNCATED)?;
    if aggregate {
        let (header, rest) = body.take::<14>().ok_or(TRUNCATED)?;
        body = rest.limit(u32::from(u16::from_be_bytes([header[12], header[13]])));
    }
    ethernet::llc(body, stack)
}
