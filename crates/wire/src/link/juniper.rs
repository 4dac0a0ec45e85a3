//! Juniper's header before a frame of another link type.
//!
//! ```text
//!  0           3             4
//!  | 4D 47 43  | E·····L·    | length (2) | extensions (length) | frame      extensions if E is set
//!                            | family (4) | IP …                             instead of a frame if L is set
//! ```

use super::{LinkType, Next};
use crate::network::Network;
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);

/// Removes the header of a frame of this link type.
pub(super) fn frame(link: LinkType, frame: Span<'_>) -> Result<Next<'_>, NonIp> {
    const MAGIC: [u8; 3] = *b"MGC";
    const EXTENDED: u8 = 0x80;
    const NO_LINK: u8 = 0x02;

    let (&[magic @ .., flags], mut rest) = frame.take::<4>().ok_or(TRUNCATED)?;
    if magic != MAGIC {
        return Err(NonIp::Malformed(Layer::Link));
    }
    if flags & EXTENDED != 0 {
        let (&len, inner) = rest.take::<2>().ok_or(TRUNCATED)?;
        rest = inner.skip(usize::from(u16::from_be_bytes(len))).ok_or(TRUNCATED)?;
    }
    if flags & NO_LINK != 0 {
        let packet = rest.skip(4).ok_or(TRUNCATED)?;
        return Network::by_version(packet)?.map(Next::from).ok_or(NonIp::Malformed(Layer::Ip));
    }
    Ok(Next::Frame(link, rest))
}
