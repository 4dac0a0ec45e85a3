//! Offsets of the headers of a TCP, UDP or SCTP packet.
//!
//! ```text
//!  Ethernet 14 | VLAN tags 4, up to three | IPv4, or IPv6 with extension headers | TCP, UDP or SCTP | payload
//! ```
//!
//! Invariant: all offsets are within the frame, `ip < transport <= end`.

use super::sum::sum;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

const TAGS: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
const TAGS_MOST: usize = 3;

/// IPv6 extension headers that may precede the transport header and do not change the addresses.
const HOP_BY_HOP: u8 = 0;
const DESTINATION: u8 = 60;
const EXTENSIONS_MOST: usize = 8;

/// Offsets of a packet's headers in its frame, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    /// Offset of the IP header.
    pub(super) ip: usize,
    /// True for IPv6, false for IPv4.
    pub(super) v6: bool,
    pub(super) protocol: u8,
    /// Offset of the transport header.
    pub(super) transport: usize,
    /// Offset of the packet's end; padding may follow.
    pub(super) end: usize,
}

impl Headers {
    /// Finds the headers of the outermost IP packet. Returns `None` for a frame that is not IP, an
    /// IPv4 fragment, a truncated packet, or an IPv6 length of 0 (a jumbogram). Another extension
    /// header (routing, fragment) ends the search: `protocol` then holds its number.
    pub(super) fn find(frame: &[u8]) -> Option<Self> {
        let mut at = 12;
        while at < 12 + 4 * TAGS_MOST && TAGS.contains(frame.get(at..)?.first_chunk()?) {
            at += 4;
        }
        let (kind, ip) = (frame.get(at..)?.first_chunk::<2>()?, at + 2);
        match kind {
            [0x08, 0x00] => Self::v4(frame, ip),
            [0x86, 0xdd] => Self::v6(frame, ip),
            _ => None,
        }
        .filter(|found| found.transport <= found.end && found.end <= frame.len())
    }

    fn v4(frame: &[u8], ip: usize) -> Option<Self> {
        let header = frame.get(ip..)?.first_chunk::<20>()?;
        let len = usize::from(header[0] & 15) * 4;
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        (header[0] >> 4 == 4 && len >= 20 && !fragment).then_some(Self {
            ip,
            v6: false,
            protocol: header[9],
            transport: ip + len,
            end: ip + total,
        })
    }

    fn v6(frame: &[u8], ip: usize) -> Option<Self> {
        let header = frame.get(ip..)?.first_chunk::<40>()?;
        let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let (mut protocol, mut transport) = (header[6], ip + 40);
        if header[0] >> 4 != 6 || len == 0 {
            return None;
        }
        for _ in 0..EXTENSIONS_MOST {
            if !matches!(protocol, HOP_BY_HOP | DESTINATION) {
                break;
            }
            let [next, units] = *frame.get(transport..)?.first_chunk()?;
            protocol = next;
            transport += 8 * (usize::from(units) + 1);
        }
        Some(Self { ip, v6: true, protocol, transport, end: ip + 40 + len })
    }

    /// The sum of the pseudo header for `len` bytes of transport header and payload, not folded.
    pub(super) fn pseudo(&self, frame: &[u8], len: usize) -> u64 {
        let addresses =
            if self.v6 { self.ip + 8..self.ip + 40 } else { self.ip + 12..self.ip + 20 };
        let protocol = u16::from(self.protocol);
        sum(frame.get(addresses).unwrap_or_default())
            + sum(&(len as u32).to_be_bytes())
            + sum(&protocol.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::offload::segments::tests::{tcp, udp};

    #[test]
    fn headers_are_found_behind_tags_and_extensions() {
        let plain = tcp(&[], false, 100);
        let found = Headers::find(&plain).unwrap();
        let expected =
            Headers { ip: 14, v6: false, protocol: TCP, transport: 34, end: plain.len() };
        assert_eq!(found, expected);
        let tagged = udp(&[0x88a8, 0x8100], true, 100);
        let found = Headers::find(&tagged).unwrap();
        assert_eq!((found.ip, found.v6, found.transport), (22, true, 62));
        let mut extended = tcp(&[], true, 100);
        extended[20] = DESTINATION;
        extended.splice(54..54, [TCP, 1].into_iter().chain([0; 14]));
        extended[18..20].copy_from_slice(&140_u16.to_be_bytes());
        let found = Headers::find(&extended).unwrap();
        assert_eq!((found.protocol, found.transport, found.end), (TCP, 70, extended.len()));
        // Padding does not belong to the packet.
        let padded = [&plain[..], &[0; 7]].concat();
        assert_eq!(Headers::find(&padded).unwrap().end, plain.len());
    }

    #[test]
    fn truncated_packets_and_fragments_are_not_found() {
        let plain = tcp(&[0x8100], false, 10);
        for len in 0..plain.len() {
            assert_eq!(Headers::find(&plain[..len]), None, "{len}");
        }
        let mut fragment = plain.clone();
        fragment[18 + 6] = 0x20;
        assert_eq!(Headers::find(&fragment), None);
        let mut routed = tcp(&[], true, 10);
        routed[20] = 43;
        assert_eq!(Headers::find(&routed).unwrap().protocol, 43);
    }
}
