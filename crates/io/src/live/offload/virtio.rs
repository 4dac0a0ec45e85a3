//! The virtio header of a received frame: what is missing from the frame.

/// Bytes of the virtio header.
pub(crate) const VIRTIO: usize = 10;

pub(super) const NEEDS_CHECKSUM: u8 = 1;

/// Kinds of super-frames. The highest bit (ECN) means that only the first segment has the CWR flag.
/// All segments cut here follow that rule.
const NONE: u8 = 0;
pub(super) const TCP_V4: u8 = 1;
pub(super) const TCP_V6: u8 = 4;
pub(super) const UDP: u8 = 5;
pub(super) const ECN: u8 = 0x80;

/// What is missing before a frame may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// Nothing is missing.
    #[default]
    Done,
    /// The checksum of TCP, UDP or SCTP may be missing: AF_XDP does not report it.
    Unknown,
    /// A checksum is missing.
    Checksum {
        /// Offset of the first byte that it covers. The covered bytes end with the frame.
        start: u32,
        /// Offset of the checksum field from `start`. Before completion the field holds the sum of
        /// the pseudo header.
        offset: u32,
    },
    /// The frame is a super-frame of TCP or UDP.
    Segments {
        /// Bytes of payload of each segment but the last.
        size: u16,
        /// True for TCP, false for UDP.
        tcp: bool,
        /// Only the first segment has the CWR flag.
        ecn: bool,
        /// Start and offset of the missing checksum, as in [`Offload::Checksum`]; `None` if none
        /// is missing.
        checksum: Option<(u32, u32)>,
    },
    /// The frame is a super-frame of a kind that is not supported.
    Unsupported,
}

/// Why a frame cannot be completed or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported offload, or headers that do not match it")]
pub struct OffloadError;

impl Offload {
    /// Parses a virtio header in the byte order of the machine.
    pub(crate) fn from_virtio(header: [u8; VIRTIO]) -> Self {
        let [flags, kind, _, _, s0, s1, c0, c1, o0, o1] = header;
        let (start, offset) =
            (u16::from_ne_bytes([c0, c1]).into(), u16::from_ne_bytes([o0, o1]).into());
        let checksum = (flags & NEEDS_CHECKSUM != 0).then_some((start, offset));
        match (kind & !ECN, checksum) {
            (NONE, None) => Self::Done,
            (NONE, Some((start, offset))) => Self::Checksum { start, offset },
            (one @ (TCP_V4 | TCP_V6 | UDP), checksum) => Self::Segments {
                size: u16::from_ne_bytes([s0, s1]),
                tcp: one != UDP,
                ecn: kind & ECN != 0,
                checksum,
            },
            _ => Self::Unsupported,
        }
    }

    /// The offload of the same frame with `more` bytes inserted before the network header: a
    /// restored VLAN tag.
    pub(crate) fn shifted(self, more: u32) -> Self {
        match self {
            Self::Checksum { start, offset } => Self::Checksum { start: start + more, offset },
            Self::Segments { size, tcp, ecn, checksum } => {
                let checksum = checksum.map(|(start, offset)| (start + more, offset));
                Self::Segments { size, tcp, ecn, checksum }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header as the kernel writes it.
    fn virtio(flags: u8, kind: u8, size: u16, start: u16, offset: u16) -> [u8; VIRTIO] {
        let mut header = [0; VIRTIO];
        header[0] = flags;
        header[1] = kind;
        header[4..6].copy_from_slice(&size.to_ne_bytes());
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
        header
    }

    #[test]
    fn virtio_headers_are_parsed() {
        let checksum = Offload::Checksum { start: 34, offset: 16 };
        let segments = |size, tcp, ecn, checksum| Offload::Segments { size, tcp, ecn, checksum };
        for (header, offload) in [
            (virtio(0, 0, 0, 0, 0), Offload::Done),
            // Checked by the hardware: nothing is missing.
            (virtio(2, 0, 0, 0, 0), Offload::Done),
            (virtio(1, 0, 0, 34, 16), checksum),
            (virtio(1, 1, 1448, 34, 16), segments(1448, true, false, Some((34, 16)))),
            (virtio(1, 0x84, 1428, 54, 16), segments(1428, true, true, Some((54, 16)))),
            (virtio(1, 5, 1200, 34, 6), segments(1200, false, false, Some((34, 6)))),
            // Joined by the network card, which has checked the checksum.
            (virtio(2, 1, 1448, 0, 0), segments(1448, true, false, None)),
            // Unsupported: fragments of UDP, and tunnels.
            (virtio(1, 3, 1400, 34, 6), Offload::Unsupported),
            (virtio(1, 0x21, 1400, 84, 16), Offload::Unsupported),
        ] {
            assert_eq!(Offload::from_virtio(header), offload);
        }
        assert_eq!(checksum.shifted(4), Offload::Checksum { start: 38, offset: 16 });
        let shifted = segments(9, true, false, Some((34, 16))).shifted(4);
        assert_eq!(shifted, segments(9, true, false, Some((38, 16))));
        assert_eq!(Offload::Unknown.shifted(4), Offload::Unknown);
    }
}
