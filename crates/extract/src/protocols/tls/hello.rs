//! Views of the ClientHello and the ServerHello (RFC 8446, section 4.1; DTLS: RFC 6347, section 4.2.1).
//!
//! ```text
//! client | version | random | id   | DTLS: cookie | cipher suites | compression | extensions |
//! server | version | random | id   | cipher suite | compression | extensions |
//!        | 2       | 32     | 1+n  | 1+n or 2     | 2+n           | 1+n or 1    | 2+n, or nothing
//! extension: | type 2 | length 2 | value |
//! ```
//!
//! The lengths of all fields and extensions are checked once. An extension whose value contradicts itself has no
//! values, and still counts for the fingerprints.

use std::borrow::Cow;

use crate::Unread;

/// The protocol that carries a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TLS over TCP.
    Tls,
    /// QUIC, which carries handshake messages of TLS 1.3 without records.
    Quic,
    /// DTLS over UDP.
    Dtls,
}

/// Types of extensions (IANA, TLS ExtensionType Values registry).
pub(super) mod extension {
    pub(in super::super) const SERVER_NAME: u16 = 0;
    pub(in super::super) const SUPPORTED_GROUPS: u16 = 10;
    pub(in super::super) const POINT_FORMATS: u16 = 11;
    pub(in super::super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(in super::super) const ALPN: u16 = 16;
    pub(in super::super) const SESSION_TICKET: u16 = 35;
    pub(in super::super) const PRE_SHARED_KEY: u16 = 41;
    pub(in super::super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(in super::super) const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
}

const RANDOM: usize = 32;
/// The random value of a server hello that asks for a second client hello (RFC 8446, section 4.1.3).
pub(crate) const RETRY_REQUEST: &[u8; RANDOM] =
    b"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\
    \xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
const ID_MAX: usize = 32;
/// ServerHellos of the drafts 18 to 21 of TLS 1.3 have neither a session id nor a compression method.
const SHORT_DRAFTS: std::ops::RangeInclusive<u16> = 0x7f12..=0x7f15;

/// A ClientHello.
#[derive(Clone, Copy)]
pub(super) struct ClientHello<'a> {
    /// The legacy version.
    pub(super) version: u16,
    /// The identifier of the session that the client resumes, or any bytes; at most 32.
    pub(super) session: &'a [u8],
    ciphers: &'a [u8],
    pub(super) extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    /// The hello with this body, without the handshake header.
    pub(super) fn new(body: &'a [u8], transport: Transport) -> Result<Self, Unread> {
        let mut fields = Fields(body);
        let mut read = || {
            let version = fields.number()?;
            fields.take(RANDOM)?;
            let session = fields.short_vector().filter(|id| id.len() <= ID_MAX)?;
            if transport == Transport::Dtls {
                fields.short_vector()?;
            }
            let ciphers = fields.vector().filter(|list| list.len().is_multiple_of(2))?;
            fields.short_vector()?;
            Some(Self { version, session, ciphers, extensions: Extensions::read(fields)? })
        };
        read().ok_or(Unread::Malformed)
    }

    /// The cipher suites, without GREASE.
    pub(super) fn ciphers(&self) -> impl Iterator<Item = u16> + use<'a> {
        numbers(self.ciphers)
    }

