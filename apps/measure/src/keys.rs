//! Kinds of keys, and how a packet's key is made.
//!
//! ```text
//!  five-tuple   │ source │ destination │ source port │ destination port │ protocol │   13 or 37 bytes
//!  pair         │ source │ destination │                                              8 or 32
//!  address      │ source or destination; bits after a prefix are zero │            4 or 16
//! ```
//!
//! IPv4 and IPv6 have keys of different lengths, so each has its own structure. All numbers are in
//! network order. Keys have a direction: the two directions between hosts are different keys.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ringtap_sketch::Key;
use ringtap_wire::PacketRecord;
use thiserror::Error;

/// The kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBy {
    /// Addresses, ports and protocol. For ICMP the destination port is type and code.
    FiveTuple,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// Source and destination.
    Pair,
    /// A prefix of the source, at most 32 bits for IPv4.
    SourcePrefix(u8),
    /// A prefix of the destination.
    DestinationPrefix(u8),
}

/// A name that is not a kind of key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "unknown key {0:?}: use five-tuple, source, destination, pair, prefix:N or \
     destination-prefix:N, with N from 0 to 128 bits"
)]
pub struct UnknownKey(String);

impl FromStr for CountBy {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        let bits = |bits: &str| match bits.parse() {
            Ok(bits @ 0..=128) => Ok(bits),
            _ => Err(unknown()),
        };
        match text.split_once(':') {
            None => match text {
                "five-tuple" => Ok(Self::FiveTuple),
                "source" | "src" => Ok(Self::Source),
                "destination" | "dst" => Ok(Self::Destination),
                "pair" => Ok(Self::Pair),
                _ => Err(unknown()),
            },
            Some(("prefix", n)) => bits(n).map(Self::SourcePrefix),
            Some(("destination-prefix", n)) => bits(n).map(Self::DestinationPrefix),
            Some(_) => Err(unknown()),
        }
    }
}

impl fmt::Display for CountBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FiveTuple => f.pad("five-tuple"),
            Self::Source => f.pad("source"),
            Self::Destination => f.pad("destination"),
            Self::Pair => f.pad("pair"),
            Self::SourcePrefix(bits) => write!(f, "prefix:{bits}"),
            Self::DestinationPrefix(bits) => write!(f, "destination-prefix:{bits}"),
        }
    }
}

impl CountBy {
    fn prefix(self) -> Option<u8> {
        match self {
            Self::SourcePrefix(bits) | Self::DestinationPrefix(bits) => Some(bits),
            _ => None,
        }
    }
}

/// The lengths of keys of both IP versions.
pub trait Keys: Copy + fmt::Debug + Send + Sync + 'static {
    /// The key of an IPv4 packet.
    type V4: PacketKey;
    /// The key of an IPv6 packet.
    type V6: PacketKey;
}

/// Keys of one address.
#[derive(Clone, Copy, Debug)]
pub struct AddressKeys;
/// Keys of two addresses.
#[derive(Clone, Copy, Debug)]
pub struct PairKeys;
/// Keys of addresses, ports and protocol.
#[derive(Clone, Copy, Debug)]
pub struct TupleKeys;

impl Keys for AddressKeys {
    type V4 = [u8; 4];
    type V6 = [u8; 16];
}
impl Keys for PairKeys {
    type V4 = [u8; 8];
    type V6 = [u8; 32];
}
impl Keys for TupleKeys {
    type V4 = [u8; 13];
    type V6 = [u8; 37];
}

/// Runs a block with the key lengths known at compile time.
#[macro_export]
macro_rules! with_keys {
    ($by:expr, $V:ident => $body:expr) => {
        match $by {
            $crate::CountBy::FiveTuple => {
                type $V = $crate::TupleKeys;
                $body
            }
            $crate::CountBy::Pair => {
                type $V = $crate::PairKeys;
                $body
            }
            _ => {
                type $V = $crate::AddressKeys;
                $body
            }
        }
    };
}

/// How keys are made of packets.
#[derive(Clone, Copy, Debug)]
pub struct Keying {
    destination: bool,
    mask: [u8; 16],
}

impl Keying {
    /// Creates the function from packets to keys.
    pub fn new(by: CountBy) -> Self {
        let bits = usize::from(by.prefix().unwrap_or(128));
        let byte = |at: usize| (0xff00u16 >> bits.saturating_sub(8 * at).min(8)) as u8;
        Self {
            destination: matches!(by, CountBy::Destination | CountBy::DestinationPrefix(_)),
            mask: std::array::from_fn(byte),
        }
    }
}

/// A key of one IP version.
pub trait PacketKey: Key {
    /// The key of a packet of that version.
    fn of(packet: &PacketRecord, keying: &Keying) -> Self;

    /// As text: `TCP 192.0.2.1:5000 > 192.0.2.2:80`, `192.0.2.1 > 192.0.2.2`, `192.0.2.0/24`.
    fn text(&self, by: CountBy) -> String;
}

/// Bytes of an address in a key of this length.
const fn address_bytes(key: usize) -> usize {
    if matches!(key, 4 | 8 | 13) { 4 } else { 16 }
}

