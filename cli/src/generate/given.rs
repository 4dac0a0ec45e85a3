//! What is to be sent next.

/// A frame to send.
pub(super) struct Given<'a> {
    /// Its time: packet time, or when it was captured.
    pub(super) ts_ns: u64,
    pub(super) data: &'a [u8],
    /// Whether it was longer on the wire than it was captured.
    pub(super) cut: bool,
}
