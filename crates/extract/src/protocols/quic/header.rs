//! Versions and long headers (RFC 9000, section 17.2; RFC 9369, section 3.2).
//!
//! ```text
//!  0       1         5       6              n             n + 1
//!  | first | version | len d | destination ID | len s | source ID | Initial: | len t | token | length | number | …
//!                                                                 | 0-RTT, Handshake:        | length | number | …
//!                                                                 | Retry: token and tag, to the end
//!                                                                 | Version Negotiation: versions, to the end
//! ```
//!
//! `length` counts the packet number and all behind it; the next packet of the datagram begins there.

/// The longest connection identifier of these versions.
pub(super) const ID_MAX: usize = 20;
/// The integrity tag of a Retry packet.
const RETRY_TAG: usize = 16;
/// The fixed bit of the first byte.
const FIXED: u8 = 0x40;

/// How a version differs from version 1, other than by its salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Version 1, or one that does not differ.
    Ietf,
    /// Version 2: other packet types and labels.
    Two,
    /// Google's frames, with TLS.
    Google,
    /// Google's frames, with Google's handshake.
    GoogleChlo,
}

/// A version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// The salt of its Initial secrets; `None`: its packets are not read.
    pub(super) salt: Option<&'static [u8; 20]>,
    pub(super) family: Family,
}

/// Drafts 22 (RFC 9001 and its drafts, section 5.2).
const SALT_22: &[u8; 20] =
    b"\x7f\xbc\xdb\x0e\x7c\x66\xbb\xe9\x19\x3a\x96\xcd\x21\x51\x9e\xbd\x7a\x02\x64\x4a";
/// Drafts 23 to 28.
const SALT_23: &[u8; 20] =
    b"\xc3\xee\xf7\x12\xc7\x2e\xbb\x5a\x11\xa7\xd2\x43\x2b\xb4\x63\x65\xbe\xf9\xf5\x02";
/// Drafts 29 to 32.
const SALT_29: &[u8; 20] =
    b"\xaf\xbf\xec\x28\x99\x93\xd2\x4c\x9e\x97\x86\xf1\x9c\x61\x11\xe0\x43\x90\xa8\x99";
/// Drafts 33 and 34, and version 1.
const SALT_1: &[u8; 20] =
    b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
/// Version 2 (RFC 9369, section 3.3.1).
const SALT_2: &[u8; 20] =
    b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";
const SALT_Q050: &[u8; 20] =
    b"\x50\x45\x74\xef\xd0\x66\xfe\x2f\x9d\x94\x5c\xfc\xdb\xd3\xa7\xf0\xd3\xb5\x6b\x45";
const SALT_T050: &[u8; 20] =
    b"\x7f\xf5\x79\xe5\xac\xd0\x72\x91\x55\x80\x30\x4c\x43\xa2\x36\x7c\x60\x48\x83\x10";
const SALT_T051: &[u8; 20] =
    b"\x7a\x4e\xde\xf4\xe7\xcc\xee\x5f\xa4\x50\x6c\x19\x12\x4f\xc8\xcc\xda\x6e\x03\x3d";

const fn ietf(number: u32, name: &'static str, salt: &'static [u8; 20]) -> Version {
    Version { number, name, salt: Some(salt), family: Family::Ietf }
}

const fn unread(number: u32, name: &'static str) -> Version {
    Version { number, name, salt: None, family: Family::Google }
}

