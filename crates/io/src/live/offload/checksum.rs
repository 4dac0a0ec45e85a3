//! Checksums of TCP, UDP and SCTP. Sources: RFC 1071, RFC 768, RFC 9293, RFC 9260 (CRC32c).

use super::headers::{Headers, SCTP, TCP, UDP};
use super::sum::{fold, sum};
use super::virtio::{Offload, OffloadError};

/// Offset of the checksum in the transport header.
pub(super) const AT_TCP: usize = 16;
pub(super) const AT_UDP: usize = 6;
pub(super) const AT_SCTP: usize = 8;

/// Computes the checksum of a frame, if it is missing.
///
/// With [`Offload::Unknown`] a checksum counts as missing if it is wrong and equal to the sum of
/// the pseudo header (SCTP: 0), which is what a sender leaves for the network card. Packets inside
/// tunnels are not inspected.
///
/// # Errors
/// If the checksum field is outside the frame, or the frame is a super-frame.
pub fn complete(frame: &mut [u8], offload: Offload) -> Result<(), OffloadError> {
    match offload {
        Offload::Done => Ok(()),
        Offload::Unknown => {
            complete_unmarked(frame);
            Ok(())
        }
        Offload::Checksum { start, offset } => {
            let (start, offset) = (start as usize, offset as usize);
            // Only SCTP has its checksum at this offset. The kernel does not report that it is a
            // CRC.
            if offset == AT_SCTP {
                let end = Headers::find(frame)
                    .filter(|found| found.protocol == SCTP && found.transport == start)
                    .map_or(frame.len(), |found| found.end);
                let packet = frame.get_mut(start..end).ok_or(OffloadError)?;
                return put_crc(packet).ok_or(OffloadError);
            }
            put_sum(frame.get_mut(start..).ok_or(OffloadError)?, offset).ok_or(OffloadError)
        }
        Offload::Segments { .. } | Offload::Unsupported => Err(OffloadError),
    }
}

/// Computes the checksum if its field shows that it is missing. `None`: not missing, or not a
/// supported packet.
fn complete_unmarked(frame: &mut [u8]) -> Option<()> {
    let found = Headers::find(frame)?;
    let at = match found.protocol {
        TCP => AT_TCP,
        UDP => AT_UDP,
        SCTP => return complete_unmarked_crc(frame.get_mut(found.transport..found.end)?),
        _ => return None,
    };
    let pseudo = fold(found.pseudo(frame, found.end - found.transport));
    let packet = frame.get_mut(found.transport..found.end)?;
    let field = u16::from_ne_bytes(*packet.get(at..)?.first_chunk()?);
    // Nearly all complete frames return here.
    if field != pseudo {
        return None;
    }
    // If the sum is 0xffff, the checksum is already correct.
    if fold(u64::from(pseudo) + sum(packet)) == u16::MAX {
        return None;
    }
    put_sum(packet, at)
}

fn complete_unmarked_crc(packet: &mut [u8]) -> Option<()> {
    let missing = packet.get(AT_SCTP..AT_SCTP + 4)? == [0; 4];
    if missing { put_crc(packet) } else { None }
}

/// Writes the complement of the sum of all bytes to offset `at`, which holds the sum of the pseudo
/// header before.
pub(super) fn put_sum(packet: &mut [u8], at: usize) -> Option<()> {
    let checksum = !fold(sum(packet));
    // In UDP 0 means that there is no checksum. Elsewhere 0 and 0xffff are equivalent.
    let checksum = if checksum == 0 { u16::MAX } else { checksum };
    packet.get_mut(at..at + 2)?.copy_from_slice(&checksum.to_ne_bytes());
    Some(())
}

fn put_crc(packet: &mut [u8]) -> Option<()> {
    packet.get_mut(AT_SCTP..AT_SCTP + 4)?.fill(0);
    let crc = crc32c(packet);
    packet.get_mut(AT_SCTP..AT_SCTP + 4)?.copy_from_slice(&crc.to_le_bytes());
    Some(())
}

