//! Tests of signatures: packets that python-ndn signed (`vectors.py`), and packets of our own.

use std::collections::BTreeMap;

use ringtap_ndn::packets::management::{Command, ControlParameters, NewCommand};
use ringtap_ndn::packets::signature::{
    Certificate, KeyError, NewCertificate, SignatureType, Signed, Signer, VerifyingKey,
};
use ringtap_ndn::packets::{Interest, NameBuf};

const TIME_MS: u64 = 1_700_000_000_000;

/// The lines of `vectors.txt`: type and kind, and the bytes.
pub(crate) fn vectors() -> BTreeMap<(&'static str, &'static str), Vec<u8>> {
    let lines = include_str!("vectors.txt").lines();
    let vector = |line: &'static str| {
        let [name, kind, hex] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        ((name, kind), (0..hex.len()).step_by(2).map(byte).collect())
    };
    lines.map(vector).collect()
}

/// The key that verifies the vectors of a type.
pub(crate) fn verifying_key(of: SignatureType) -> VerifyingKey {
    let vectors = vectors();
    match of {
        SignatureType::Digest => VerifyingKey::digest().unwrap(),
        SignatureType::Hmac => VerifyingKey::hmac(&vectors[&("hmac", "private")]).unwrap(),
        _ => {
            let wire = &vectors[&(of.name(), "certificate")];
            VerifyingKey::from_spki(Certificate::read(wire).unwrap().public).unwrap()
        }
    }
}

/// The private key of the vectors of a type.
pub(crate) fn signer(of: SignatureType, locator: &str) -> Signer {
    let secret = &vectors()[&(of.name(), "private")];
    let locator = locator.parse().unwrap();
    match of {
        SignatureType::Hmac => Signer::hmac(secret, locator).unwrap(),
        _ => Signer::from_der(secret, locator).unwrap(),
    }
}

/// Whether a command is complete and its signature is valid.
fn is_valid(key: &VerifyingKey, wire: &[u8]) -> bool {
    let Ok(interest) = Interest::read(wire) else { return false };
    let Ok(Some(signed)) = Signed::interest(&interest) else { return false };
    Command::read(&interest).is_ok() && key.verifies(&signed)
}

#[test]
fn packets_of_python_ndn_are_verified_in_all_types_and_formats() {
    let vectors = vectors();
    for of in SignatureType::ALL {
        let key = verifying_key(of);
        for format in ["interest", "old"] {
            let wire = &vectors[&(of.name(), format)];
            assert!(is_valid(&key, wire), "{of:?} {format}");
            let interest = Interest::read(wire).unwrap();
            let info = Signed::interest(&interest).unwrap().unwrap().info;
            assert_eq!((info.time_ms, info.signature_type()), (Some(TIME_MS), Some(of)));
            assert_eq!(info.nonce, Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
            let locator = info.locator.map(|name| name.to_string());
            let expected = (of != SignatureType::Digest).then_some("/example/KEY/k1");
            assert_eq!(locator.as_deref(), expected);
            for other in SignatureType::ALL.into_iter().filter(|other| *other != of) {
                assert!(!is_valid(&verifying_key(other), wire), "{of:?} by {other:?}");
            }
        }
        let data = &vectors[&(of.name(), "data")];
        assert!(key.verifies(&Signed::data(data).unwrap()), "{of:?}");
    }
}

#[test]
fn a_flipped_bit_of_the_signed_bytes_or_the_signature_is_detected() {
    let vectors = vectors();
    for of in SignatureType::ALL {
        let key = verifying_key(of);
        for format in ["interest", "old"] {
            let wire = &vectors[&(of.name(), format)];
            // MustBeFresh, the nonce and the lifetime of the Interest are not signed.
            let free = wire.windows(6).position(|part| part == [10, 4, 0, 0, 0, 7]).unwrap();
            let first = if format == "interest" { free - 2 } else { free };
            for at in (0..wire.len()).filter(|at| !(first..free + 10).contains(at)) {
                let mut changed = wire.clone();
                changed[at] ^= 1 << (at % 8);
                assert!(!is_valid(&key, &changed), "{of:?} {format}: byte {at}");
            }
        }
        let data = &vectors[&(of.name(), "data")];
        for at in 0..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 1 << (at % 8);
            let verifies = Signed::data(&changed).is_ok_and(|signed| key.verifies(&signed));
            assert!(!verifies, "{of:?}: byte {at}");
        }
    }
}

