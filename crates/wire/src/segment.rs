//! The fields of a TCP header that measure a connection's performance: sequence and acknowledgment numbers, window, and
//! the length of the data.
//!
//! ```text
//!          0              4           8            12       14      16
//!  src     | IPv4 address | sequence  | acknowledg.| window |   0   |
//!  dst     | IPv4 address | data len  |            0                |
//! ```
//!
//! The decoder puts the segment into the record, behind the addresses. A record has no room for it beside IPv6
//! addresses, so there the decoder keeps the last one, and it is attached to the packet as [`Segment::bytes`].

use crate::record::{Flags, PacketRecord};

/// The start of a TCP header up to its window.
pub(crate) const SEGMENT_LEN: usize = 16;

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of its first byte, or of SYN.
    pub sequence: u32,
    /// The acknowledgment number; without meaning unless ACK is set.
    pub acknowledgment: u32,
    /// Bytes of data according to the lengths in the headers, captured or not.
    pub data_len: u32,
    /// The window, as sent: not scaled.
    pub window: u16,
}

impl Segment {
    /// The kind of a packet's attachment that is a segment.
    pub const KIND: u8 = u8::MAX;

    /// Reads a TCP header; `len` is the length of header and data.
    #[inline(always)]
    pub(crate) fn read(header: &[u8; SEGMENT_LEN], len: u32, header_len: u8) -> Self {
        let word =
            |at| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Self {
            sequence: word(4),
            acknowledgment: word(8),
            data_len: len.saturating_sub(u32::from(header_len)),
            window: u16::from_be_bytes([header[14], header[15]]),
        }
    }

    /// Puts the segment into the record of an IPv4 packet, behind the addresses, if `wanted`; sets [`Flags::SEGMENT`].
    /// Without a branch, because TCP and UDP alternate at random.
    #[inline(always)]
    pub(crate) fn put(&self, wanted: bool, out: &mut PacketRecord) {
        let mask = 0_u32.wrapping_sub(u32::from(wanted));
        let with = |address: [u8; 16], fields: [u32; 3]| {
            let [one, two, three] = fields.map(|field| u128::from(field & mask));
            (u128::from_le_bytes(address) | one << 32 | two << 64 | three << 96).to_le_bytes()
        };
        out.src = with(out.src, [self.sequence, self.acknowledgment, u32::from(self.window)]);
        out.dst = with(out.dst, [self.data_len, 0, 0]);
        out.flags.insert(Flags(Flags::SEGMENT.0 & mask as u16));
    }

    /// The segment in the record of an IPv4 packet with [`Flags::SEGMENT`].
    #[inline(always)]
    pub fn of(packet: &PacketRecord) -> Option<Self> {
        let wanted = Flags(Flags::SEGMENT.0 | Flags::IPV4.0);
        let word = |bytes: &[u8; 16], at| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        packet.flags.contains(wanted).then(|| Self {
            sequence: word(&packet.src, 4),
            acknowledgment: word(&packet.src, 8),
            data_len: word(&packet.dst, 4),
            window: u16::from_le_bytes([packet.src[12], packet.src[13]]),
        })
    }

    /// The segment as the bytes of an attachment.
    pub fn bytes(&self) -> [u8; 14] {
        let mut out = [0; 14];
        out[..4].copy_from_slice(&self.sequence.to_le_bytes());
        out[4..8].copy_from_slice(&self.acknowledgment.to_le_bytes());
        out[8..12].copy_from_slice(&self.data_len.to_le_bytes());
        out[12..].copy_from_slice(&self.window.to_le_bytes());
        out
    }

    /// The segment in an attachment; `None` if these are not the bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[s0, s1, s2, s3, a0, a1, a2, a3, l0, l1, l2, l3, w0, w1] =
            bytes.first_chunk::<14>()?;
        Some(Self {
            sequence: u32::from_le_bytes([s0, s1, s2, s3]),
            acknowledgment: u32::from_le_bytes([a0, a1, a2, a3]),
            data_len: u32::from_le_bytes([l0, l1, l2, l3]),
            window: u16::from_le_bytes([w0, w1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_the_same_in_a_record_and_in_an_attachment() {
        let segment =
            Segment { sequence: u32::MAX - 1, acknowledgment: 7, data_len: 70_000, window: 512 };
        let mut packet = PacketRecord { flags: Flags::IPV4, ..PacketRecord::EMPTY };
        segment.put(false, &mut packet);
        assert_eq!((Segment::of(&packet), packet.src), (None, [0; 16]));
        segment.put(true, &mut packet);
        assert_eq!(Segment::of(&packet), Some(segment));
        assert_eq!(Segment::from_bytes(&segment.bytes()), Some(segment));
        assert_eq!(Segment::from_bytes(&[0; 13]), None);
        assert_eq!((&packet.src[..4], &packet.dst[..4]), (&[0; 4][..], &[0; 4][..]));
    }
}