/// CRC32c of each byte value, with the reflected polynomial.
const CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| crc >> 8 ^ CRC32C[usize::from((crc as u8) ^ byte)])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::live::offload::segments::tests::{tcp, udp};

    /// Whether the checksum is correct, computed independently: word by word, big-endian.
    pub(in crate::live::offload) fn is_right(frame: &[u8]) -> bool {
        let found = Headers::find(frame).unwrap();
        let (ip, len) = (found.ip, found.end - found.transport);
        let addresses = if found.v6 { ip + 8..ip + 40 } else { ip + 12..ip + 20 };
        let mut bytes = frame[addresses].to_vec();
        bytes.extend((len as u32).to_be_bytes());
        bytes.extend([0, found.protocol]);
        bytes.extend(&frame[found.transport..found.end]);
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum == 0xffff
    }

    /// Leaves the checksum to the network card; returns the offload that the kernel would report.
    fn leave_to_card(frame: &mut [u8]) -> Offload {
        let found = Headers::find(frame).unwrap();
        let at = if found.protocol == TCP { AT_TCP } else { AT_UDP };
        let pseudo = fold(found.pseudo(frame, found.end - found.transport));
        let place = found.transport + at;
        frame[place..place + 2].copy_from_slice(&pseudo.to_ne_bytes());
        Offload::Checksum { start: found.transport as u32, offset: at as u32 }
    }

    #[test]
    fn a_missing_checksum_is_completed_with_and_without_a_virtio_header() {
        for (tags, v6, len) in
            [(&[][..], false, 100), (&[0x8100], true, 101), (&[0x88a8, 0x8100], false, 0)]
        {
            for make in [tcp, udp] {
                let mut frame = make(tags, v6, len);
                let offload = leave_to_card(&mut frame);
                assert!(!is_right(&frame));
                let mut unmarked = [&frame[..], &[0; 5]].concat();
                complete(&mut frame, offload).unwrap();
                assert!(is_right(&frame), "{tags:?} {v6} {len}");
                complete(&mut unmarked, Offload::Unknown).unwrap();
                assert_eq!(unmarked[..frame.len()], frame);
            }
        }
    }

    #[test]
    fn an_existing_checksum_is_unchanged_even_if_wrong() {
        for make in [tcp, udp] {
            let mut frame = make(&[], false, 100);
            let offload = leave_to_card(&mut frame);
            complete(&mut frame, offload).unwrap();
            // A damaged frame is forwarded damaged, so that its receiver detects it.
            let mut damaged = frame.clone();
            damaged[60] ^= 4;
            for whole in [frame, damaged] {
                let mut after = whole.clone();
                complete(&mut after, Offload::Unknown).unwrap();
                assert_eq!(after, whole);
                complete(&mut after, Offload::Done).unwrap();
                assert_eq!(after, whole);
            }
        }
        // No checksum at all.
        let mut none = udp(&[], false, 100);
        none[40..42].fill(0);
        let before = none.clone();
        complete(&mut none, Offload::Unknown).unwrap();
        assert_eq!(none, before);
    }

    #[test]
    fn sctp_uses_crc32c() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let mut frame = udp(&[], false, 40);
        frame[23] = SCTP;
        frame[42..46].fill(0);
        let mut packet = frame[34..].to_vec();
        put_crc(&mut packet).unwrap();
        for offload in [Offload::Unknown, Offload::Checksum { start: 34, offset: 8 }] {
            let mut after = frame.clone();
            complete(&mut after, offload).unwrap();
            assert_eq!(after[34..], packet);
        }
    }

    #[test]
    fn a_checksum_field_outside_the_frame_is_an_error() {
        let frame = tcp(&[], false, 10);
        for (start, offset) in [(1000, 0), (34, 33), (34, 34), (64, 8), (60, u32::MAX >> 1)] {
            let mut after = frame.clone();
            let offload = Offload::Checksum { start, offset };
            assert_eq!(complete(&mut after, offload), Err(OffloadError), "{start} {offset}");
            assert_eq!(after, frame);
        }
        let segments = Offload::Segments { size: 1, tcp: true, ecn: false, checksum: None };
        for offload in [segments, Offload::Unsupported] {
            assert_eq!(complete(&mut frame.clone(), offload), Err(OffloadError));
        }
    }
}
