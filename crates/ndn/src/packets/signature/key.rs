//! Keys: verifying and creating signatures, with the crate `ring`.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, UnparsedPublicKey,
};
use ring::{digest, hmac};

use super::signed::{KeyError, SignatureType, Signed};
use crate::packets::{Element, Name, NameBuf};

/// A SubjectPublicKeyInfo up to the key: ECDSA on the named curve P-256, an uncompressed point.
const P256_PUBLIC: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A SubjectPublicKeyInfo of Ed25519 (RFC 8410) up to the key.
const ED25519_PUBLIC: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key of Ed25519 in PKCS #8 version 1 up to the seed.
const ED25519_PRIVATE: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Sizes of the secret of an HMAC, in bytes.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;

/// A key that verifies signatures of one type.
#[derive(Clone, Debug)]
pub struct VerifyingKey(Public);

#[derive(Clone, Debug)]
enum Public {
    Digest,
    Hmac(hmac::Key),
    Ecdsa([u8; 65]),
    Ed25519([u8; 32]),
}

impl VerifyingKey {
    /// Verifies digests: every sender can create them.
    pub fn digest() -> Result<Self, KeyError> {
        Ok(Self(Public::Digest))
    }

    /// A shared secret of 16 to 4096 bytes.
    pub fn hmac(secret: &[u8]) -> Result<Self, KeyError> {
        hmac_key(secret).map(Public::Hmac).map(Self)
    }

    /// A public key as SubjectPublicKeyInfo in DER: Ed25519, or ECDSA on P-256.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let public = if let Some(key) = der.strip_prefix(&ED25519_PUBLIC) {
            key.try_into().ok().map(Public::Ed25519)
        } else if let Some(point) = der.strip_prefix(&P256_PUBLIC) {
            // 4: an uncompressed point.
            point.try_into().ok().filter(|point: &[u8; 65]| point[0] == 4).map(Public::Ecdsa)
        } else {
            None
        };
        public.map(Self).ok_or(KeyError::PublicKey)
    }

    /// The type of the signatures.
    pub fn signature_type(&self) -> SignatureType {
        match self.0 {
            Public::Digest => SignatureType::Digest,
            Public::Hmac(_) => SignatureType::Hmac,
            Public::Ecdsa(_) => SignatureType::Ecdsa,
            Public::Ed25519(_) => SignatureType::Ed25519,
        }
    }

    /// Whether the signature is of this key, and covers exactly the signed bytes.
    pub fn verifies(&self, signed: &Signed<'_>) -> bool {
        if signed.info.signature_type() != Some(self.signature_type()) {
            return false;
        }
        let bytes = signed.parts.concat();
        match &self.0 {
            Public::Digest => digest::digest(&digest::SHA256, &bytes).as_ref() == signed.value,
            Public::Hmac(key) => hmac::verify(key, &bytes, signed.value).is_ok(),
            Public::Ecdsa(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
                .verify(&bytes, signed.value)
                .is_ok(),
            Public::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(&bytes, signed.value).is_ok()
            }
        }
    }
}

/// A key that creates signatures, with the name that they carry as their key locator.
pub struct Signer {
    key: Private,
    locator: NameBuf,
}

enum Private {
    Hmac(hmac::Key),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// A shared secret of 16 to 4096 bytes.
    pub fn hmac(secret: &[u8], locator: NameBuf) -> Result<Self, KeyError> {
        Ok(Self { key: Private::Hmac(hmac_key(secret)?), locator })
    }

