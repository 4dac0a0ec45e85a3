//! Packet sampling: a hash of the fields that do not change on a packet's path.
//!
//! ```text
//!  IPv4  addresses | protocol | total length   | identification | first 8 bytes after the header
//!  IPv6  addresses | next     | payload length |                | (TCP: ports and sequence number;
//!  else  the first 64 bytes                                        UDP: the whole header)
//! ```
//!
//! Source: RFC 5475, section 5.2.2 (hash-based selection). Time to live, checksum, type of service and all link headers
//! are excluded, because routers change them. The hash has a fixed key: every run and every observation point selects
//! the same packets, with any number of threads. So an attacker can construct packets that are not sampled; do not
//! sample if that matters.
//!
//! Invariant: the hash depends only on the packet. Bytes that were not captured read as zero.

use crate::hash::HashKey;
use crate::ip::check;
use crate::link::{self, LinkType, Stack};
use crate::network::Network;
use crate::span::Span;

/// A fixed key, so that all observation points select the same packets.
const KEY: HashKey = HashKey::from_seed(0);

/// The hash of a frame's outermost IP packet, uniform over all 32 bits; without IP, the hash of the frame.
/// `original_len` is the frame's length on the wire.
pub fn selection_hash(link: LinkType, frame: &[u8], original_len: u32) -> u32 {
    let span = Span::frame(frame, original_len);
    let hash = match link::strip(link, span, &mut Stack::default()) {
        Ok(Network::Ipv4(packet)) => v4(packet.bytes),
        Ok(Network::Ipv6(packet)) => v6(packet.bytes),
        Err(_) => other(frame),
    };
    (hash >> 32) as u32
}

/// The hash of all of a frame's outermost IP packet that does not change on its path, with a key of the run; `None` without
/// IP. All of it depends on the key, or a sender could make packets that seem to be copies of others.
pub fn content_hash(key: &HashKey, link: LinkType, frame: &[u8], original_len: u32) -> Option<u64> {
    let span = Span::frame(frame, original_len);
    let network = link::strip(link, span, &mut Stack::default()).ok()?;
    // The packet's length excludes the padding of the link.
    let end = check::len(&network).unwrap_or(u32::MAX) as usize;
    let (header, header_len, bytes) = match network {
        Network::Ipv4(packet) => {
            let h = padded::<20>(packet.bytes);
            // Header length, total length, identification, fragment and protocol.
            let fields = word(&[h[0], h[2], h[3], h[4], h[5], h[6], h[7], h[9]]);
            (key.word(key.word(word(&h[12..20])) ^ fields), 20, packet.bytes)
        }
        Network::Ipv6(packet) => {
            let h = padded::<40>(packet.bytes);
            let (mut src, mut dst) = ([0; 16], [0; 16]);
            src.copy_from_slice(&h[8..24]);
            dst.copy_from_slice(&h[24..]);
            let addresses = key.word(key.word(key.address(&src)) ^ key.address(&dst));
            let fields = word(&[h[0] & 0xf0, h[4], h[5], h[6]]);
            (key.word(addresses ^ fields), 40, packet.bytes)
        }
    };
    let rest = bytes.get(header_len..end.min(bytes.len())).unwrap_or_default();
    let (words, last) = rest.as_chunks::<8>();
    let hash = words.iter().fold(header, |hash, bytes| key.word(hash ^ u64::from_le_bytes(*bytes)));
    Some(key.word(key.word(hash ^ word(last)) ^ rest.len() as u64))
}

fn v4(packet: &[u8]) -> u64 {
    let h = padded::<20>(packet);
    let after = packet.get(usize::from(h[0] & 0x0f) * 4..).unwrap_or_default();
    let addresses = word(&h[12..20]);
    let length_and_identification =
        u64::from(h[2]) << 24 | u64::from(h[3]) << 16 | u64::from(h[4]) << 8 | u64::from(h[5]);
    mix(KEY.word(addresses), length_and_identification << 8 | u64::from(h[9]), after)
}

fn v6(packet: &[u8]) -> u64 {
    let h = padded::<40>(packet);
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&h[8..24]);
    dst.copy_from_slice(&h[24..]);
    let addresses = KEY.word(KEY.address(&src)) ^ KEY.address(&dst);
    let length = u64::from(h[4]) << 8 | u64::from(h[5]);
    mix(addresses, length << 8 | u64::from(h[6]), packet.get(40..).unwrap_or_default())
}

fn other(frame: &[u8]) -> u64 {
    padded::<64>(frame).chunks_exact(8).fold(0, |hash, bytes| KEY.word(hash ^ word(bytes)))
}

fn mix(addresses: u64, header: u64, after: &[u8]) -> u64 {
    let transport = word(&padded::<8>(after));
    KEY.word(KEY.word(KEY.word(addresses) ^ header) ^ transport)
}

