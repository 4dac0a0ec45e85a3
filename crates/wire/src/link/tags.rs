//! Tags of switches and bridges: headers of a fixed length before an EtherType or a whole frame.
//!
//! ```text
//!  VN-Tag (8926)        direction·ports (4) | type | …                 Cisco, the early 802.1BR
//!  E-TAG (893f)         priority·ports (6) | type | …                  802.1BR
//!  HSR (892f)           path·size (2) | sequence (2) | type | …        IEC 62439-3
//!  CMD (8909)           6 bytes | type | …                             Cisco metadata
//!  bridge (6558)        a whole frame
//!  PBB (88e7)           priority·service (4) | a whole frame           802.1ah
//!  FabricPath (8903)    tree·TTL (2) | a whole frame                   Cisco
//! ```
//!
//! PRP, the other protocol of IEC 62439-3, has no header but a trailer, which the length of the packet excludes.

use super::{LinkType, Next, Stack};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Tag);

/// The content of a tag.
#[derive(Clone, Copy)]
enum Content {
    /// An EtherType after this number of bytes.
    Type(usize),
    /// A frame after this number of bytes.
    Frame(usize),
}

const TAGS: [(u16, Content); 7] = [
    (0x6558, Content::Frame(0)),
    (0x88e7, Content::Frame(4)),
    (0x8903, Content::Frame(2)),
    (0x8909, Content::Type(6)),
    (0x8926, Content::Type(4)),
    (0x892f, Content::Type(4)),
    (0x893f, Content::Type(6)),
];

/// Removes the tag of this EtherType; `None` if it is not that of a tag.
pub(super) fn open<'a>(
    number: u16,
    rest: Span<'a>,
    stack: &mut Stack,
) -> Option<Result<Next<'a>, NonIp>> {
    let (_, content) = TAGS.into_iter().find(|(own, _)| *own == number)?;
    Some(stack.deeper().and_then(|()| match content {
        Content::Type(len) => {
            let (&number, inner) = rest.skip(len).and_then(Span::take::<2>).ok_or(TRUNCATED)?;
            Ok(Next::EtherType(u16::from_be_bytes(number), inner))
        }
        Content::Frame(len) => {
            Ok(Next::Frame(LinkType::ETHERNET, rest.skip(len).ok_or(TRUNCATED)?))
        }
    }))
}
