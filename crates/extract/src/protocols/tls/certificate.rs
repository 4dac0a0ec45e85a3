//! The certificates of a server before TLS 1.3 (RFC 5246, section 7.4.2): facts of the first one, which is its own
//! (RFC 5280).
//!
//! ```text
//! | length of the list 3 | length 3 | certificate, DER … | length 3 | certificate … | …
//! ```
//!
//! It is read as it is: signatures are not verified, and serial numbers and times may be any. Chains are only counted.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};
use x509_cert::der::asn1::{Any, AnyRef, ObjectIdentifier, UintRef};
use x509_cert::der::oid::db::DB;
use x509_cert::der::{Decode, Reader, SliceReader, Tag, Tagged};
use x509_cert::name::Name;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use super::fingerprint::hex;
use super::message::length;
use crate::text::Text;
use crate::{Found, Kind, Unread, Values};

/// Most names of the subject that are read.
const NAMES_MAX: usize = 64;
/// Most octets of a serial number that are read; RFC 5280 allows 20.
const SERIAL_MAX: usize = 32;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SUBJECT_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const DSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10040.4.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// The curve whose size is not a number of octets.
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// What follows from the bytes of a certificate.
pub(super) struct Certificate {
    /// The facts before its flaws.
    facts: Values,
    /// What they are followed by; the error is why it could not be read.
    rest: Result<Rest, Unread>,
}

/// What flaws and names follow from.
struct Rest {
    not_before: Duration,
    not_after: Duration,
    is_self_signed: bool,
    common_name: Option<String>,
    names: Names,
}

impl Certificate {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut facts = Values::default();
        let mut digits = [0; 64];
        hex(digest(&SHA256, bytes).as_ref(), &mut digits);
        facts.push(Kind::TlsCertificateSha256, &digits);
        let rest = Rest::read(bytes, &mut facts);
        Self { facts, rest }
    }

    /// Bytes beside itself.
    pub(super) fn memory(&self) -> usize {
        let rest = self.rest.as_ref().ok().map_or(0, |rest| {
            rest.common_name.as_ref().map_or(0, String::capacity) + rest.names.memory()
        });
        self.facts.capacity() + rest
    }

    /// Passes on the facts of a server's certificate: the client asked for a server with this name, and it was sent at a
    /// time.
    pub(super) fn pass(
        &self,
        server_name: Option<&[u8]>,
        ts_ns: u64,
        found: Found<'_>,
    ) -> Result<(), Unread> {
        self.facts.all().for_each(|(kind, value)| found(kind, value));
        let rest = self.rest.as_ref().map_err(|why| *why)?;
        let now = Duration::from_nanos(ts_ns);
        let covers = |server: &[u8]| rest.names.has(server, rest.common_name.as_deref());
        let flaws = [
            ("expired", now > rest.not_after),
            ("not-yet-valid", now < rest.not_before),
            ("self-signed", rest.is_self_signed),
            ("name-mismatch", server_name.is_some_and(|server| !covers(server))),
        ];
        flaws
            .iter()
            .filter(|(_, is_there)| *is_there)
            .for_each(|(flaw, _)| found(Kind::TlsCertificateFlaws, flaw.as_bytes()));
        let names = rest.names.all().take(NAMES_MAX);
        names.for_each(|(_, name)| found(Kind::TlsCertificateNames, name));
        if rest.names.sorts.len() > NAMES_MAX { Err(Unread::TooMuch) } else { Ok(()) }
    }
}

