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

use ringtap_wire::PacketRecord;
use sha2::{Digest, Sha256};
use x509_cert::certificate::{CertificateInner, Raw, TbsCertificateInner};
use x509_cert::der::asn1::{Any, AnyRef, ObjectIdentifier, UintRef};
use x509_cert::der::oid::db::DB;
use x509_cert::der::{Decode, Reader, SliceReader, Tag, Tagged};
use x509_cert::name::Name;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use super::fingerprint::hex;
use super::message::length;
use crate::text::Text;
use crate::{Found, Kind, Unread};

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

/// Passes on the facts of the first certificate in the body of a Certificate message.
///
/// # Errors
/// The lengths contradict each other, the certificate could not be read, or has too many names. What was read before
/// was passed on.
pub(super) fn read(
    body: &[u8],
    server_name: Option<&[u8]>,
    packet: &PacketRecord,
    found: Found<'_>,
) -> Result<(), Unread> {
    let (first, count) = chain(body).ok_or(Unread::Malformed)?;
    found(Kind::Protocol, b"tls");
    found(Kind::TlsKind, b"certificate");
    found(Kind::TlsCertificateChain, Text::number(count).bytes());
    let mut digits = [0; 64];
    hex(&Sha256::digest(first), &mut digits);
    found(Kind::TlsCertificateSha256, &digits);
    let certificate = CertificateInner::<Raw>::from_der(first).map_err(|_| Unread::Malformed)?;
    let own = certificate.tbs_certificate();
    for (kind, name) in
        [(Kind::TlsCertificateSubject, own.subject()), (Kind::TlsCertificateIssuer, own.issuer())]
    {
        if let Some(name) = common_name(name) {
            found(kind, name.as_bytes());
        }
    }
    let serial = own.serial_number().as_bytes();
    let zeros = serial.iter().take_while(|&&byte| byte == 0).count();
    let serial = &serial[zeros.min(serial.len().saturating_sub(1))..];
    let mut digits = [0; 2 * SERIAL_MAX];
    let serial = &serial[..serial.len().min(SERIAL_MAX)];
    hex(serial, &mut digits);
    found(Kind::TlsCertificateSerial, &digits[..2 * serial.len()]);
    let validity = own.validity();
    let times = [
        (Kind::TlsCertificateNotBefore, validity.not_before),
        (Kind::TlsCertificateNotAfter, validity.not_after),
    ];
    for (kind, time) in times {
        found(kind, Text::of(time).bytes());
    }
    let key = own.subject_public_key_info();
    algorithm(Kind::TlsCertificateKey, &key.algorithm.oid, found);
    if let Some(bits) = key_bits(key) {
        found(Kind::TlsCertificateKeyBits, Text::number(bits).bytes());
    }
    algorithm(Kind::TlsCertificateSignature, &certificate.signature_algorithm().oid, found);
    let now = Duration::from_nanos(packet.ts_ns);
    let names = Names::of(own)?;
    let subject = common_name(own.subject());
    let flaws = [
        ("expired", now > validity.not_after.to_unix_duration()),
        ("not-yet-valid", now < validity.not_before.to_unix_duration()),
        ("self-signed", own.subject() == own.issuer()),
        ("name-mismatch", server_name.is_some_and(|server| !names.has(server, subject.as_deref()))),
    ];
    flaws
        .iter()
        .filter(|(_, is_there)| *is_there)
        .for_each(|(flaw, _)| found(Kind::TlsCertificateFlaws, flaw.as_bytes()));
    for name in names.0.iter().take(NAMES_MAX) {
        match name {
            SubjectName::Text(name) => found(Kind::TlsCertificateNames, name),
            SubjectName::Dns(name) => found(Kind::TlsCertificateNames, name),
            SubjectName::Address(address) => {
                found(Kind::TlsCertificateNames, Text::of(address).bytes());
            }
        }
    }
    if names.0.len() > NAMES_MAX { Err(Unread::TooMuch) } else { Ok(()) }
}

/// The first certificate, and the number of all.
fn chain(body: &[u8]) -> Option<(&[u8], u64)> {
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

/// Passes on the name of an algorithm, or its numbers.
fn algorithm(kind: Kind, oid: &ObjectIdentifier, found: Found<'_>) {
    let common = COMMON.iter().find(|(own, _)| own.as_bytes() == oid.as_bytes());
    match common.map(|(_, name)| *name).or_else(|| DB.by_oid(oid)) {
        Some(name) => found(kind, name.as_bytes()),
        None => found(kind, oid.to_string().as_bytes()),
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

/// A name of the subject.
#[derive(Debug, PartialEq, Eq)]
enum SubjectName<'a> {
    Dns(&'a [u8]),
    Address(IpAddr),
    /// A mail address or a URI.
    Text(&'a [u8]),
}

/// The names in the extension for alternative names (RFC 5280, section 4.2.1.6).
struct Names<'a>(Vec<SubjectName<'a>>);

impl<'a> Names<'a> {
    /// The names of a certificate.
    fn of(certificate: &'a TbsCertificateInner<Raw>) -> Result<Self, Unread> {
        let mut all = certificate.extensions().into_iter().flatten();
        let Some(own) = all.find(|extension| extension.extn_id == SUBJECT_NAMES) else {
            return Ok(Self(Vec::new()));
        };
        Self::read(own.extn_value.as_bytes()).ok_or(Unread::Malformed)
    }

    fn read(value: &'a [u8]) -> Option<Self> {
        let sequence = AnyRef::from_der(value).ok()?;
        let mut rest = SliceReader::new(sequence.value()).ok()?;
        let mut names = Vec::new();
        while !rest.is_finished() {
            let name = AnyRef::decode(&mut rest).ok()?;
            let Tag::ContextSpecific { number, .. } = name.tag() else { continue };
            let bytes = name.value();
            names.extend(match number.value() {
                1 | 6 => Some(SubjectName::Text(bytes)),
                2 => Some(SubjectName::Dns(bytes)),
                7 => address(bytes).map(SubjectName::Address),
                _ => None,
            });
        }
        Some(Self(names))
    }

    /// Whether the certificate is for a server with this name. The common name counts if there is no name of a host
    /// (RFC 6125, section 6.4.4).
    fn has(&self, server: &[u8], common_name: Option<&str>) -> bool {
        let mut hosts = self.0.iter().filter_map(|name| match name {
            SubjectName::Dns(name) => Some(*name),
            _ => None,
        });
        let address = std::str::from_utf8(server).ok().and_then(|text| text.parse().ok());
        if address.is_some_and(|address| self.0.contains(&SubjectName::Address(address))) {
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
