//! The length of an IP packet.
//!
//! A header with length 0 belongs to a super-frame: a network card or the kernel cuts it later (segmentation offload, BIG
//! TCP), and 16 bits may not hold its length. It ends with the frame on the wire, or where the jumbo option (RFC 2675)
//! ends it, if that is earlier.
//!
//! Invariant: all layers, outermost headers and those within tunnels, have their lengths from [`effective`].

/// The length that a header declares or, if that is 0, `wire`, the bytes on the wire, but at most `jumbo`.
#[inline(always)]
pub(super) fn effective(declared: u32, wire: u32, jumbo: Option<u32>) -> u32 {
    match declared {
        0 => jumbo.map_or(wire, |jumbo| jumbo.min(wire)),
        declared => declared,
    }
}