    /// A private key in DER: PKCS #8 with Ed25519 or with ECDSA on P-256, or SEC 1 with ECDSA on
    /// P-256. A key of ECDSA must include its public key.
    pub fn from_der(der: &[u8], locator: NameBuf) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let ecdsa = |der| EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &random);
        let key = if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            Private::Ed25519(key)
        } else if let Ok(key) = ecdsa(der) {
            Private::Ecdsa(key)
        } else {
            let (secret, point) = sec1(der).ok_or(KeyError::PrivateKey)?;
            let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point, &random)
                .map(Private::Ecdsa)
                .map_err(|_| KeyError::PrivateKey)?
        };
        Ok(Self { key, locator })
    }

    /// Creates a private key of Ed25519 or ECDSA in PKCS #8, or the secret of an HMAC.
    pub fn generate(of: SignatureType) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        let mut bytes = [0; 32];
        match of {
            SignatureType::Ecdsa => {
                let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
                return key.map(|key| key.as_ref().to_vec()).map_err(|_| KeyError::Random);
            }
            SignatureType::Digest => return Err(KeyError::PrivateKey),
            SignatureType::Ed25519 | SignatureType::Hmac => {
                random.fill(&mut bytes).map_err(|_| KeyError::Random)?;
            }
        }
        // Version 1, without the public key: OpenSSL and others do not read version 2.
        let head = if of == SignatureType::Ed25519 { &ED25519_PRIVATE[..] } else { &[] };
        Ok([head, &bytes].concat())
    }

    /// The type of the signatures.
    pub fn signature_type(&self) -> SignatureType {
        match self.key {
            Private::Hmac(_) => SignatureType::Hmac,
            Private::Ecdsa(_) => SignatureType::Ecdsa,
            Private::Ed25519(_) => SignatureType::Ed25519,
        }
    }

    /// The name in the key locators.
    pub fn locator(&self) -> Name<'_> {
        self.locator.as_name()
    }

    /// The public key as SubjectPublicKeyInfo in DER; `None` for an HMAC.
    pub fn public(&self) -> Option<Vec<u8>> {
        match &self.key {
            Private::Hmac(_) => None,
            Private::Ecdsa(pair) => Some([&P256_PUBLIC, pair.public_key().as_ref()].concat()),
            Private::Ed25519(pair) => Some([&ED25519_PUBLIC, pair.public_key().as_ref()].concat()),
        }
    }

    /// The signature of the concatenated parts.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, KeyError> {
        let bytes = parts.concat();
        match &self.key {
            Private::Hmac(key) => Ok(hmac::sign(key, &bytes).as_ref().to_vec()),
            Private::Ecdsa(pair) => pair
                .sign(&SystemRandom::new(), &bytes)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| KeyError::Random),
            Private::Ed25519(pair) => Ok(pair.sign(&bytes).as_ref().to_vec()),
        }
    }
}

/// Shows type and name, never the key.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({}, {})", self.signature_type().name(), self.locator)
    }
}

fn hmac_key(secret: &[u8]) -> Result<hmac::Key, KeyError> {
    if SECRET.contains(&secret.len()) {
        Ok(hmac::Key::new(hmac::HMAC_SHA256, secret))
    } else {
        Err(KeyError::Secret(secret.len()))
    }
}

/// Secret and public key of an ECPrivateKey (RFC 5915) on P-256, which ndnd writes. DER in short
/// forms has the same structure as TLV elements: SEQUENCE {1, OCTET STRING, [0] curve, [1] point}.
fn sec1(der: &[u8]) -> Option<(&[u8], &[u8])> {
    const CURVE: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let value = |bytes, tag| match Element::first(bytes) {
        Ok((element, rest)) if element.kind == tag => Some((element.value, rest)),
        _ => None,
    };
    let (body, _) = value(der, 0x30).filter(|(body, _)| body.len() < 128)?;
    let (_, rest) = value(body, 0x02).filter(|(version, _)| *version == [1])?;
    let (secret, rest) = value(rest, 0x04)?;
    let (_, rest) = value(rest, 0xa0).filter(|(curve, _)| *curve == CURVE)?;
    let (bits, _) = value(value(rest, 0xa1)?.0, 0x03)?;
    Some((secret, bits.strip_prefix(&[0])?))
}
