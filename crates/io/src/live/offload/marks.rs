//! The virtio header of a frame to send: what the kernel or the network card does with it.

use super::checksum::{AT_SCTP, complete};
use super::virtio::{ECN, NEEDS_CHECKSUM, Offload, OffloadError, TCP_V4, TCP_V6, UDP, VIRTIO};

/// Offset of the shortest transport header: behind those of Ethernet and IPv4. The kernel refuses a
/// checksum that begins before.
const TRANSPORT_LEAST: u32 = 14 + 20;

/// A virtio header. The default leaves nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks([u8; VIRTIO]);

impl Marks {
    /// Prepares a frame that is not a super-frame: its missing checksum is left to the kernel, or
    /// computed where the kernel does not know its kind.
    ///
    /// # Errors
    /// As for [`complete`].
    pub fn of(frame: &mut [u8], offload: Offload) -> Result<Self, OffloadError> {
        match offload {
            Offload::Checksum { start, offset }
                if offset as usize != AT_SCTP && start >= TRANSPORT_LEAST =>
            {
                let fits = u64::from(start) + u64::from(offset) + 2 <= frame.len() as u64;
                let marks = fits.then(|| Self::new(0, 0, 0, start, offset)).flatten();
                marks.ok_or(OffloadError)
            }
            other => complete(frame, other).map(|()| Self::default()),
        }
    }

    /// `kind`, the offset of the payload, and the size of segments are 0 unless it is a super-frame;
    /// start and offset of the checksum. `None` if one is too large.
    pub(super) fn new(
        kind: u8,
        payload: usize,
        size: usize,
        start: u32,
        offset: u32,
    ) -> Option<Self> {
        let [p0, p1] = u16::try_from(payload).ok()?.to_ne_bytes();
        let [s0, s1] = u16::try_from(size).ok()?.to_ne_bytes();
        let [c0, c1] = u16::try_from(start).ok()?.to_ne_bytes();
        let [o0, o1] = u16::try_from(offset).ok()?.to_ne_bytes();
        Some(Self([NEEDS_CHECKSUM, kind, p0, p1, s0, s1, c0, c1, o0, o1]))
    }

    /// Whether the frame is a super-frame.
    pub(crate) fn is_super_frame(&self) -> bool {
        self.0[1] != 0
    }

    /// The header as the kernel reads it.
    pub(crate) fn bytes(&self) -> &[u8; VIRTIO] {
        &self.0
    }
}

/// The kind of a super-frame in the header.
pub(super) fn kind(tcp: bool, v6: bool, ecn: bool) -> u8 {
    let kind = match (tcp, v6) {
        (true, false) => TCP_V4,
        (true, true) => TCP_V6,
        (false, _) => UDP,
    };
    if ecn { kind | ECN } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_checksum_is_marked_if_the_frame_has_its_field() {
        let mut frame = [7; 60];
        let mut of = |start, offset| Marks::of(&mut frame, Offload::Checksum { start, offset });
        let [s, o] = [34_u16, 16].map(u16::to_ne_bytes);
        assert_eq!(of(34, 16).unwrap().0, [1, 0, 0, 0, 0, 0, s[0], s[1], o[0], o[1]]);
        assert!(of(44, 14).is_ok());
        for (start, offset) in [(45, 14), (34, 25), (u32::MAX, 16), (34, u32::MAX)] {
            assert_eq!(of(start, offset), Err(OffloadError), "{start} {offset}");
        }
        assert_eq!(frame, [7; 60]);
        assert_eq!(Marks::of(&mut frame, Offload::Done), Ok(Marks::default()));
        // Computed here: the CRC of SCTP, and a checksum that begins within the IPv4 header.
        for (start, offset) in [(34, 8), (33, 16)] {
            let before = frame;
            let offload = Offload::Checksum { start, offset };
            assert_eq!(Marks::of(&mut frame, offload), Ok(Marks::default()));
            assert_ne!(frame, before);
        }
    }
}
