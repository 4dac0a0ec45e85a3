//! TLV elements (type, length, value), the encoding of all NDN packets.
//!
//! ```text
//!  | TYPE 1, 3 or 5 | LENGTH 1, 3, 5 or 9 | VALUE |     first byte < 253: the number itself;
//!                                                      253: 2 bytes follow, 254: 4, 255: 8
//! ```
//!
//! Invariant: a type or length that is not in its shortest form is an error, so equal elements
//! have equal bytes.

use crate::packets::Error;

/// Types of elements.
pub mod kind {
    #![allow(missing_docs, reason = "the names are the specification's")]
    pub const INTEREST: u32 = 0x05;
    pub const DATA: u32 = 0x06;
    pub(crate) const DATA_BYTE: u8 = 0x06;
    pub const NAME: u32 = 0x07;
    pub const NONCE: u32 = 0x0a;
    pub const INTEREST_LIFETIME: u32 = 0x0c;
    pub const MUST_BE_FRESH: u32 = 0x12;
    pub const META_INFO: u32 = 0x14;
    pub const CONTENT: u32 = 0x15;
    pub const SIGNATURE_INFO: u32 = 0x16;
    pub const SIGNATURE_VALUE: u32 = 0x17;
    pub const CONTENT_TYPE: u32 = 0x18;
    pub const FRESHNESS_PERIOD: u32 = 0x19;
    pub const FINAL_BLOCK_ID: u32 = 0x1a;
    pub const SIGNATURE_TYPE: u32 = 0x1b;
    pub const KEY_LOCATOR: u32 = 0x1c;
    pub const FORWARDING_HINT: u32 = 0x1e;
    pub const CAN_BE_PREFIX: u32 = 0x21;
    pub const HOP_LIMIT: u32 = 0x22;
    pub const APPLICATION_PARAMETERS: u32 = 0x24;
    pub const INTEREST_SIGNATURE_INFO: u32 = 0x2c;
    pub const INTEREST_SIGNATURE_VALUE: u32 = 0x2e;
    pub const SIGNATURE_NONCE: u32 = 0x26;
    pub const SIGNATURE_TIME: u32 = 0x28;
    pub const SIGNATURE_SEQUENCE: u32 = 0x2a;
    pub const VALIDITY_PERIOD: u32 = 0xfd;
    pub const NOT_BEFORE: u32 = 0xfe;
    pub const NOT_AFTER: u32 = 0xff;
    pub const CONTROL_RESPONSE: u32 = 0x65;
    pub const STATUS_CODE: u32 = 0x66;
    pub const STATUS_TEXT: u32 = 0x67;
    pub const CONTROL_PARAMETERS: u32 = 0x68;
    pub const LP_PACKET: u32 = 0x64;
    pub const FRAGMENT: u32 = 0x50;
    pub const SEQUENCE: u32 = 0x51;
    pub const FRAG_INDEX: u32 = 0x52;
    pub const FRAG_COUNT: u32 = 0x53;
    pub const PIT_TOKEN: u32 = 0x62;
    pub const NACK: u32 = 0x0320;
    pub const NACK_REASON: u32 = 0x0321;
    pub const INCOMING_FACE: u32 = 0x032c;
    pub const NEXT_HOP_FACE: u32 = 0x0330;
    pub const CACHE_POLICY: u32 = 0x0334;
    pub const CACHE_POLICY_TYPE: u32 = 0x0335;
    pub const CONGESTION_MARK: u32 = 0x0340;
    pub const ACK: u32 = 0x0344;
    pub const TX_SEQUENCE: u32 = 0x0348;
}

