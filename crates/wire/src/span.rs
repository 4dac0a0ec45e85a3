//! A part of a frame: its captured bytes, and its length on the wire.
//!
//! ```text
//!  |<-------- bytes (captured) -------->|<-- cut off -->|
//!  |<---------------------- wire ---------------------->|
//! ```
//!
//! Invariant: `wire ≥ bytes.len()`. Each layer removes its header from the front and passes on the rest; a layer with a
//! length field also removes the bytes behind its end (padding, trailers).

#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    /// Captured bytes.
    pub(crate) bytes: &'a [u8],
    /// Length on the wire.
    pub(crate) wire: u32,
}

impl<'a> Span<'a> {
    /// A whole frame. If `original_len`, its length on the wire, is less than what was captured, that is used.
    #[inline(always)]
    pub(crate) fn frame(bytes: &'a [u8], original_len: u32) -> Self {
        let captured_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self { bytes: &bytes[..captured_len as usize], wire: original_len.max(captured_len) }
    }

    /// Removes and returns a header of `N` bytes; `None` if it was not captured completely.
    #[inline(always)]
    pub(crate) fn take<const N: usize>(self) -> Option<(&'a [u8; N], Self)> {
        let (head, rest) = self.bytes.split_first_chunk::<N>()?;
        Some((head, Self { bytes: rest, wire: self.wire - N as u32 }))
    }

    /// Removes the first `n` bytes; `None` if they were not all captured.
    #[inline(always)]
    pub(crate) fn skip(self, n: usize) -> Option<Self> {
        let rest = self.bytes.get(n..)?;
        Some(Self { bytes: rest, wire: self.wire - n as u32 })
    }

    /// Keeps at most the first `n` bytes.
    #[inline(always)]
    pub(crate) fn limit(self, n: u32) -> Self {
        let captured = self.bytes.len().min(n as usize);
        Self { bytes: &self.bytes[..captured], wire: self.wire.min(n) }
    }
}