impl Rest {
    /// Reads a certificate, and pushes its facts before its flaws.
    fn read(bytes: &[u8], facts: &mut Values) -> Result<Self, Unread> {
        let certificate =
            CertificateInner::<Raw>::from_der(bytes).map_err(|_| Unread::Malformed)?;
        let own = certificate.tbs_certificate();
        let common_name = common_name(own.subject());
        if let Some(name) = &common_name {
            facts.push(Kind::TlsCertificateSubject, name.as_bytes());
        }
        if let Some(name) = self::common_name(own.issuer()) {
            facts.push(Kind::TlsCertificateIssuer, name.as_bytes());
        }
        let serial = own.serial_number().as_bytes();
        let zeros = serial.iter().take_while(|&&byte| byte == 0).count();
        let serial = &serial[zeros.min(serial.len().saturating_sub(1))..];
        let mut digits = [0; 2 * SERIAL_MAX];
        let serial = &serial[..serial.len().min(SERIAL_MAX)];
        hex(serial, &mut digits);
        facts.push(Kind::TlsCertificateSerial, &digits[..2 * serial.len()]);
        let validity = own.validity();
        facts.push(Kind::TlsCertificateNotBefore, Text::of(validity.not_before).bytes());
        facts.push(Kind::TlsCertificateNotAfter, Text::of(validity.not_after).bytes());
        let key = own.subject_public_key_info();
        push_algorithm(Kind::TlsCertificateKey, &key.algorithm.oid, facts);
        if let Some(bits) = key_bits(key) {
            facts.push(Kind::TlsCertificateKeyBits, Text::number(bits).bytes());
        }
        let algorithm = &certificate.signature_algorithm().oid;
        push_algorithm(Kind::TlsCertificateSignature, algorithm, facts);
        Ok(Self {
            not_before: validity.not_before.to_unix_duration(),
            not_after: validity.not_after.to_unix_duration(),
            is_self_signed: own.subject() == own.issuer(),
            common_name,
            names: Names::of(own)?,
        })
    }
}

/// The first certificate, and the number of all.
pub(super) fn chain(body: &[u8]) -> Option<(&[u8], u64)> {
    fn vector<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (&len, rest) = bytes.split_first_chunk::<3>()?;
        let (own, rest) = rest.split_at_checked(length(len))?;
        *bytes = rest;
        Some(own)
    }
    let mut rest = body;
    let mut list = vector(&mut rest).filter(|_| rest.is_empty())?;
    let (first, mut count) = (vector(&mut list)?, 1);
    while !list.is_empty() {
        vector(&mut list)?;
        count += 1;
    }
    Some((first, count))
}

/// The last common name of a subject or an issuer: the most specific one.
fn common_name(name: &Name) -> Option<String> {
    let names = name.iter().filter(|attribute| attribute.oid == COMMON_NAME);
    names.last().map(|attribute| text(&attribute.value))
}

