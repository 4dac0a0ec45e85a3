//! What a walk over a capture file delivers, and how it ends.
//!
//! Invariant: a walk is repeatable. It reports how many bytes it is done with; walking again from
//! there comes to the same end, so a caller may act on frames first and on the end later.

use ringtap_wire::LinkType;

use crate::capture::notice::NoticeKind;

/// The most bytes of one packet that a file is believed to hold: 16 MiB. A record or block that
/// claims more is damaged.
pub const MAX_CAPTURED_LEN: u32 = 16 << 20;

/// One captured packet, in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time of capture, nanoseconds since 1970-01-01 UTC, saturating; 0 where the file has none
    /// (pcapng Simple Packet Block).
    pub ts_ns: u64,
    /// What the first byte of `data` begins.
    pub link: LinkType,
    /// Bytes on the wire, as the file says; a damaged file may say less than `data.len()`.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// Bytes to walk over, and where they come from.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// Read and not walked yet.
    pub(crate) bytes: &'a [u8],
    /// Where they begin in the buffer that a place is counted from.
    pub(crate) start: usize,
    /// Where they begin in the file.
    pub(crate) offset: u64,
}

/// What one walk over the buffered bytes came to.
pub(crate) struct Walk {
    /// Bytes done with, from the start of the buffered ones.
    pub(crate) bytes: usize,
    /// Frames found.
    pub(crate) frames: usize,
    /// The lowest and the highest time among them, if there are any.
    pub(crate) low_ns: u64,
    pub(crate) high_ns: u64,
    /// What must happen before the next walk; to be ignored if there were frames.
    pub(crate) next: Next,
}

/// How a walk ended.
pub(crate) enum Next {
    /// So many bytes must lie in the buffer, counted from the first one not done with.
    Need(usize),
    /// So many bytes are of no interest.
    Skip(u64),
    /// Nothing behind this place can be read.
    Stop(NoticeKind),
}