#[test]
fn certificates_are_read_and_their_signatures_verified() {
    for of in [SignatureType::Ecdsa, SignatureType::Ed25519] {
        let wire = &vectors()[&(of.name(), "certificate")];
        let read = Certificate::read(wire).unwrap();
        assert_eq!(read.key_name().unwrap().to_string(), "/example/KEY/k1");
        // 2020-01-01 and 2040-01-01.
        assert_eq!(read.valid_ms, (1_577_836_800_000, 2_208_988_800_000));
        assert!(verifying_key(of).verifies(&Signed::data(wire).unwrap()));
        let signer = signer(of, "/example/KEY/k1");
        assert_eq!(signer.public().as_deref(), Some(read.public));
    }
    let data = &vectors()[&("ecdsa", "data")];
    assert!(Certificate::read(data).is_err(), "not a key");
}

#[test]
fn written_commands_and_certificates_are_verified() {
    let parameters =
        ControlParameters { name: Some("/example/a".parse().unwrap()), ..Default::default() };
    for of in [SignatureType::Hmac, SignatureType::Ecdsa, SignatureType::Ed25519] {
        let made = Signer::generate(of).unwrap();
        let locator: NameBuf = "/example/KEY/new".parse().unwrap();
        let (signer, key) = match of {
            SignatureType::Hmac => {
                (Signer::hmac(&made, locator.clone()), VerifyingKey::hmac(&made))
            }
            _ => {
                let signer = Signer::from_der(&made, locator.clone()).unwrap();
                let key = VerifyingKey::from_spki(&signer.public().unwrap());
                (Ok(signer), key)
            }
        };
        let (signer, key) = (signer.unwrap(), key.unwrap());
        assert_eq!((signer.signature_type(), key.signature_type()), (of, of));
        let (scope, module, verb) = ("localhop", "rib", "register");
        let new = NewCommand {
            scope,
            application: "nfd",
            module,
            verb,
            parameters: &parameters,
            nonce: 5,
            time_ms: TIME_MS,
        };
        let mut wire = Vec::new();
        new.sign(&signer, &mut wire).unwrap();
        assert!(Command::is_under(&wire, Command::NEIGHBOURS) && is_valid(&key, &wire));
        assert!(!is_valid(&verifying_key(of), &wire), "another key of {of:?}");
        let Some(public) = signer.public() else { continue };
        let (mut wire, valid_ms) = (Vec::new(), (0, 4_000_000_000_000));
        NewCertificate {
            key_name: locator.as_name(),
            issuer: "self",
            version: 7,
            public: &public,
            valid_ms,
        }
        .write(&signer, &mut wire)
        .unwrap();
        let read = Certificate::read(&wire).unwrap();
        assert_eq!(read.name.to_string(), "/example/KEY/new/self/v=7");
        assert_eq!(
            (read.public, read.valid_ms, read.key_name()),
            (&public[..], valid_ms, Some(locator))
        );
        assert!(key.verifies(&Signed::data(&wire).unwrap()));
    }
}

#[test]
fn keys_of_other_programs_are_read_and_wrong_ones_refused() {
    let name: NameBuf = "/k".parse().unwrap();
    let sec1 = &vectors()[&("ecdsa", "sec1")];
    let read = Signer::from_der(sec1, name.clone()).unwrap();
    assert_eq!(read.public(), signer(SignatureType::Ecdsa, "/k").public());
    for at in 0..sec1.len() {
        assert!(Signer::from_der(&sec1[..at], name.clone()).is_err(), "{at} bytes");
    }
    let spki = read.public().unwrap();
    for at in 0..spki.len() {
        assert_eq!(VerifyingKey::from_spki(&spki[..at]).err(), Some(KeyError::PublicKey));
    }
    for size in [0, 15, 4097] {
        assert_eq!(VerifyingKey::hmac(&vec![7; size]).err(), Some(KeyError::Secret(size)));
        assert_eq!(Signer::hmac(&vec![7; size], name.clone()).err(), Some(KeyError::Secret(size)));
    }
}
