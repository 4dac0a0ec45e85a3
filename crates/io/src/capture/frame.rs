//! The result of parsing a part of a capture file.
//!
//! Invariant: parsing is repeatable. It reports how many bytes it has completed; parsing again from there has the same
//! end, so a caller may handle the frames first and the end later.

use ringtap_wire::LinkType;

use crate::capture::notice::NoticeKind;

/// Most bytes of one packet: 16 MiB. A record or block with a larger length is damaged.
pub const MAX_CAPTURED_LEN: u32 = 16 << 20;

/// One captured packet, in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time of capture, nanoseconds since 1970-01-01 UTC, saturating; 0 if the file has none (pcapng Simple Packet
    /// Block).
    pub ts_ns: u64,
    /// The type of the first header in `data`.
    pub link: LinkType,
    /// Bytes on the wire, as in the file; a damaged file may contain less than `data.len()`.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// Bytes to parse, and their position.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// Read and not parsed yet.
    pub(crate) bytes: &'a [u8],
    /// Their position in the buffer of the chunk.
    pub(crate) start: usize,
    /// Their position in the file.
    pub(crate) offset: u64,
}

/// The result of one pass over the buffered bytes.
pub(crate) struct Walk {
    /// Completed bytes, from the start of the buffered ones.
    pub(crate) bytes: usize,
    /// Number of frames.
    pub(crate) frames: usize,
    /// The lowest and the highest time of the frames, if there are any.
    pub(crate) low_ns: u64,
    pub(crate) high_ns: u64,
    /// What must happen before the next pass; ignored if there were frames.
    pub(crate) next: Next,
}

/// How a pass ended.
pub(crate) enum Next {
    /// The buffer must hold this number of bytes, counted from the first byte that is not completed.
    Need(usize),
    /// Skip a number of bytes.
    Skip(u64),
    /// Nothing behind this position can be read.
    Stop(NoticeKind),
}