/// The first `N` bytes, padded with zeros.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let len = bytes.len().min(N);
    out[..len].copy_from_slice(&bytes[..len]);
    out
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(padded(bytes))
}

#[cfg(test)]
mod tests {
    use ringtap_base::SplitMix;

    use super::*;

    fn packet(number: u32) -> Vec<u8> {
        let [a, b, c, d] = number.to_be_bytes();
        let mut packet = vec![0x45, 0, 0, 48, c, d, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x12, 0x34, 0, 80, a, b, c, d, 0, 0, 0, 0, 0x50, 0x10, 0, 0]);
        packet
    }

    fn ethernet(tags: &[u8], packet: &[u8]) -> Vec<u8> {
        [&[2; 12][..], tags, &[8, 0], packet].concat()
    }

    #[test]
    fn the_hash_ignores_the_fields_that_routers_change_and_no_others() {
        let plain = packet(7);
        let hash = selection_hash(LinkType::RAW, &plain, 0);
        let mut routed = plain.clone();
        (routed[1], routed[8], routed[10], routed[11]) = (0xb8, 3, 0xaa, 0xbb);
        assert_eq!(selection_hash(LinkType::RAW, &routed, 0), hash);
        assert_eq!(selection_hash(LinkType::ETHERNET, &ethernet(&[], &routed), 0), hash);
        let tagged = ethernet(&[0x81, 0, 0, 7], &routed);
        assert_eq!(selection_hash(LinkType::ETHERNET, &tagged, 0), hash);
        // Length, identification, protocol, either address, port, sequence number.
        for at in [3, 5, 9, 15, 19, 21, 27] {
            let mut other = plain.clone();
            other[at] ^= 1;
            assert_ne!(selection_hash(LinkType::RAW, &other, 0), hash, "byte {at}");
        }
    }

    #[test]
    fn the_content_hash_has_all_bytes_but_those_that_routers_and_links_change() {
        let key = HashKey::from_seed(1);
        let hash = |frame: &[u8]| content_hash(&key, LinkType::ETHERNET, frame, 0).unwrap();
        let mut plain = packet(7);
        plain.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let expected = hash(&ethernet(&[], &plain));
        let mut routed = plain.clone();
        (routed[1], routed[8], routed[10], routed[11]) = (0xb8, 3, 0xaa, 0xbb);
        let mut tagged = ethernet(&[0x81, 0, 0, 7], &routed);
        assert_eq!(hash(&tagged), expected);
        // The padding of the link.
        tagged.extend([9; 10]);
        assert_eq!(hash(&tagged), expected);
        for at in (0..plain.len()).filter(|at| ![0, 1, 8, 10, 11].contains(at)) {
            let mut other = plain.clone();
            other[at] ^= 1;
            assert_ne!(hash(&ethernet(&[], &other)), expected, "byte {at}");
        }
        assert_eq!(content_hash(&key, LinkType::ETHERNET, &[0; 60], 0), None);
        // The data of a packet without a length.
        plain[2..4].copy_from_slice(&[0, 0]);
        let expected = hash(&ethernet(&[], &plain));
        *plain.last_mut().unwrap() ^= 1;
        assert_ne!(hash(&ethernet(&[], &plain)), expected);
    }

    /// Packets made so that the hash with the fixed key is the same: one factor of its multiplication is zero.
    #[test]
    fn packets_made_to_have_one_sampling_hash_are_no_copies() {
        let first = (SplitMix::new(0).next() | 1).to_ne_bytes();
        let packet = |number: u8| {
            let mut packet = [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &first, &[number; 8]].concat();
            packet.extend([[1; 16].as_slice(), &[0, 53, 0, 53, 0, 8, 0, 0]].concat());
            packet
        };
        let sampling = |number| selection_hash(LinkType::RAW, &packet(number), 0);
        assert!((0..100).all(|number| sampling(number) == sampling(0)));
        for seed in 1..20 {
            let hash =
                |number| content_hash(&HashKey::from_seed(seed), LinkType::RAW, &packet(number), 0);
            assert!((1..100).all(|number| hash(number).is_some() && hash(number) != hash(0)));
        }
    }

    #[test]
    fn one_in_n_packets_is_selected() {
        for n in [2_u64, 10, 100] {
            let selected = |number: &u32| {
                (u64::from(selection_hash(LinkType::RAW, &packet(*number), 0)) * n) >> 32 == 0
            };
            let count = (0..100_000).filter(selected).count() as f64;
            let expected = 100_000.0 / n as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "1:{n} selected {count}");
        }
    }

    #[test]
    fn short_frames_have_a_hash() {
        for link in LinkType::SUPPORTED {
            for len in 0..60 {
                selection_hash(link, &vec![0x45; len], 0);
                selection_hash(link, &vec![0x60; len], 0);
            }
        }
        assert_ne!(
            selection_hash(LinkType(9999), &[1], 0),
            selection_hash(LinkType(9999), &[2], 0)
        );
    }
}
