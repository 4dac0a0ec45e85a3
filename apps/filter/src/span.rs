//! Ranges of addresses as text: `192.0.2.0/24`, `192.0.2.7`, `192.0.2.1-192.0.2.9`, the same for
//! IPv6, and `any`. IPv4-mapped addresses are IPv4.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ringtap_base::{Network, NotANetwork, parse_address};

/// An address of one family as an integer.
pub(super) trait Number: Copy + Ord + fmt::Debug {
    const ZERO: Self;
    const MAX: Self;

    /// The next address, if there is one.
    fn next(self) -> Option<Self>;
}

impl Number for u32 {
    const ZERO: Self = 0;
    const MAX: Self = Self::MAX;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Number for u128 {
    const ZERO: Self = 0;
    const MAX: Self = Self::MAX;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

/// A range of addresses in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// All addresses of both families.
    Any,
    /// From the first to the last, inclusive; first ≤ last.
    V4(Ipv4Addr, Ipv4Addr),
    /// From the first to the last, inclusive; first ≤ last.
    V6(Ipv6Addr, Ipv6Addr),
}

/// Why a text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Neither an address nor `any`.
    #[error(
        "invalid address \"{0}\": use 192.0.2.7, 192.0.2.0/24, 192.0.2.1-192.0.2.9, IPv6, or any"
    )]
    Address(String),
    /// Not a number, or not from the first to the second.
    #[error("invalid prefix length \"{0}\": use {1} to {2}")]
    Length(String, u8, u8),
    /// The address has bits after its prefix length.
    #[error("invalid network \"{0}\": bits are set after the prefix length: use {1}")]
    Bits(String, Span),
    /// The last address is below the first.
    #[error("invalid range \"{0}\": use FIRST-LAST, the lower address first")]
    Backwards(String),
    /// An IPv4 and an IPv6 address.
    #[error("invalid range \"{0}\": use two IPv4 or two IPv6 addresses")]
    Families(String),
}

impl Span {
    /// The IPv4 addresses, as numbers.
    pub(super) fn v4(&self) -> Option<(u32, u32)> {
        match self {
            Self::Any => Some((u32::ZERO, <u32 as Number>::MAX)),
            Self::V4(first, last) => Some((first.to_bits(), last.to_bits())),
            Self::V6(..) => None,
        }
    }

    /// The IPv6 addresses, as numbers.
    pub(super) fn v6(&self) -> Option<(u128, u128)> {
        match self {
            Self::Any => Some((u128::ZERO, <u128 as Number>::MAX)),
            Self::V4(..) => None,
            Self::V6(first, last) => Some((first.to_bits(), last.to_bits())),
        }
    }

    /// Whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Any, _) => true,
            (Self::V4(first, last), IpAddr::V4(address)) => (*first..=*last).contains(&address),
            (Self::V6(first, last), IpAddr::V6(address)) => (*first..=*last).contains(&address),
            (Self::V4(..), IpAddr::V6(_)) | (Self::V6(..), IpAddr::V4(_)) => false,
        }
    }

    fn range(first: IpAddr, last: IpAddr, text: &str) -> Result<Self, SpanError> {
        match (first, last) {
            _ if first.is_ipv4() != last.is_ipv4() => Err(SpanError::Families(text.to_owned())),
            _ if last < first => Err(SpanError::Backwards(text.to_owned())),
            (IpAddr::V4(first), IpAddr::V4(last)) => Ok(Self::V4(first, last)),
            (IpAddr::V6(first), IpAddr::V6(last)) => Ok(Self::V6(first, last)),
            _ => Err(SpanError::Families(text.to_owned())),
        }
    }

    /// The addresses of a network.
    fn network(Network { address, length }: Network) -> Self {
        match address {
            IpAddr::V4(first) => {
                let hosts = <u32 as Number>::MAX.checked_shr(length.into()).unwrap_or(0);
                Self::V4(first, (first.to_bits() | hosts).into())
            }
            IpAddr::V6(first) => {
                let hosts = <u128 as Number>::MAX.checked_shr(length.into()).unwrap_or(0);
                Self::V6(first, (first.to_bits() | hosts).into())
            }
        }
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let address =
            |part: &str| parse_address(part).ok_or_else(|| SpanError::Address(text.to_owned()));
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some((first, last)) = text.split_once('-') {
            return Self::range(address(first)?, address(last)?, text);
        }
        text.parse().map(Self::network).map_err(|wrong| match wrong {
            NotANetwork::Address => SpanError::Address(text.to_owned()),
            NotANetwork::Length(least, most) => {
                let length = text.split_once('/').map_or("", |(_, length)| length);
                SpanError::Length(length.to_owned(), least, most)
            }
            NotANetwork::HostBits(network) => {
                SpanError::Bits(text.to_owned(), Self::network(network))
            }
        })
    }
}

