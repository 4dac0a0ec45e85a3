//! Key files of signed commands: reads private and public keys, and signs commands with them.
//!
//! | file | holds |
//! |---|---|
//! | PEM `PRIVATE KEY`, `EC PRIVATE KEY` | an Ed25519 or ECDSA key (PKCS #8, SEC 1) |
//! | PEM `NDN KEY` | the same with its name, as ndnd writes it |
//! | hexadecimal, base64 or raw bytes | the secret of an HMAC |
//! | PEM `PUBLIC KEY` | a public key (SubjectPublicKeyInfo) |
//! | base64, PEM `NDN CERT`, or a Data | a certificate, as ndnsec, ndnd and python-ndn write it |

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ringtap_base::now_ns;
use ringtap_ndn::packets::management::{ControlParameters, NewCommand};
use ringtap_ndn::packets::signature::{Certificate, Signer, VerifyingKey};
use ringtap_ndn::packets::{Data, NameBuf};
use ringtap_terminal::Usage;

use crate::args::SigningArgs;

/// Maximum size of a key file, in bytes.
const FILE_MAX: u64 = 1 << 16;

/// A public key and, if a certificate holds it, the certificate's name of the key and its period.
pub(crate) struct PublicKey {
    pub(crate) key: VerifyingKey,
    pub(crate) name: Option<NameBuf>,
    /// In milliseconds since 1970.
    pub(crate) valid_ms: (u64, u64),
}

/// Signs commands: with a key if one is given, else by a digest.
pub(crate) struct CommandSigner {
    signer: Option<Signer>,
    latest_ms: u64,
}

impl CommandSigner {
    /// Reads the key that the flags name.
    pub(crate) fn of(args: &SigningArgs) -> anyhow::Result<Self> {
        let signer = match &args.key {
            Some(path) => Some(private(path, args.key_name.as_ref())?),
            None => None,
        };
        Ok(Self { signer, latest_ms: 0 })
    }

    /// Whether commands are signed with a key.
    pub(crate) fn has_key(&self) -> bool {
        self.signer.is_some()
    }

    /// A signed command. Each has a later time than the one before it, as forwarders require.
    pub(crate) fn command(
        &mut self,
        scope: &str,
        (module, verb): (&str, &str),
        parameters: &ControlParameters,
    ) -> anyhow::Result<Vec<u8>> {
        let now = now_ns();
        let time_ms = (now / 1_000_000).max(self.latest_ms + 1);
        self.latest_ms = time_ms;
        let nonce = (now as u32).rotate_left(16) ^ std::process::id();
        let new =
            NewCommand { scope, application: "nfd", module, verb, parameters, nonce, time_ms };
        let mut wire = Vec::new();
        match &self.signer {
            Some(signer) => new.sign(signer, &mut wire).context("signing the command")?,
            None => new.write(&mut wire),
        }
        Ok(wire)
    }
}

/// Reads a private key or a secret. `name` is the key locator; without it, the file must have one.
fn private(path: &Path, name: Option<&NameBuf>) -> anyhow::Result<Signer> {
    let shown = path.display();
    let bytes = read_private(path)?;
    let named = || {
        name.cloned()
            .ok_or_else(|| Usage::of(format!("the key {shown} has no name: add --key-name NAME")))
    };
    let signer = match Pem::find(&bytes) {
        Some(pem) if pem.label == "NDN KEY" => {
            let wire = pem.bytes.with_context(|| format!("{shown}: invalid base64"))?;
            let data = Data::read(&wire).with_context(|| format!("reading the key {shown}"))?;
            let own = NameBuf::of(data.name);
            Signer::from_der(data.content, name.cloned().unwrap_or(own))
        }
        Some(pem) if pem.label.ends_with("PRIVATE KEY") => {
            let der = pem.bytes.with_context(|| format!("{shown}: invalid base64"))?;
            Signer::from_der(&der, named()?)
        }
        Some(pem) => bail!("{shown} holds a {}: use the private key", pem.label),
        None => Signer::hmac(&secret(&bytes), named()?),
    };
    signer.with_context(|| format!("reading the key {shown}"))
}

/// Reads the secret of an HMAC to verify with.
pub(crate) fn hmac(path: &Path) -> anyhow::Result<VerifyingKey> {
    let bytes = read_private(path)?;
    if let Some(pem) = Pem::find(&bytes) {
        bail!(
            "{} holds a {}: use a secret in hexadecimal digits, base64 or bytes, or another type",
            path.display(),
            pem.label
        );
    }
    let context = || format!("reading the key {}", path.display());
    VerifyingKey::hmac(&secret(&bytes)).with_context(context)
}