impl<const N: usize> PacketKey for [u8; N] {
    #[inline(always)]
    fn of(packet: &PacketRecord, keying: &Keying) -> Self {
        let a = const { address_bytes(N) };
        let mut key = [0; N];
        // The length determines the kind, so the compiler keeps one of the three.
        if N == a {
            let address = if keying.destination { &packet.dst } else { &packet.src };
            for ((byte, address), mask) in key.iter_mut().zip(address).zip(&keying.mask) {
                *byte = address & mask;
            }
            return key;
        }
        key[..a].copy_from_slice(&packet.src[..a]);
        key[a..2 * a].copy_from_slice(&packet.dst[..a]);
        if N > 2 * a {
            key[2 * a..2 * a + 2].copy_from_slice(&packet.src_port.to_be_bytes());
            key[2 * a + 2..2 * a + 4].copy_from_slice(&packet.dst_port.to_be_bytes());
            key[2 * a + 4] = packet.protocol;
        }
        key
    }

    fn text(&self, by: CountBy) -> String {
        let a = address_bytes(N);
        let address = |at: usize| match <[u8; 4]>::try_from(&self[at..at + a]) {
            Ok(v4) => IpAddr::V4(Ipv4Addr::from(v4)),
            Err(_) => {
                let mut v6 = [0; 16];
                v6[..a].copy_from_slice(&self[at..at + a]);
                IpAddr::V6(Ipv6Addr::from(v6))
            }
        };
        if N == a {
            let bits = by.prefix().map(|bits| usize::from(bits).min(8 * a));
            return bits.map_or_else(|| address(0).to_string(), |n| format!("{}/{n}", address(0)));
        }
        let (source, destination) = (address(0), address(a));
        if N == 2 * a {
            return format!("{source} > {destination}");
        }
        let port = |at: usize| u16::from_be_bytes([self[at], self[at + 1]]);
        let protocol = match self[N - 1] {
            1 => "ICMP".into(),
            6 => "TCP".into(),
            17 => "UDP".into(),
            58 => "ICMPv6".into(),
            132 => "SCTP".into(),
            other => format!("protocol {other}"),
        };
        let source = SocketAddr::new(source, port(2 * a));
        let destination = SocketAddr::new(destination, port(2 * a + 2));
        format!("{protocol} {source} > {destination}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> PacketRecord {
        let mut packet =
            PacketRecord { src_port: 5000, dst_port: 443, protocol: 6, ..PacketRecord::EMPTY };
        packet.src[..4].copy_from_slice(&[192, 0, 2, 129]);
        packet.dst[..4].copy_from_slice(&[198, 51, 100, 7]);
        packet
    }

    fn key<K: PacketKey>(by: &str, packet: &PacketRecord) -> String {
        let by = by.parse().unwrap();
        K::of(packet, &Keying::new(by)).text(by)
    }

    #[test]
    fn keys_are_printed_as_addresses_and_ports() {
        let mut packet = packet();
        assert_eq!(
            key::<[u8; 13]>("five-tuple", &packet),
            "TCP 192.0.2.129:5000 > 198.51.100.7:443"
        );
        assert_eq!(key::<[u8; 8]>("pair", &packet), "192.0.2.129 > 198.51.100.7");
        assert_eq!(key::<[u8; 4]>("source", &packet), "192.0.2.129");
        assert_eq!(key::<[u8; 4]>("destination", &packet), "198.51.100.7");
        assert_eq!(key::<[u8; 4]>("prefix:25", &packet), "192.0.2.128/25");
        assert_eq!(key::<[u8; 4]>("prefix:0", &packet), "0.0.0.0/0");
        assert_eq!(key::<[u8; 4]>("prefix:64", &packet), "192.0.2.129/32");
        assert_eq!(key::<[u8; 4]>("destination-prefix:9", &packet), "198.0.0.0/9");
        packet.src = "2001:db8:1234:5678::1".parse::<Ipv6Addr>().unwrap().octets();
        packet.dst = "2001:db8::2".parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(key::<[u8; 16]>("prefix:36", &packet), "2001:db8:1000::/36");
        assert_eq!(key::<[u8; 32]>("pair", &packet), "2001:db8:1234:5678::1 > 2001:db8::2");
        let tuple = "TCP [2001:db8:1234:5678::1]:5000 > [2001:db8::2]:443";
        assert_eq!(key::<[u8; 37]>("five-tuple", &packet), tuple);
    }

    #[test]
    fn names_are_read_and_unknown_ones_are_errors() {
        for name in
            ["five-tuple", "source", "destination", "pair", "prefix:24", "destination-prefix:64"]
        {
            assert_eq!(name.parse::<CountBy>().unwrap().to_string(), name);
        }
        assert_eq!("src".parse(), Ok(CountBy::Source));
        assert_eq!("dst".parse(), Ok(CountBy::Destination));
        for wrong in ["", "prefix", "prefix:129", "prefix:-1", "source:8", "tuple"] {
            assert!(
                wrong.parse::<CountBy>().unwrap_err().to_string().contains("prefix:N"),
                "{wrong}"
            );
        }
    }
}