impl fmt::Display for Span {
    /// The shortest form that is read as the same range.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last, prefix) = match self {
            Self::Any => return f.write_str("any"),
            Self::V4(first, last) => {
                let differ = first.to_bits() ^ last.to_bits();
                let length = differ.leading_zeros();
                let whole = differ & first.to_bits() == 0 && (differ & differ.wrapping_add(1)) == 0;
                (IpAddr::V4(*first), IpAddr::V4(*last), whole.then_some(length))
            }
            Self::V6(first, last) => {
                let differ = first.to_bits() ^ last.to_bits();
                let length = differ.leading_zeros();
                let whole = differ & first.to_bits() == 0 && (differ & differ.wrapping_add(1)) == 0;
                (IpAddr::V6(*first), IpAddr::V6(*last), whole.then_some(length))
            }
        };
        match prefix {
            _ if first == last => write!(f, "{first}"),
            Some(length) => write!(f, "{first}/{length}"),
            None => write!(f, "{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_is_read_and_printed_in_its_shortest_form() {
        for (text, printed) in [
            ("any", "any"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.0-192.0.2.255", "192.0.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.1-192.0.2.9", "192.0.2.1-192.0.2.9"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("2001:db8::1-2001:db8::2", "2001:db8::1-2001:db8::2"),
            ("::ffff:192.0.2.10", "192.0.2.10"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:128.0.0.0/97", "128.0.0.0/1"),
            ("::ffff:192.0.2.1-::ffff:192.0.2.9", "192.0.2.1-192.0.2.9"),
            ("::ffff:192.0.2.1-192.0.2.9", "192.0.2.1-192.0.2.9"),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn invalid_ranges_are_errors() {
        for (text, why) in [
            (
                "",
                "invalid address \"\": use 192.0.2.7, 192.0.2.0/24, 192.0.2.1-192.0.2.9, IPv6, or any",
            ),
            ("192.0.2.0/33", "invalid prefix length \"33\": use 0 to 32"),
            ("2001:db8::/x", "invalid prefix length \"x\": use 0 to 128"),
            ("::ffff:192.0.2.0/24", "invalid prefix length \"24\": use 97 to 128"),
            (
                "192.0.2.7/24",
                "invalid network \"192.0.2.7/24\": bits are set after the prefix length: use 192.0.2.0/24",
            ),
            (
                "192.0.2.7-192.0.2.6",
                "invalid range \"192.0.2.7-192.0.2.6\": use FIRST-LAST, the lower address first",
            ),
            (
                "192.0.2.7-::1",
                "invalid range \"192.0.2.7-::1\": use two IPv4 or two IPv6 addresses",
            ),
        ] {
            assert_eq!(text.parse::<Span>().unwrap_err().to_string(), why);
        }
    }

    proptest! {
        #[test]
        fn printed_ranges_are_read_back(a: u32, b: u32, c: u128, bits in 0..=128u32) {
            let v4 = Span::V4(a.min(b).into(), a.max(b).into());
            let hosts = u128::MAX.checked_shr(bits).unwrap_or(0);
            let v6 = Span::V6((c & !hosts).into(), (c | hosts).into());
            for span in [v4, v6] {
                prop_assert_eq!(span.to_string().parse(), Ok(span));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-f:./-]{0,24}|.{0,12}") {
            let _ = text.parse::<Span>();
        }
    }
}