/// A parsed element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The type, 1 or more.
    pub kind: u32,
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Element<'a> {
    /// Parses the first element of `bytes`; also returns the bytes after it.
    #[inline]
    pub fn first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        // Fast path: nearly all elements have a type and a length of one byte.
        if let [kind @ 1..253, len @ 0..253, rest @ ..] = bytes
            && let Some((value, rest)) = rest.split_at_checked((*len).into())
        {
            return Ok((Self { kind: (*kind).into(), value }, rest));
        }
        Self::first_general(bytes)
    }

    /// [`Element::first`] for types and lengths of any size.
    #[cold]
    fn first_general(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let (kind, rest) = number(bytes)?;
        let kind = u32::try_from(kind).ok().filter(|&kind| kind > 0).ok_or(Error::BadType)?;
        let (len, rest) = number(rest)?;
        let len = usize::try_from(len).map_err(|_| Error::Truncated)?;
        let (value, rest) = rest.split_at_checked(len).ok_or(Error::Truncated)?;
        Ok((Self { kind, value }, rest))
    }

    /// Parses one element; `bytes` must hold exactly this element.
    pub fn only(bytes: &'a [u8]) -> Result<Self, Error> {
        match Self::first(bytes)? {
            (element, []) => Ok(element),
            _ => Err(Error::Trailing),
        }
    }

    /// Whether the element is critical: a parser that does not expect it here must drop the packet.
    /// These are types up to 31 and odd types.
    pub fn is_critical(&self) -> bool {
        self.kind <= 31 || self.kind & 1 == 1
    }

    /// The value as a big-endian number of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn number(&self) -> Result<u64, Error> {
        match *self.value {
            [a] => Ok(a.into()),
            [a, b] => Ok(u16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => Ok(u32::from_be_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => Err(Error::BadLength),
        }
    }

    /// The value as exactly `N` bytes.
    #[inline]
    pub fn fixed<const N: usize>(&self) -> Result<[u8; N], Error> {
        self.value.try_into().map_err(|_| Error::BadLength)
    }
}

/// An iterator over consecutive elements; it ends after the first error.
#[derive(Clone, Debug)]
pub struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// Iterates over the elements in `bytes`.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = Element::first(self.0);
        self.0 = read.map_or(&[], |(_, rest)| rest);
        Some(read.map(|(element, _)| element))
    }
}

/// Position of the slice `inner` in `outer`; `inner` must be a part of `outer`.
#[inline]
pub(crate) fn offset(outer: &[u8], inner: &[u8]) -> usize {
    inner.as_ptr().addr().saturating_sub(outer.as_ptr().addr())
}

/// Parses a type or length; also returns the bytes after it.
#[inline]
fn number(bytes: &[u8]) -> Result<(u64, &[u8]), Error> {
    let (&first, rest) = bytes.split_first().ok_or(Error::Truncated)?;
    if first < 253 {
        return Ok((first.into(), rest));
    }
    let (value, rest, least) = match first {
        253 => {
            let (value, rest) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (u16::from_be_bytes(*value).into(), rest, 253)
        }
        254 => {
            let (value, rest) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (u32::from_be_bytes(*value).into(), rest, 1 << 16)
        }
        _ => {
            let (value, rest) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            (u64::from_be_bytes(*value), rest, 1 << 32)
        }
    };
    if value < least { Err(Error::NotShortest) } else { Ok((value, rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shortest_form_of_a_number_is_accepted() {
        for (bytes, expected) in [
            (&[252][..], Ok(252)),
            (&[253, 0, 253], Ok(253)),
            (&[253, 0, 252], Err(Error::NotShortest)),
            (&[254, 0, 1, 0, 0], Ok(65_536)),
            (&[254, 0, 0, 255, 255], Err(Error::NotShortest)),
            (&[255, 0, 0, 0, 1, 0, 0, 0, 0], Ok(1 << 32)),
            (&[255, 0, 0, 0, 0, 255, 255, 255, 255], Err(Error::NotShortest)),
            (&[253, 1], Err(Error::Truncated)),
            (&[], Err(Error::Truncated)),
        ] {
            assert_eq!(number(bytes).map(|(value, _)| value), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_length_beyond_the_bytes_is_an_error_and_ends_the_iteration() {
        let mut elements = Elements::of(&[8, 1, 65, 8, 200, 66]);
        assert_eq!(elements.next(), Some(Ok(Element { kind: 8, value: b"A" })));
        assert_eq!(elements.next(), Some(Err(Error::Truncated)));
        assert_eq!(elements.next(), None);
        assert_eq!(Element::first(&[0, 0]), Err(Error::BadType));
        assert_eq!(Element::first(&[255, 0, 0, 0, 1, 0, 0, 0, 0, 0]), Err(Error::BadType));
        assert_eq!(
            Element::first(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
            Err(Error::Truncated)
        );
    }

    #[test]
    fn numbers_in_values_have_four_lengths() {
        let number = |value| Element { kind: 12, value }.number();
        assert_eq!(number(&[1, 0]), Ok(256));
        assert_eq!(number(&[0, 0, 0, 7]), Ok(7));
        assert_eq!(number(&[255; 8]), Ok(u64::MAX));
        for bad in [&[][..], &[0; 3], &[0; 5], &[0; 9]] {
            assert_eq!(number(bad), Err(Error::BadLength));
        }
    }
}