/// The versions that are recognised, frequent ones first.
static VERSIONS: [Version; 46] = [
    ietf(1, "1", SALT_1),
    Version { number: 0x6b33_43cf, name: "2", salt: Some(SALT_2), family: Family::Two },
    ietf(0xface_b002, "mvfst-draft-27", SALT_23),
    ietf(0xff00_001d, "draft-29", SALT_29),
    ietf(0xface_b001, "mvfst-draft-22", SALT_22),
    ietf(0xface_b00e, "mvfst-experimental", SALT_23),
    ietf(0xff00_0016, "draft-22", SALT_22),
    ietf(0xff00_0017, "draft-23", SALT_23),
    ietf(0xff00_0018, "draft-24", SALT_23),
    ietf(0xff00_0019, "draft-25", SALT_23),
    ietf(0xff00_001a, "draft-26", SALT_23),
    ietf(0xff00_001b, "draft-27", SALT_23),
    ietf(0xff00_001c, "draft-28", SALT_23),
    ietf(0xff00_001e, "draft-30", SALT_29),
    ietf(0xff00_001f, "draft-31", SALT_29),
    ietf(0xff00_0020, "draft-32", SALT_29),
    ietf(0xff00_0021, "draft-33", SALT_1),
    ietf(0xff00_0022, "draft-34", SALT_1),
    Version {
        number: 0x5130_3530,
        name: "Q050",
        salt: Some(SALT_Q050),
        family: Family::GoogleChlo,
    },
    Version { number: 0x5430_3530, name: "T050", salt: Some(SALT_T050), family: Family::Google },
    Version { number: 0x5430_3531, name: "T051", salt: Some(SALT_T051), family: Family::Google },
    // These versions have no salt; some have another long header, or none.
    unread(0x5130_3434, "Q044"),
    unread(0x5130_3436, "Q046"),
    unread(0x5130_3437, "Q047"),
    unread(0x5130_3438, "Q048"),
    unread(0x5130_3439, "Q049"),
    unread(0x5130_3234, "Q024"),
    unread(0x5130_3235, "Q025"),
    unread(0x5130_3236, "Q026"),
    unread(0x5130_3237, "Q027"),
    unread(0x5130_3238, "Q028"),
    unread(0x5130_3239, "Q029"),
    unread(0x5130_3330, "Q030"),
    unread(0x5130_3331, "Q031"),
    unread(0x5130_3332, "Q032"),
    unread(0x5130_3333, "Q033"),
    unread(0x5130_3334, "Q034"),
    unread(0x5130_3335, "Q035"),
    unread(0x5130_3336, "Q036"),
    unread(0x5130_3337, "Q037"),
    unread(0x5130_3338, "Q038"),
    unread(0x5130_3339, "Q039"),
    unread(0x5130_3430, "Q040"),
    unread(0x5130_3431, "Q041"),
    unread(0x5130_3432, "Q042"),
    unread(0x5130_3433, "Q043"),
];

impl Version {
    /// The version with this number, if it is recognised.
    pub(super) fn of(number: u32) -> Option<&'static Self> {
        VERSIONS.iter().find(|version| version.number == number)
    }
}

/// The types of long header packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

/// The long header of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) version: &'static Version,
    pub(super) kind: Type,
    pub(super) destination: &'a [u8],
    /// Whether an Initial packet has a token.
    pub(super) token: bool,
    /// The position of the packet number.
    pub(super) number_at: usize,
    /// The position after the packet, which may be beyond the bytes at hand.
    pub(super) end: usize,
}

/// A position in bytes; `None` if they end early.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let part = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(part)
    }

    /// A connection identifier behind its length.
    fn id(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(*self.take(1)?.first()?);
        if len > ID_MAX { None } else { self.take(len) }
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, len) = varint(self.bytes.get(self.at..)?)?;
        self.at += len;
        Some(value)
    }
}

/// A number of variable length (RFC 9000, section 16), and its length.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let len = 1 << (bytes.first()? >> 6);
    let value = bytes.get(..len)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some((value & (!0 >> (66 - 8 * len)), len))
}

/// What a datagram begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// No long header of a known version.
    Other,
    /// A Version Negotiation packet (RFC 8999, section 6).
    Negotiation,
    /// A packet of a version that is not read.
    Unread(&'static Version),
    /// The header contradicts itself, or ends early.
    Broken(&'static Version),
    Packet(Header<'a>),
}

/// Whether the fixed bit of a packet is set, as it is unless both sides agreed otherwise (RFC 9287).
pub(super) fn has_fixed_bit(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & FIXED != 0)
}

/// Reads the packet that begins here.
pub(super) fn start(bytes: &[u8]) -> Start<'_> {
    let Some(&[first, v0, v1, v2, v3]) = bytes.first_chunk() else { return Start::Other };
    if first < 0x80 {
        return Start::Other;
    }
    match u32::from_be_bytes([v0, v1, v2, v3]) {
        0 if is_negotiation(bytes) => Start::Negotiation,
        number => match Version::of(number) {
            None => Start::Other,
            Some(version) if version.salt.is_none() => Start::Unread(version),
            Some(version) => {
                header(bytes, first, version).map_or(Start::Broken(version), Start::Packet)
            }
        },
    }
}