    /// The server names.
    pub(super) fn server_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        const HOST_NAME: u8 = 0;
        let mut list = self.extensions.list(extension::SERVER_NAME);
        std::iter::from_fn(move || {
            let kind = list.byte()?;
            Some((kind, list.vector()?))
        })
        .filter(|(kind, name)| *kind == HOST_NAME && !name.is_empty())
        .map(|(_, name)| name)
    }

    /// The versions in the extension supported_versions, without GREASE; none if there is no such extension.
    pub(super) fn supported_versions(&self) -> impl Iterator<Item = u16> + use<'a> {
        numbers(self.extensions.short_list(extension::SUPPORTED_VERSIONS))
    }

    /// The newest version that the client offers.
    pub(super) fn newest_version(&self) -> u16 {
        self.supported_versions().max_by_key(|&version| age_rank(version)).unwrap_or(self.version)
    }

    /// Whether the client sends a ticket of an earlier session (RFC 5077, section 3.2).
    pub(super) fn has_ticket(&self) -> bool {
        self.extensions.value(extension::SESSION_TICKET).is_some_and(|ticket| !ticket.is_empty())
    }

    /// The number of the configuration with which the client encrypts another hello (RFC 9849, section 5).
    pub(super) fn encrypted_hello(&self) -> Option<u8> {
        const OUTER: u8 = 0;
        let mut fields = Fields(self.extensions.value(extension::ENCRYPTED_CLIENT_HELLO)?);
        fields.byte().filter(|&kind| kind == OUTER)?;
        // The cipher suite: key derivation and encryption.
        fields.take(4)?;
        let id = fields.byte()?;
        fields.vector()?;
        fields.vector().filter(|_| fields.0.is_empty())?;
        Some(id)
    }

    /// The groups for the key exchange, without GREASE.
    pub(super) fn groups(&self) -> impl Iterator<Item = u16> + use<'a> {
        numbers(self.extensions.list(extension::SUPPORTED_GROUPS).0)
    }

    /// The formats of points of elliptic curves.
    pub(super) fn point_formats(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.extensions.short_list(extension::POINT_FORMATS).iter().map(|&format| u16::from(format))
    }

    /// The signature algorithms, without GREASE.
    pub(super) fn signature_algorithms(&self) -> impl Iterator<Item = u16> + use<'a> {
        numbers(self.extensions.list(extension::SIGNATURE_ALGORITHMS).0)
    }
}

/// A ServerHello, also one that is a HelloRetryRequest.
#[derive(Clone, Copy)]
pub(super) struct ServerHello<'a> {
    /// The legacy version.
    pub(super) version: u16,
    /// Whether it asks for a second client hello.
    pub(super) is_retry: bool,
    /// The identifier of the session; at most 32 bytes.
    pub(super) session: &'a [u8],
    /// The selected cipher suite.
    pub(super) cipher: u16,
    pub(super) extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    /// The hello with this body, without the handshake header.
    pub(super) fn new(body: &'a [u8]) -> Result<Self, Unread> {
        let mut fields = Fields(body);
        let mut read = || {
            let version = fields.number()?;
            let short = SHORT_DRAFTS.contains(&version);
            let is_retry = fields.take(RANDOM)? == RETRY_REQUEST;
            let session = match short {
                true => &[],
                false => fields.short_vector().filter(|id| id.len() <= ID_MAX)?,
            };
            let cipher = fields.number()?;
            if !short {
                fields.byte()?;
            }
            Some(Self { version, is_retry, session, cipher, extensions: Extensions::read(fields)? })
        };
        read().ok_or(Unread::Malformed)
    }

    /// The version that the server selected.
    pub(super) fn selected_version(&self) -> u16 {
        let value = self.extensions.value(extension::SUPPORTED_VERSIONS);
        value.and_then(|value| Fields(value).number()).unwrap_or(self.version)
    }

    /// Whether what follows is encrypted: TLS 1.3 and its drafts.
    pub(super) fn encrypts(&self) -> bool {
        self.selected_version() >= 0x0304
    }

    /// Whether the server selected a key that both sides have (RFC 8446, section 4.2.11).
    pub(super) fn selects_key(&self) -> bool {
        self.encrypts() && self.extensions.value(extension::PRE_SHARED_KEY).is_some()
    }
}

/// The extensions of a hello.
#[derive(Clone, Copy)]
pub(super) struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// The extensions in the rest of a hello; `None`: the lengths contradict each other.
    fn read(mut fields: Fields<'a>) -> Option<Self> {
        if fields.0.is_empty() {
            return Some(Self(&[]));
        }
        let all = fields.vector().filter(|_| fields.0.is_empty())?;
        let mut rest = Fields(all);
        while !rest.0.is_empty() {
            rest.extension()?;
        }
        Some(Self(all))
    }

    fn all(self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut rest = Fields(self.0);
        std::iter::from_fn(move || rest.extension())
    }

    /// The types of the extensions as sent, without GREASE.
    pub(super) fn types(self) -> impl Iterator<Item = u16> + use<'a> {
        self.all().map(|(kind, _)| kind).filter(|&kind| !is_grease(kind))
    }

    /// The value of the first extension of this type.
    pub(super) fn value(self, kind: u16) -> Option<&'a [u8]> {
        self.all().find(|(own, _)| *own == kind).map(|(_, value)| value)
    }

    /// The list with a length of two bytes that an extension is; empty if it is not exactly such a list.
    fn list(self, kind: u16) -> Fields<'a> {
        let mut fields = Fields(self.value(kind).unwrap_or_default());
        let list = fields.vector().filter(|_| fields.0.is_empty());
        Fields(list.unwrap_or_default())
    }

    /// The list with a length of one byte that an extension is; empty if it is not exactly such a list.
    fn short_list(self, kind: u16) -> &'a [u8] {
        let mut fields = Fields(self.value(kind).unwrap_or_default());
        let list = fields.short_vector().filter(|_| fields.0.is_empty());
        list.unwrap_or_default()
    }

    /// The names in the extension for application protocols (RFC 7301).
    pub(super) fn application_protocols(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut list = self.list(extension::ALPN);
        std::iter::from_fn(move || list.short_vector())
    }
}