/// A string of ASN.1. Bytes that are not of its character set are replaced.
fn text(value: &Any) -> String {
    let bytes = value.value();
    let pairs = bytes.as_chunks::<2>().0.iter().map(|&pair| u16::from_be_bytes(pair));
    match value.tag() {
        Tag::BmpString => char::decode_utf16(pairs)
            .map(|sign| sign.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        // Latin 1, as certificates use it.
        Tag::TeletexString => bytes.iter().map(|&byte| char::from(byte)).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The algorithms of nearly all certificates with their names: the list of all names is long.
static COMMON: LazyLock<Vec<(ObjectIdentifier, &str)>> = LazyLock::new(|| {
    let all = [
        RSA,
        ELLIPTIC,
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"), // RSA with SHA-1
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11"), // RSA with SHA-256
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12"), // RSA with SHA-384
        ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2"),  // ECDSA with SHA-256
        ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3"),  // ECDSA with SHA-384
    ];
    all.into_iter().filter_map(|oid| Some((oid, DB.by_oid(&oid)?))).collect()
});

/// Pushes the name of an algorithm, or its numbers.
fn push_algorithm(kind: Kind, oid: &ObjectIdentifier, facts: &mut Values) {
    let common = COMMON.iter().find(|(own, _)| own.as_bytes() == oid.as_bytes());
    match common.map(|(_, name)| *name).or_else(|| DB.by_oid(oid)) {
        Some(name) => facts.push(kind, name.as_bytes()),
        None => facts.push(kind, oid.to_string().as_bytes()),
    }
}

/// The size of a key: of RSA the modulus, of DSA the prime, of an elliptic curve a coordinate.
fn key_bits(key: &SubjectPublicKeyInfoOwned) -> Option<u64> {
    let bytes = key.subject_public_key.raw_bytes();
    let parameters = key.algorithm.parameters.as_ref();
    // Of the first number in a sequence.
    let bits_of = |sequence: &[u8]| {
        let number = UintRef::decode(&mut SliceReader::new(sequence).ok()?).ok()?;
        let bytes = number.as_bytes();
        let zeros = bytes.first().map_or(0, |first| first.leading_zeros());
        Some((bytes.len() as u64 * 8).saturating_sub(zeros.into()))
    };
    match key.algorithm.oid {
        RSA | RSA_PSS => bits_of(AnyRef::from_der(bytes).ok()?.value()),
        DSA => bits_of(parameters?.value()),
        ELLIPTIC if parameters?.decode_as::<ObjectIdentifier>() == Ok(P521) => Some(521),
        ELLIPTIC => match bytes {
            // Both coordinates, or one and the sign of the other.
            [4, rest @ ..] => Some(rest.len() as u64 * 4),
            [2 | 3, rest @ ..] => Some(rest.len() as u64 * 8),
            _ => None,
        },
        _ => None,
    }
}

/// What a name of the subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Dns,
    Address(IpAddr),
    /// A mail address or a URI.
    Text,
}

/// The names in the extension for alternative names (RFC 5280, section 4.2.1.6).
#[derive(Default)]
struct Names {
    /// The bytes of all names, those of an address in text.
    bytes: Vec<u8>,
    /// What each name is, and where it ends.
    sorts: Vec<(Sort, usize)>,
}

impl Names {
    /// The names of a certificate.
    fn of(certificate: &TbsCertificateInner<Raw>) -> Result<Self, Unread> {
        let mut all = certificate.extensions().into_iter().flatten();
        let Some(own) = all.find(|extension| extension.extn_id == SUBJECT_NAMES) else {
            return Ok(Self::default());
        };
        Self::read(own.extn_value.as_bytes()).ok_or(Unread::Malformed)
    }

    fn read(value: &[u8]) -> Option<Self> {
        let sequence = AnyRef::from_der(value).ok()?;
        let mut rest = SliceReader::new(sequence.value()).ok()?;
        let mut names = Self::default();
        while !rest.is_finished() {
            let name = AnyRef::decode(&mut rest).ok()?;
            let Tag::ContextSpecific { number, .. } = name.tag() else { continue };
            match (number.value(), name.value()) {
                (1 | 6, bytes) => names.push(Sort::Text, bytes),
                (2, bytes) => names.push(Sort::Dns, bytes),
                (7, bytes) => {
                    if let Some(address) = address(bytes) {
                        names.push(Sort::Address(address), Text::of(address).bytes());
                    }
                }
                _ => {}
            }
        }
        Some(names)
    }

    fn push(&mut self, sort: Sort, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.sorts.push((sort, self.bytes.len()));
    }

    fn all(&self) -> impl Iterator<Item = (Sort, &[u8])> {
        let mut start = 0;
        self.sorts
            .iter()
            .map(move |&(sort, end)| (sort, &self.bytes[std::mem::replace(&mut start, end)..end]))
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.sorts.capacity() * size_of::<(Sort, usize)>()
    }

    /// Whether the certificate is for a server with this name. The common name counts if there is no name of a host
    /// (RFC 6125, section 6.4.4).
    fn has(&self, server: &[u8], common_name: Option<&str>) -> bool {
        let is_host = |own: &(Sort, &[u8])| own.0 == Sort::Dns;
        let mut hosts = self.all().filter(is_host).map(|(_, name)| name);
        let address = std::str::from_utf8(server).ok().and_then(|text| text.parse().ok());
        let is = |address| self.sorts.iter().any(|(own, _)| *own == Sort::Address(address));
        if address.is_some_and(is) {
            return true;
        }
        match hosts.next() {
            Some(first) => covers(first, server) || hosts.any(|name| covers(name, server)),
            None => common_name.is_some_and(|name| covers(name.as_bytes(), server)),
        }
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Whether a name in a certificate is that of a server, in any case. `*` at its beginning stands for one label (RFC 6125,
/// section 6.4.3).
fn covers(pattern: &[u8], server: &[u8]) -> bool {
    let without_root = |name| <[u8]>::strip_suffix(name, b".").unwrap_or(name);
    let (pattern, server) = (without_root(pattern), without_root(server));
    if pattern.eq_ignore_ascii_case(server) {
        return true;
    }
    let dot = server.iter().position(|&byte| byte == b'.');
    match (pattern.strip_prefix(b"*"), dot) {
        (Some(suffix @ [b'.', ..]), Some(dot @ 1..)) => suffix.eq_ignore_ascii_case(&server[dot..]),
        _ => false,
    }
}
