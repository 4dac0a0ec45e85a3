//! Views of signatures: their fields and the signed bytes; their types, and why a key cannot be used.

use crate::packets::{Element, Elements, Error, Interest, Name, component, kind};

/// Maximum size of a signature nonce, in bytes. The specification recommends 8.
pub const NONCE_MAX: usize = 32;

/// The type of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureType {
    /// A SHA-256 digest: detects changes, and proves no identity.
    Digest,
    /// ECDSA on the curve P-256 with SHA-256; the signature is in DER.
    Ecdsa,
    /// HMAC with SHA-256 and a shared secret.
    Hmac,
    /// Ed25519.
    Ed25519,
}

impl SignatureType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Digest, Self::Ecdsa, Self::Hmac, Self::Ed25519];

    /// The number in a SignatureType element.
    pub fn number(self) -> u64 {
        match self {
            Self::Digest => 0,
            Self::Ecdsa => 3,
            Self::Hmac => 4,
            Self::Ed25519 => 5,
        }
    }

    /// The name in configurations: `digest`, `ecdsa`, `hmac`, `ed25519`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digest => "digest",
            Self::Ecdsa => "ecdsa",
            Self::Hmac => "hmac",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The program was built without the feature `signatures`.
    #[error("this program was built without signatures: build it with --features signatures")]
    Unsupported,
    /// The public key is not a SubjectPublicKeyInfo of a supported type.
    #[error("unsupported public key: use Ed25519, or ECDSA on P-256 (as a named curve)")]
    PublicKey,
    /// The private key is not in PKCS #8 or SEC 1, or of another type.
    #[error("unsupported private key: use PKCS #8 with Ed25519, or with ECDSA on P-256")]
    PrivateKey,
    /// The secret of an HMAC has a wrong size.
    #[error("a secret of {0} bytes: use 16 to 4096")]
    Secret(usize),
    /// The system returned no random numbers.
    #[error("no random numbers from the system")]
    Random,
}

/// A view of a SignatureInfo or an InterestSignatureInfo; missing fields are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    /// The number of the signature's type; [`SignatureType::number`] lists the supported ones.
    pub number: u64,
    /// The name of the key. A locator by digest is an error.
    pub locator: Option<Name<'a>>,
    /// The nonce: 1 to [`NONCE_MAX`] bytes.
    pub nonce: Option<&'a [u8]>,
    /// The time of the signature, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// The sequence number.
    pub sequence: Option<u64>,
}

impl<'a> SignatureInfo<'a> {
    /// Parses the value of a SignatureInfo element.
    pub fn read(value: &'a [u8]) -> Result<Self, Error> {
        let mut elements = Elements::of(value);
        let first = elements.next().ok_or(Error::NoSignature)??;
        if first.kind != kind::SIGNATURE_TYPE {
            return Err(Error::NoSignature);
        }
        let mut read = Self { number: first.number()?, ..Self::default() };
        for element in elements {
            let element = element?;
            match element.kind {
                kind::KEY_LOCATOR => {
                    read.locator = Some(Name::of(&Element::only(element.value)?)?.0);
                }
                kind::SIGNATURE_NONCE => read.nonce = Some(nonce(element.value)?),
                kind::SIGNATURE_TIME => read.time_ms = Some(element.number()?),
                kind::SIGNATURE_SEQUENCE => read.sequence = Some(element.number()?),
                // A certificate's period. Its type is odd, so a parser of packets must expect it.
                kind::VALIDITY_PERIOD => {}
                _ if element.is_critical() => return Err(Error::Critical),
                _ => {}
            }
        }
        Ok(read)
    }

    /// The type of the signature; `None` if it is not supported.
    pub fn signature_type(&self) -> Option<SignatureType> {
        SignatureType::ALL.into_iter().find(|one| one.number() == self.number)
    }
}

fn nonce(value: &[u8]) -> Result<&[u8], Error> {
    if (1..=NONCE_MAX).contains(&value.len()) { Ok(value) } else { Err(Error::BadLength) }
}

/// A view of a signed packet: the signature and the bytes that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    /// Type and key of the signature.
    pub info: SignatureInfo<'a>,
    /// The signature.
    pub value: &'a [u8],
    /// The signed bytes, in two parts.
    pub(crate) parts: [&'a [u8]; 2],
}

