//! The payload of a datagram in an Ethernet frame: enough to find control packets, which are
//! unfragmented UDP datagrams behind plain headers.
//!
//! ```text
//! Ethernet 14 | VLAN tag 4, up to two | IPv4 20 to 60, or IPv6 40 | UDP 8 | payload
//! ```
//!
//! Invariant: no input makes it panic. Frames that it cannot parse are not control packets.

const UDP: u8 = 17;

/// The payload of a datagram to this port. Fragments have none.
#[inline]
pub(super) fn datagram(frame: &[u8], port: u16) -> Option<&[u8]> {
    let mut at = 12;
    while at < 20 && matches!(frame.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    let packet = frame.get(at + 2..)?;
    let udp = match frame.get(at..at + 2)? {
        [0x08, 0x00] => v4(packet)?,
        [0x86, 0xdd] => v6(packet)?,
        _ => return None,
    };
    let header = udp.first_chunk::<8>()?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    (u16::from_be_bytes([header[2], header[3]]) == port).then(|| udp.get(8..len))?
}

fn v4(packet: &[u8]) -> Option<&[u8]> {
    let header = packet.first_chunk::<20>()?;
    let len = usize::from(header[0] & 15) * 4;
    let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    (header[0] >> 4 == 4 && len >= 20 && whole && header[9] == UDP).then(|| packet.get(len..))?
}

fn v6(packet: &[u8]) -> Option<&[u8]> {
    let header = packet.first_chunk::<40>()?;
    (header[0] >> 4 == 6 && header[6] == UDP).then_some(&packet[40..])
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A datagram from 192.0.2.1 to 192.0.2.2.
    pub(in crate::run) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        let len = payload.len() as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        frame.extend((28 + len).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, UDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 4, 0]);
        frame.extend(port.to_be_bytes());
        frame.extend((8 + len).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn payloads_are_found_behind_tags_and_in_both_families() {
        let plain = udp(53, b"hello");
        let tagged = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
        let padded = [&plain[..], &[0; 20]].concat();
        let mut v6 = [&plain[..12], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 13, UDP, 64]].concat();
        v6.extend([0; 32]);
        v6.extend(&plain[34..]);
        for frame in [&plain, &tagged, &padded, &v6] {
            assert_eq!(datagram(frame, 53), Some(&b"hello"[..]));
            assert_eq!(datagram(frame, 54), None);
        }
        let mut fragment = plain.clone();
        fragment[20] = 0x20;
        assert_eq!(datagram(&fragment, 53), None);
        let mut tcp = plain;
        tcp[23] = 6;
        assert_eq!(datagram(&tcp, 53), None);
    }

    proptest! {
        #[test]
        fn no_input_causes_a_panic(at in 0..60usize, byte: u8, len in 0..60usize) {
            let mut frame = udp(53, b"some words");
            frame[at % 52] = byte;
            let _ = datagram(&frame[..len.min(frame.len())], 53);
        }
    }
}
