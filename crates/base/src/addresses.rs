//! Addresses, networks and lists of them as users write them: the one parser of all lists.
//!
//! An IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) is the IPv4 address, and prefixes longer than `::ffff:0:0/96` are
//! IPv4 networks: packets do not carry mapped addresses, so such an entry would never match. An address in a packet's own
//! header stays what it is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The address in a text; an IPv4-mapped one is the IPv4 address.
pub fn parse_address(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// The first bits of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// The lowest address.
    pub address: IpAddr,
    /// Number of bits.
    pub length: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotANetwork {
    /// No address.
    Address,
    /// The length is not a number from the first to the second.
    Length(u8, u8),
    /// Bits behind those of this network are set.
    HostBits(Network),
}

impl Network {
    /// The network of this length that has the address.
    pub fn around(address: IpAddr, length: u8) -> Self {
        let kept = |bits: u8| !u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        let address = match address {
            IpAddr::V4(address) => {
                let kept = (kept(length.min(32)) >> 96) as u32;
                IpAddr::V4((address.to_bits() & kept).into())
            }
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & kept(length)).into()),
        };
        Self { address, length }
    }
}

/// An address, or an address with the length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length } = self;
        match *length == if address.is_ipv4() { 32 } else { 128 } {
            true => write!(f, "{address}"),
            false => write!(f, "{address}/{length}"),
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    /// An address is a network of one address.
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        const MAPPED: u8 = 96;
        let (address, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let written: IpAddr = address.parse().map_err(|_| NotANetwork::Address)?;
        let address = written.to_canonical();
        let is_mapped = written != address;
        // A list of networks that are not routed may have `::ffff:0:0/96`, and does not mean all of IPv4.
        let least = if is_mapped { MAPPED + 1 } else { 0 };
        let most = if written.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) => {
                let length = digits.parse().ok().filter(|n| (least..=most).contains(n));
                length.ok_or(NotANetwork::Length(least, most))?
            }
        };
        let network = Self::around(address, length - if is_mapped { MAPPED } else { 0 });
        if network.address == address { Ok(network) } else { Err(NotANetwork::HostBits(network)) }
    }
}

/// The lines of a list with their numbers, from 1, without comments and the blanks around them; lines without anything else
/// are left out. A line that is not UTF-8 is an error with its bytes.
///
/// `#` and `;` at the beginning of a word begin a comment. A byte-order mark is ignored.
pub fn list_lines(list: &[u8]) -> impl Iterator<Item = (usize, Result<&str, &[u8]>)> {
    let list = list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list);
    let lines = (1..).zip(list.split(|byte| *byte == b'\n'));
    lines.filter_map(|(number, line)| match std::str::from_utf8(line) {
        Err(_) => Some((number, Err(line))),
        Ok(text) => {
            let text = without_comment(text).trim();
            (!text.is_empty()).then_some((number, Ok(text)))
        }
    })
}

fn without_comment(line: &str) -> &str {
    let mut before = b' ';
    for (at, byte) in line.bytes().enumerate() {
        if b"#;".contains(&byte) && before.is_ascii_whitespace() {
            return &line[..at];
        }
        before = byte;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_a_length() {
        let network = |text: &str| text.parse::<Network>();
        assert!(network("192.0.2.0/24").is_ok() && network("2001:db8::/32").is_ok());
        assert!(network("0.0.0.0/0").is_ok() && network("::/0").is_ok());
        assert_eq!(network("192.0.2.1"), network("192.0.2.1/32"));
        assert_eq!(network("::1"), network("::1/128"));
        let around = network("192.0.2.0/24").unwrap();
        assert_eq!(network("192.0.2.1/24"), Err(NotANetwork::HostBits(around)));
        assert_eq!(network("192.0.2.0/33"), Err(NotANetwork::Length(0, 32)));
        assert_eq!(network("2001:db8::/x"), Err(NotANetwork::Length(0, 128)));
        assert_eq!(network("example.org"), Err(NotANetwork::Address));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let network = |text: &str| text.parse::<Network>();
        for (mapped, plain) in [
            ("::ffff:192.0.2.10", "192.0.2.10"),
            ("::FFFF:c000:20a", "192.0.2.10"),
            ("::ffff:192.0.2.10/128", "192.0.2.10/32"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:128.0.0.0/97", "128.0.0.0/1"),
        ] {
            assert_eq!(network(mapped), network(plain), "{mapped}");
            assert!(network(mapped).is_ok());
        }
        assert_eq!(parse_address("::ffff:192.0.2.10"), parse_address("192.0.2.10"));
        let around = network("192.0.2.0/24").unwrap();
        assert_eq!(network("::ffff:192.0.2.1/120"), Err(NotANetwork::HostBits(around)));
        // The length of the IPv4 network is not that of the mapped one.
        assert_eq!(network("::ffff:192.0.2.0/24"), Err(NotANetwork::Length(97, 128)));
        // All of IPv4 is written as such.
        assert_eq!(network("::ffff:0:0/96"), Err(NotANetwork::Length(97, 128)));
        // IPv4-compatible and translated addresses are IPv6 addresses.
        for other in ["::192.0.2.10", "64:ff9b::192.0.2.10", "::fffe:0:0/95"] {
            assert!(network(other).unwrap().address.is_ipv6(), "{other}");
        }
    }

    #[test]
    fn lines_have_no_comments_and_blanks() {
        let list = b"\xef\xbb\xbfa\r\n\n # comment\n;comment\n b \t label of b # c\nc#d;e  \xc2\xa0\n\xff\nlast ;";
        let found: Vec<_> = list_lines(list).collect();
        let expected: [(usize, Result<&str, &[u8]>); 5] = [
            (1, Ok("a")),
            (5, Ok("b \t label of b")),
            (6, Ok("c#d;e")),
            (7, Err(b"\xff")),
            (8, Ok("last")),
        ];
        assert_eq!(found, expected);
    }
}
