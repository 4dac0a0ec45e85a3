//! A template frame to send copies of, and the fields that differ between the copies.
//!
//! ```text
//!  Ethernet, VLAN tags | IPv4: … checksum, source, … | TCP or UDP: source port … checksum …
//!                               └ set    └ + i                      └ + i          └ set (TCP), 0 (UDP)
//! ```
//!
//! Invariant: copy `i` of `0..flows` has the template's source address and source port, each plus
//! `i`, and correct checksums. So there are exactly `flows` flows. For protocols other than TCP and
//! UDP only the address differs.

use thiserror::Error;

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const IPV4: u16 = 0x0800;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Most bytes of a template. The kernel makes the copies in a page. It needs 256 bytes before the
/// frame, 320 bytes after it, two `struct xdp_buff` (112), and before Linux 6.2 also a `struct
/// xdp_frame` (40).
const FRAME_MOST: usize = 3368;

/// Why a frame cannot be a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The frame is not a complete IPv4 packet in an Ethernet frame.
    #[error(
        "invalid frame: use a complete IPv4 packet in an Ethernet frame with at most two VLAN tags"
    )]
    NotIpv4,
    /// The frame is longer than the interface accepts, or than fits a page.
    #[error("invalid frame length {len}: use at most {most} bytes")]
    TooLong {
        /// Length of the frame, in bytes.
        len: usize,
        /// Longest possible frame, in bytes.
        most: usize,
    },
    /// The number of flows is not a power of two; holds the number.
    #[error("invalid number of flows {0}: use a power of two")]
    Flows(u32),
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// The template, with 0 in the fields that are computed for each copy.
    pub(super) frame: Vec<u8>,
    /// Number of different copies, a power of two.
    pub(super) flows: u32,
    /// Offset of the IP header.
    pub(super) ip: u16,
    pub(super) source: u32,
    /// Sum of the IP header without checksum and source address.
    pub(super) ip_sum: u32,
    pub(super) transport: Option<Transport>,
}

/// The fields above IP that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    /// Offset of the transport header.
    pub(super) at: u16,
    pub(super) port: u16,
    /// TCP: offset of the checksum in the header, and the sum of all that it covers without itself,
    /// the source address and the source port.
    pub(super) checksum: Option<(u16, u32)>,
}

impl Template {
    /// Parses `frame`. `most` is the longest frame that the interface accepts, in bytes.
    pub(super) fn new(frame: &[u8], flows: u32, most: usize) -> Result<Self, TemplateError> {
        if !flows.is_power_of_two() {
            return Err(TemplateError::Flows(flows));
        }
        let most = most.min(FRAME_MOST);
        if frame.len() > most {
            return Err(TemplateError::TooLong { len: frame.len(), most });
        }
        Self::parse(frame, flows).ok_or(TemplateError::NotIpv4)
    }

    fn parse(frame: &[u8], flows: u32) -> Option<Self> {
        let mut ip = 14;
        while TAGS.contains(&half(frame, ip - 2)?) && ip < 22 {
            ip += 4;
        }
        if half(frame, ip - 2)? != IPV4 {
            return None;
        }
        let mut frame = frame.to_vec();
        let first = *frame.get(ip)?;
        let header = usize::from(first & 0x0f) * 4;
        let total = usize::from(half(&frame, ip + 2)?);
        if first >> 4 != 4 || header < 20 || total < header || frame.len() < ip + total {
            return None;
        }
        let source = u32::from(half(&frame, ip + 12)?) << 16 | u32::from(half(&frame, ip + 14)?);
        for at in [10, 12, 14] {
            put(&mut frame, ip + at, 0)?;
        }
        let ip_sum = sum(frame.get(ip..ip + header)?);
        let transport = Self::transport(&mut frame, ip, header, total);
        Some(Self { frame, flows, ip: ip as u16, source, ip_sum, transport })
    }

    /// Returns `None` for a later fragment, for other protocols, and if the header is incomplete.
    fn transport(frame: &mut [u8], ip: usize, header: usize, total: usize) -> Option<Transport> {
        let (at, len) = (ip + header, total - header);
        let fragment = half(frame, ip + 6)? & 0x3fff != 0;
        let port = half(frame, at)?;
        let checksum = match *frame.get(ip + 9)? {
            _ if fragment => return None,
            UDP if len >= 8 => {
                // No checksum: 0 is allowed in UDP over IPv4.
                put(frame, at + 6, 0)?;
                None
            }
            TCP if len >= 20 => {
                put(frame, at, 0)?;
                put(frame, at + 16, 0)?;
                let destination = sum(frame.get(ip + 16..ip + 20)?);
                let covered = sum(frame.get(at..at + len)?);
                Some((16, destination + u32::from(TCP) + len as u32 + covered))
            }
            _ => return None,
        };
        Some(Transport { at: at as u16, port, checksum })
    }
}

/// Sum of the bytes as 16-bit words, not folded. The sum of a page fits 32 bits.
fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(pair[0]) << 8 | u32::from(low)
    };
    bytes.chunks(2).map(word).sum()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp() -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..34]
            .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&[0x30, 0x39, 0, 53]);
        frame
    }

    #[test]
    fn a_udp_datagram_is_parsed() {
        let template = Template::new(&udp(), 8, 1518).unwrap();
        assert_eq!((template.ip, template.source), (14, 0x0a00_0001));
        let transport = template.transport.as_ref().unwrap();
        assert_eq!((transport.at, transport.port, transport.checksum), (34, 12345, None));
        assert_eq!(template.ip_sum, 0x4500 + 46 + 0x4011 + 0x0a00 + 2);
    }

    #[test]
    fn vlan_tags_are_skipped() {
        let mut tagged = udp()[..12].to_vec();
        tagged.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]);
        tagged.extend(&udp()[12..]);
        assert_eq!(Template::new(&tagged, 1, 1518).unwrap().ip, 22);
    }

    #[test]
    fn only_the_address_differs_for_a_fragment() {
        let mut frame = udp();
        frame[20] = 0x20;
        assert_eq!(Template::new(&frame, 1, 1518).unwrap().transport, None);
    }

    #[test]
    fn invalid_input_is_an_error_and_never_a_panic() {
        let whole = udp();
        for len in 0..whole.len() {
            assert_eq!(Template::new(&whole[..len], 1, 1518), Err(TemplateError::NotIpv4), "{len}");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 0xff;
            let _ = Template::new(&wrong, 1, 1518);
        }
        assert_eq!(Template::new(&whole, 3, 1518), Err(TemplateError::Flows(3)));
        assert_eq!(Template::new(&whole, 0, 1518), Err(TemplateError::Flows(0)));
        let page = TemplateError::TooLong { len: 4000, most: FRAME_MOST };
        assert_eq!(Template::new(&[0; 4000], 1, 9018), Err(page));
        assert_eq!(
            Template::new(&[0; 4000], 1, 1518),
            Err(TemplateError::TooLong { len: 4000, most: 1518 })
        );
    }
}