/// Reads a public key or a certificate.
pub(crate) fn public(path: &Path) -> anyhow::Result<PublicKey> {
    let shown = path.display();
    let (bytes, _) = read(path)?;
    let context = || format!("reading the key {shown}");
    let wire = match Pem::find(&bytes) {
        Some(pem) if pem.label == "PUBLIC KEY" => {
            let der = pem.bytes.with_context(|| format!("{shown}: invalid base64"))?;
            let key = VerifyingKey::from_spki(&der).with_context(context)?;
            return Ok(PublicKey { key, name: None, valid_ms: (0, u64::MAX) });
        }
        Some(pem) if pem.label == "NDN CERT" => {
            pem.bytes.with_context(|| format!("{shown}: invalid base64"))?
        }
        Some(pem) => bail!("{shown} holds a {}: use a certificate or a PUBLIC KEY", pem.label),
        None => decoded(&bytes).unwrap_or(bytes),
    };
    let read = Certificate::read(&wire).with_context(|| {
        format!(
            "{shown} is neither an NDN certificate (a Data, also as base64) nor a PEM PUBLIC KEY"
        )
    })?;
    let key = VerifyingKey::from_spki(read.public).with_context(context)?;
    Ok(PublicKey { key, name: read.key_name(), valid_ms: read.valid_ms })
}

/// Reads a file that only its owner may read.
fn read_private(path: &Path) -> anyhow::Result<Vec<u8>> {
    let (bytes, mode) = read(path)?;
    if mode & 0o077 != 0 {
        let shown = path.display();
        return Err(Usage::of(format!(
            "other users can access the key {shown} (mode {:04o}): run 'chmod 600 {shown}'",
            mode & 0o7777
        )));
    }
    Ok(bytes)
}

/// Content and mode of a file.
fn read(path: &Path) -> anyhow::Result<(Vec<u8>, u32)> {
    let doing = || format!("reading the key {}", path.display());
    let file = File::open(path).with_context(doing)?;
    let mode = file.metadata().with_context(doing)?.permissions().mode();
    let mut bytes = Vec::new();
    file.take(FILE_MAX).read_to_end(&mut bytes).with_context(doing)?;
    Ok((bytes, mode))
}

/// A secret: hexadecimal digits, base64, or else the bytes themselves.
fn secret(bytes: &[u8]) -> Vec<u8> {
    let text = bytes.trim_ascii();
    if text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit) {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        return text.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    }
    decoded(bytes).unwrap_or_else(|| bytes.to_vec())
}

/// The bytes of a base64 text, which may have several lines.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64_STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

/// The first block of a PEM text (RFC 7468).
struct Pem<'a> {
    label: &'a str,
    /// `None` if the base64 is invalid.
    bytes: Option<Vec<u8>>,
}

impl<'a> Pem<'a> {
    fn find(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (_, rest) = text.split_once("-----BEGIN ")?;
        let (label, rest) = rest.split_once("-----")?;
        let (body, _) = rest.split_once("-----END ")?;
        // ndnd writes headers before the base64.
        let lines = body.lines().filter(|line| !line.contains(':'));
        Some(Self { label, bytes: decoded(lines.collect::<String>().as_bytes()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hexadecimal_base64_or_raw() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(secret(b"000102030405060708090A0b0c0d0e0f\n"), bytes);
        assert_eq!(secret(b"AAECAwQFBgcI\nCQoLDA0ODw==\n"), bytes);
        assert_eq!(secret(&[0xff, 0, 10, 7]), [0xff, 0, 10, 7]);
        assert_eq!(secret(b"a pass phrase\n"), b"a pass phrase\n");
        assert_eq!(secret(b"\xc3\xa9\xc3"), b"\xc3\xa9\xc3");
    }

    #[test]
    fn blocks_of_pem_are_found_behind_other_text() {
        let text = b"note\n-----BEGIN NDN CERT-----\nName: /a/KEY\nSigType: x\n\nAAEC\nAwQ=\n-----END NDN CERT-----\n";
        let pem = Pem::find(text).unwrap();
        assert_eq!((pem.label, pem.bytes), ("NDN CERT", Some(vec![0, 1, 2, 3, 4])));
        assert!(Pem::find(b"-----BEGIN X-----\n!\n-----END X-----").unwrap().bytes.is_none());
        for wrong in ["", "-----BEGIN X", "-----BEGIN X-----\nAAEC", "AAEC"] {
            assert!(Pem::find(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
