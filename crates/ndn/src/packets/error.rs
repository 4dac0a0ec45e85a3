//! Errors of the packet parsers.

/// Why parsing a packet failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An element is longer than the bytes that are left.
    #[error("truncated element")]
    Truncated,
    /// A type or length is not in its shortest form.
    #[error("a type or length is not in its shortest form")]
    NotShortest,
    /// The type of an element is 0 or does not fit into 32 bits.
    #[error("element type out of range: it must be 1 to 4294967295")]
    BadType,
    /// A number is not 1, 2, 4 or 8 bytes long, a field of fixed length has another length, or a
    /// text is not UTF-8.
    #[error("invalid field length or text encoding")]
    BadLength,
    /// Bytes follow the packet.
    #[error("trailing bytes after the packet")]
    Trailing,
    /// The outer element has another type than the expected ones: Interest, Data, LpPacket or a
    /// management element.
    #[error("unexpected type of the outer element")]
    UnknownPacket,
    /// A critical element is unknown or misplaced.
    #[error("unknown or misplaced critical element")]
    Critical,
    /// The name is not the first element, or has no component.
    #[error("missing name")]
    NoName,
    /// A component's type is out of range, or a digest is not 32 bytes long.
    #[error("malformed name component")]
    BadComponent,
    /// The name must have one parameters digest if the Interest has application parameters, and
    /// none otherwise.
    #[error("parameters digest missing, repeated or without parameters")]
    ParametersDigest,
    /// A Data without a signature.
    #[error("missing signature")]
    NoSignature,
    /// A fragment's index is not below the count, the count is not 1 to 64, or the sequence number
    /// is missing.
    #[error("invalid fragment index or count")]
    BadFragment,
}
