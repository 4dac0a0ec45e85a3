//! MACsec (IEEE 802.1AE) that authenticates without encryption.
//!
//! ```text
//!  0              1            2        6              14?
//!  |VESBEC·number | ··size (6) | packet | channel (8)? | type | … | check value (16)
//! ```
//!
//! V is 0; the channel is present if S is set. E or C mean that the data are encrypted or otherwise changed. `size` is that of
//! type and data if they have fewer than 48 bytes, otherwise 0.

use super::{Next, Stack};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

pub(super) const ETHER_TYPE: u16 = 0x88e5;
const TRUNCATED: NonIp = NonIp::Truncated(Layer::Macsec);

/// Parses the tag; encrypted data are counted by the EtherType.
pub(super) fn open<'a>(rest: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const VERSION: u8 = 0x80;
    const CHANNEL: u8 = 0x20;
    const CHANGED: u8 = 0x0c;
    const CHECK_LEN: u32 = 16;

    stack.deeper()?;
    let (&[bits, size, ..], mut rest) = rest.take::<6>().ok_or(TRUNCATED)?;
    if bits & VERSION != 0 {
        return Err(NonIp::Malformed(Layer::Macsec));
    }
    if bits & CHANGED != 0 {
        return Err(NonIp::EtherType(ETHER_TYPE));
    }
    if bits & CHANNEL != 0 {
        rest = rest.skip(8).ok_or(TRUNCATED)?;
    }
    let data_len = match size & 0x3f {
        0 => rest.wire.saturating_sub(CHECK_LEN),
        size => size.into(),
    };
    let (&number, data) = rest.limit(data_len).take::<2>().ok_or(TRUNCATED)?;
    Ok(Next::EtherType(u16::from_be_bytes(number), data))
}
