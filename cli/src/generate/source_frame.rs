//! A frame of a source.

/// A frame to send.
pub(super) struct SourceFrame<'a> {
    /// Packet time of a profile, or the timestamp of a capture, in nanoseconds.
    pub(super) ts_ns: u64,
    pub(super) data: &'a [u8],
    /// Whether the frame is truncated in the capture.
    pub(super) cut: bool,
}