/// Reads fields from the front of a slice.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        self.0.split_off(..len)
    }

    fn byte(&mut self) -> Option<u8> {
        self.0.split_off_first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    /// Bytes preceded by their number in one byte.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let len = self.byte()?;
        self.take(usize::from(len))
    }

    /// Bytes preceded by their number in two bytes.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(usize::from(len))
    }

    fn extension(&mut self) -> Option<(u16, &'a [u8])> {
        let kind = self.number()?;
        Some((kind, self.vector()?))
    }
}

/// The numbers in a list, without GREASE.
fn numbers(list: &[u8]) -> impl Iterator<Item = u16> {
    let pairs = list.as_chunks::<2>().0;
    pairs.iter().map(|&pair| u16::from_be_bytes(pair)).filter(|&number| !is_grease(number))
}

/// Whether a value is reserved to keep servers tolerant (RFC 8701): 0x0a0a, 0x1a1a, …, 0xfafa.
fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// A number that is greater for a newer version. Drafts of TLS 1.3 are between TLS 1.2 and TLS 1.3, unknown versions
/// before all others. The numbers of DTLS decrease.
fn age_rank(version: u16) -> u16 {
    match version.to_be_bytes() {
        [0x03, minor] => u16::from(minor) << 8 | 0xff,
        [0x7f, draft] => 0x0400 | u16::from(draft.min(0xfe)),
        [0xfe, minor] => u16::from(0xff - minor) << 8 | 0xff,
        _ => 0,
    }
}

/// Names of versions.
const VERSIONS: [(u16, &str); 9] = [
    (0x0002, "SSL 2.0"),
    (0x0300, "SSL 3.0"),
    (0x0301, "TLS 1.0"),
    (0x0302, "TLS 1.1"),
    (0x0303, "TLS 1.2"),
    (0x0304, "TLS 1.3"),
    (0xfeff, "DTLS 1.0"),
    (0xfefd, "DTLS 1.2"),
    (0xfefc, "DTLS 1.3"),
];

/// The beginning of names of drafts of TLS 1.3, whose number is 0x7f00 and that of the draft.
const DRAFT: &str = "TLS 1.3 draft-";

/// The name of a version.
pub(super) fn version_name(version: u16) -> Cow<'static, str> {
    match (VERSIONS.iter().find(|(own, _)| *own == version), version) {
        (Some((_, name)), _) => (*name).into(),
        (None, 0x7f00..=0x7fff) => format!("{DRAFT}{}", version & 0xff).into(),
        (None, _) => format!("0x{version:04x}").into(),
    }
}

/// The version with a name.
pub(crate) fn version_number(name: &str) -> Option<u16> {
    if let Some(draft) = name.strip_prefix(DRAFT) {
        return draft.parse::<u8>().ok().map(|draft| 0x7f00 | u16::from(draft));
    }
    VERSIONS.iter().find(|(_, own)| *own == name).map(|(version, _)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_of_their_age() {
        let tls = [0xfb1a, 0x0300, 0x0301, 0x0302, 0x0303, 0x7f12, 0x7f1c, 0x0304, 0x0305];
        assert!(tls.is_sorted_by_key(|&version| age_rank(version)));
        assert!([0xfeff, 0xfefd, 0xfefc].is_sorted_by_key(|&version| age_rank(version)));
        let names = [0x0300, 0x0304, 0xfefd, 0x7f1c, 0xfb1a].map(version_name);
        assert_eq!(names, ["SSL 3.0", "TLS 1.3", "DTLS 1.2", "TLS 1.3 draft-28", "0xfb1a"]);
    }

    #[test]
    fn grease_is_sixteen_values() {
        let all: Vec<_> = (0..=u16::MAX).filter(|&value| is_grease(value)).collect();
        assert_eq!(all.len(), 16);
        assert_eq!((all[0], all[15]), (0x0a0a, 0xfafa));
    }
}
