//! A frame to send copies of, and what differs between them.
//!
//! ```text
//!  Ethernet, VLAN tags | IPv4: … checksum, source, … | TCP or UDP: source port … checksum …
//!                               └ made   └ + i                      └ + i          └ made (TCP), 0 (UDP)
//! ```
//!
//! Invariant: copy `i` of `0..flows` has the template's source address and source port, each plus
//! `i`, and right checksums. So there are exactly `flows` flows. Of other protocols than TCP and UDP
//! the address alone differs.

use thiserror::Error;

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const IPV4: u16 = 0x0800;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The most bytes of a template. The kernel makes its copies in a page, with 256 bytes before and 320 behind them, and two
/// `struct xdp_buff` (112), before Linux 6.2 also a `struct xdp_frame` (40).
const FRAME_MOST: usize = 3368;

/// Why copies of a frame cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// Not IPv4 within Ethernet.
    #[error("not a whole IPv4 packet, in an Ethernet frame with at most two VLAN tags")]
    NotIpv4,
    /// More than the interface takes, or than fits a page.
    #[error("{len} bytes; at most {most} can be copied and sent")]
    TooLong {
        /// Bytes of the frame.
        len: usize,
        /// The longest.
        most: usize,
    },
    /// The number of flows.
    #[error("{0} flows; the number must be a power of two")]
    Flows(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// The first copy, but for what is made.
    pub(super) frame: Vec<u8>,
    /// How many copies differ, a power of two.
    pub(super) flows: u32,
    /// Where the IP header begins.
    pub(super) ip: u16,
    pub(super) source: u32,
    /// The sum of the IP header without checksum and source.
    pub(super) ip_sum: u32,
    pub(super) transport: Option<Transport>,
}

/// What differs above IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    /// Where the header begins.
    pub(super) at: u16,
    pub(super) port: u16,
    /// TCP: where the checksum stands from the header on, and the sum of all that it covers without
    /// itself, source address and source port.
    pub(super) checksum: Option<(u16, u32)>,
}

impl Template {
    /// `most` bytes are what the interface takes.
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

    /// Nothing, for a later fragment, for other protocols, and if the header is not whole.
    fn transport(frame: &mut [u8], ip: usize, header: usize, total: usize) -> Option<Transport> {
        let (at, len) = (ip + header, total - header);
        let fragment = half(frame, ip + 6)? & 0x3fff != 0;
        let port = half(frame, at)?;
        let checksum = match *frame.get(ip + 9)? {
            _ if fragment => return None,
            UDP if len >= 8 => {
                // No checksum.
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

/// The sum of 16-bit words, not folded: of a page it fits 32 bits.
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
    fn a_datagram_is_understood() {
        let template = Template::new(&udp(), 8, 1518).unwrap();
        assert_eq!((template.ip, template.source), (14, 0x0a00_0001));
        let transport = template.transport.as_ref().unwrap();
        assert_eq!((transport.at, transport.port, transport.checksum), (34, 12345, None));
        assert_eq!(template.ip_sum, 0x4500 + 46 + 0x4011 + 0x0a00 + 2);
    }

    #[test]
    fn tags_are_stepped_over() {
        let mut tagged = udp()[..12].to_vec();
        tagged.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]);
        tagged.extend(&udp()[12..]);
        assert_eq!(Template::new(&tagged, 1, 1518).unwrap().ip, 22);
    }

    #[test]
    fn of_a_fragment_the_address_alone_differs() {
        let mut frame = udp();
        frame[20] = 0x20;
        assert_eq!(Template::new(&frame, 1, 1518).unwrap().transport, None);
    }

    #[test]
    fn what_is_not_fit_is_an_error_and_never_a_panic() {
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