impl<'a> Signed<'a> {
    /// The signature of an Interest, in its own elements or, as in older commands, in the last four
    /// components of the name; `None` without a signature. The digest of the parameters is not
    /// checked here.
    pub fn interest(interest: &Interest<'a>) -> Result<Option<Self>, Error> {
        let body = Element::only(interest.wire)?.value;
        let (mut rest, mut start, mut info) = (body, None, None);
        while !rest.is_empty() {
            let (element, after) = Element::first(rest)?;
            let at = body.len() - rest.len();
            match (element.kind, start, info) {
                (kind::APPLICATION_PARAMETERS, None, _) => start = Some(at),
                (kind::INTEREST_SIGNATURE_INFO, Some(_), None) => info = Some(element.value),
                (kind::INTEREST_SIGNATURE_VALUE, Some(start), Some(info)) => {
                    // The digest of the parameters is the last component, and is not signed.
                    let name = interest.name.as_bytes();
                    let (name, _) = split_last(name, component::PARAMETERS_DIGEST)
                        .ok_or(Error::ParametersDigest)?;
                    let info = SignatureInfo::read(info)?;
                    return Ok(Some(Self {
                        info,
                        value: element.value,
                        parts: [name, &body[start..at]],
                    }));
                }
                _ => {}
            }
            rest = after;
        }
        if info.is_some() { Err(Error::NoSignature) } else { Self::old_command(interest) }
    }

    /// The signature of an older command: time, nonce, SignatureInfo and SignatureValue are the last
    /// components of its name.
    fn old_command(interest: &Interest<'a>) -> Result<Option<Self>, Error> {
        let last = |name| split_last(name, component::GENERIC);
        let inner =
            |wire, kind| Element::only(wire).ok().filter(|one: &Element<'_>| one.kind == kind);
        let Some((signed, value)) = last(interest.name.as_bytes()) else { return Ok(None) };
        let Some(value) = inner(value, kind::SIGNATURE_VALUE) else { return Ok(None) };
        let (rest, info) = last(signed).ok_or(Error::NoSignature)?;
        let info = inner(info, kind::SIGNATURE_INFO).ok_or(Error::NoSignature)?;
        let (rest, own_nonce) = last(rest).ok_or(Error::NoSignature)?;
        let (_, time) = last(rest).ok_or(Error::NoSignature)?;
        let time = Element { kind: component::GENERIC, value: time };
        let info = SignatureInfo {
            time_ms: Some(time.number()?),
            nonce: Some(nonce(own_nonce)?),
            ..SignatureInfo::read(info.value)?
        };
        Ok(Some(Self { info, value: value.value, parts: [signed, &[]] }))
    }

    /// The signature of a Data; `wire` must hold exactly this packet.
    pub fn data(wire: &'a [u8]) -> Result<Self, Error> {
        let Element { kind: outer, value: body } = Element::only(wire)?;
        if outer != kind::DATA {
            return Err(Error::UnknownPacket);
        }
        let (mut rest, mut info) = (body, None);
        while !rest.is_empty() {
            let (element, after) = Element::first(rest)?;
            match (element.kind, info) {
                (kind::SIGNATURE_INFO, None) => info = Some(element.value),
                (kind::SIGNATURE_VALUE, Some(info)) => {
                    let signed = &body[..body.len() - rest.len()];
                    let info = SignatureInfo::read(info)?;
                    return Ok(Self { info, value: element.value, parts: [signed, &[]] });
                }
                _ => {}
            }
            rest = after;
        }
        Err(Error::NoSignature)
    }
}

/// Splits off the last component of a name if it has this type: the bytes before it and its value.
fn split_last(name: &[u8], kind: u32) -> Option<(&[u8], &[u8])> {
    let (mut rest, mut found) = (name, None);
    while !rest.is_empty() {
        let (component, after) = Element::first(rest).ok()?;
        found = Some((&name[..name.len() - rest.len()], component));
        rest = after;
    }
    found.filter(|(_, last)| last.kind == kind).map(|(before, last)| (before, last.value))
}
