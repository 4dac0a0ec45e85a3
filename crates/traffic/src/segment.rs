//! Finds UDP or TCP in a frame, and computes its checksum.
//!
//! ```text
//!  | Ethernet 14, up to two tags | IPv4 or IPv6 | header | payload … |
//!                                               └ at     └ payload   └ end
//! ```
//!
//! Invariant: no bytes make it panic. The packet is completely within the frame: fragments, truncated frames and IPv6
//! packets with extension headers are not found.

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const UDP: u8 = 17;
const TCP: u8 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    at: usize,
    pub(crate) payload: usize,
    pub(crate) end: usize,
    /// Offset of the checksum.
    checksum: usize,
    /// The sum of the covered fields before `at`.
    pseudo: u32,
    udp: bool,
    /// A checksum of 0 means that there is none.
    optional: bool,
}

impl Segment {
    pub(crate) fn find(frame: &[u8]) -> Option<Self> {
        let mut ip = 14;
        while ip < 22 && TAGS.contains(&half(frame, ip - 2)?) {
            ip += 4;
        }
        let (at, len, protocol, addresses) = match half(frame, ip - 2)? {
            0x0800 => {
                let first = *frame.get(ip)?;
                let (header, total) =
                    (usize::from(first & 0x0f) * 4, usize::from(half(frame, ip + 2)?));
                let fragment = half(frame, ip + 6)? & 0x3fff != 0;
                if first >> 4 != 4 || header < 20 || total < header || fragment {
                    return None;
                }
                let addresses = frame.get(ip + 12..ip + 20)?;
                (ip + header, total - header, *frame.get(ip + 9)?, addresses)
            }
            0x86dd if frame.get(ip)? >> 4 == 6 => {
                let len = usize::from(half(frame, ip + 4)?);
                (ip + 40, len, *frame.get(ip + 6)?, frame.get(ip + 8..ip + 40)?)
            }
            _ => return None,
        };
        frame.get(at..at + len)?;
        let (header, len, checksum) = match protocol {
            UDP => (8, Some(usize::from(half(frame, at + 4)?)).filter(|&stored| stored <= len)?, 6),
            TCP => (usize::from(frame.get(at + 12)? >> 4) * 4, len, 16),
            _ => return None,
        };
        if header < checksum + 2 || header > len {
            return None;
        }
        let udp = protocol == UDP;
        Some(Self {
            at,
            payload: at + header,
            end: at + len,
            checksum: at + checksum,
            pseudo: sum(addresses) + u32::from(protocol) + len as u32,
            udp,
            optional: udp && addresses.len() == 8,
        })
    }

    /// Writes the correct checksum, unless the packet has none.
    pub(crate) fn seal(&self, frame: &mut [u8]) {
        if self.optional && half(frame, self.checksum) == Some(0) {
            return;
        }
        put(frame, self.checksum, 0);
        let checksum = !self.folded(frame);
        // A checksum of 0 means that there is none.
        put(frame, self.checksum, if checksum == 0 && self.udp { 0xffff } else { checksum });
    }

    /// Returns true if the checksum is correct, or optional and missing.
    pub(crate) fn is_whole(&self, frame: &[u8]) -> bool {
        self.optional && half(frame, self.checksum) == Some(0) || self.folded(frame) == 0xffff
    }

    fn folded(&self, frame: &[u8]) -> u16 {
        let mut sum = self.pseudo + sum(frame.get(self.at..self.end).unwrap_or_default());
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

/// The sum of 16-bit words, not folded: for the longest IP packet it fits 32 bits.
fn sum(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs.remainder().first().map_or(0, |&byte| u32::from(byte) << 8);
    last + pairs.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