fn header<'a>(bytes: &'a [u8], first: u8, version: &'static Version) -> Option<Header<'a>> {
    let mut reader = Reader { bytes, at: 5 };
    let destination = reader.id()?;
    reader.id()?;
    let types = [Type::Initial, Type::ZeroRtt, Type::Handshake, Type::Retry];
    let number = usize::from(first >> 4 & 3);
    // RFC 9369, section 3.2: Initial 1, 0-RTT 2, Handshake 3, Retry 0.
    let kind = types[if version.family == Family::Two { (number + 3) % 4 } else { number }];
    let mut token = false;
    if kind == Type::Initial {
        let len = usize::try_from(reader.varint()?).ok()?;
        reader.take(len)?;
        token = len > 0;
    }
    if kind == Type::Retry {
        let end = bytes.len();
        let number_at = reader.at;
        return (end >= number_at + RETRY_TAG).then_some(Header {
            version,
            kind,
            destination,
            token,
            number_at,
            end,
        });
    }
    let len = usize::try_from(reader.varint()?).ok()?;
    let end = reader.at.checked_add(len)?;
    Some(Header { version, kind, destination, token, number_at: reader.at, end })
}

/// Whether a packet of version 0 lists versions, one of them a known one. Its first byte is random.
fn is_negotiation(bytes: &[u8]) -> bool {
    let mut reader = Reader { bytes, at: 5 };
    if reader.id().is_none() || reader.id().is_none() {
        return false;
    }
    let versions = &bytes[reader.at..];
    let known = |bytes: &[u8; 4]| Version::of(u32::from_be_bytes(*bytes)).is_some();
    versions.len().is_multiple_of(4) && versions.as_chunks().0.iter().any(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length_are_those_of_the_standard() {
        // RFC 9000, appendix A.1.
        let long = b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c";
        assert_eq!(varint(long), Some((151_288_809_941_952_652, 8)));
        assert_eq!(varint(b"\x9d\x7f\x3e\x7d"), Some((494_878_333, 4)));
        assert_eq!(varint(b"\x7b\xbd"), Some((15_293, 2)));
        assert_eq!((varint(b"\x25"), varint(b"\x40\x25")), (Some((37, 1)), Some((37, 2))));
        assert_eq!((varint(b""), varint(b"\x40"), varint(&long[..7])), (None, None, None));
    }

    #[test]
    fn headers_are_read_by_version() {
        let one = b"\xc1\0\0\0\x01\x02ab\x01c\x03tok\x05xxxxx";
        let Start::Packet(header) = start(one) else { panic!("{:?}", start(one)) };
        assert_eq!((header.version.name, header.kind), ("1", Type::Initial));
        assert_eq!((header.destination, header.token), (&b"ab"[..], true));
        assert_eq!((header.number_at, header.end), (15, 20));
        let two = b"\xe1\x6b\x33\x43\xcf\0\0\x40\x05";
        let Start::Packet(header) = start(two) else { panic!("{:?}", start(two)) };
        assert_eq!((header.version.name, header.kind), ("2", Type::ZeroRtt));
        assert_eq!((header.number_at, header.end), (9, 14));
        let retry = b"\xf0\0\0\0\x01\0\x01ctoken0123456789abcdef";
        assert!(matches!(start(retry), Start::Packet(Header { kind: Type::Retry, .. })));
    }

    #[test]
    fn other_bytes_are_not_taken_for_headers() {
        assert_eq!(start(b"\x41\0\0\0\x01\0\0\0\x05xxxxx"), Start::Other);
        assert_eq!(start(b"\xc1\0\0\0\x02\0\0\0\x05xxxxx"), Start::Other);
        assert!(matches!(start(b"\xc1\0\0\0\x01\x15"), Start::Broken(_)));
        assert!(matches!(start(b"\xc1\0\0\0\x01\x02a"), Start::Broken(_)));
        assert!(matches!(start(b"\xf1\0\0\0\x01\0\0short"), Start::Broken(_)));
        assert!(matches!(start(b"\xc3Q046\x50abcdefgh"), Start::Unread(_)));
        // Version Negotiation lists whole versions, and one that is known.
        assert_eq!(start(b"\x80\0\0\0\0\x01a\0\0\0\0\x01"), Start::Negotiation);
        assert_eq!(start(b"\x80\0\0\0\0\x01a\0\0\0\0\x07"), Start::Other);
        assert_eq!(start(b"\x80\0\0\0\0\x01a\0\0\0\0\x01x"), Start::Other);
        assert_eq!(start(b"\x80\0\0\0\0\x01a\0"), Start::Other);
    }

    #[test]
    fn versions_are_distinct() {
        for version in &VERSIONS {
            assert!(std::ptr::eq(Version::of(version.number).unwrap(), version));
        }
    }
}
