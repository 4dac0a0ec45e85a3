//! Why bytes are not a packet.

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An element ends behind the bytes there are.
    #[error("an element is cut short")]
    Truncated,
    /// A type or length is not in its shortest form.
    #[error("a number is longer than it needs to be")]
    NotShortest,
    /// The type is 0 or does not fit into 32 bits.
    #[error("a type is out of range")]
    BadType,
    /// A number has not 1, 2, 4 or 8 bytes, or a fixed field has another length.
    #[error("a field has the wrong length")]
    BadLength,
    /// Bytes behind the packet.
    #[error("bytes follow the packet")]
    Trailing,
    /// Neither Interest nor Data nor LpPacket.
    #[error("neither Interest, Data nor LpPacket")]
    UnknownPacket,
    /// An element that must be understood is not, or is out of its place.
    #[error("a critical element is unknown or out of place")]
    Critical,
    /// The name is not the first element, or has no component where one is due.
    #[error("no name where one is due")]
    NoName,
    /// A component's type is out of range, or a digest is not of 32 bytes.
    #[error("a component of a name is malformed")]
    BadComponent,
    /// Application parameters and the digest component in the name do not go together.
    #[error("parameters without their digest, or more digests than one")]
    ParametersDigest,
    /// Data without a signature.
    #[error("no signature")]
    NoSignature,
    /// A fragment's number is not below their count, or there are too many.
    #[error("fragment numbers that cannot be")]
    BadFragment,
}
