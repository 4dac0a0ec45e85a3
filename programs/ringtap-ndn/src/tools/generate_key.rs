//! `ringtap-ndn key generate`: creates a key and, for a public key, its self-signed certificate.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ringtap_base::now_ns;
use ringtap_base::text::shown;
use ringtap_ndn::packets::NameBuf;
use ringtap_ndn::packets::signature::{NewCertificate, SignatureType, Signer};
use ringtap_terminal::console;

use super::common::fresh_number;
use crate::args::GenerateKeyArgs;

/// The validity of a certificate, in milliseconds: 20 years, as python-ndn.
const VALID_MS: u64 = 20 * 365 * 86_400_000;

/// Characters of base64 in a line.
const LINE: usize = 64;

pub(crate) fn run(args: &GenerateKeyArgs) -> anyhow::Result<ExitCode> {
    let name = key_name(&args.name);
    let of = args.kind.signature_type();
    let secret = Signer::generate(of)?;
    let (key_path, certificate_path) = (with(&args.out, ".key"), with(&args.out, ".cert"));
    let mut anchor = key_path.clone();
    if of == SignatureType::Hmac {
        write_new(&key_path, 0o600, &base64(&secret))?;
    } else {
        let signer = Signer::from_der(&secret, name.clone())?;
        let certificate = certificate(&signer, &name)?;
        let text =
            format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", base64(&secret));
        write_new(&key_path, 0o600, &text)?;
        write_new(&certificate_path, 0o644, &base64(&certificate))?;
        anchor = certificate_path;
    }
    console::print(&format!(
        "# sign with --key {} --key-name {name}\n[[anchor]]\nname = {:?}\ntype = {:?}\nkey = {:?}\nprefix = {:?}\n",
        shown(&key_path.to_string_lossy()),
        name.to_string(),
        of.name(),
        anchor.display().to_string(),
        identity(&name).to_string(),
    ))
    .map(|()| ExitCode::SUCCESS)
}

/// The name of the key: that of an identity with KEY and a random component.
fn key_name(name: &NameBuf) -> NameBuf {
    let mut name = name.clone();
    if !name.as_name().components().any(|part| part.value == b"KEY") {
        name.push(b"KEY");
        name.push(format!("{:010x}", fresh_number()).as_bytes());
    }
    name
}

/// The identity of a key's name: what precedes the last KEY.
fn identity(key: &NameBuf) -> NameBuf {
    let name = key.as_name();
    let starts = name.components().offsets().zip(name.components());
    let starts = starts.filter(|(_, part)| part.value == b"KEY");
    let mut identity = key.clone();
    identity.truncate(starts.last().map_or(0, |(start, _)| start));
    identity
}

fn certificate(signer: &Signer, name: &NameBuf) -> anyhow::Result<Vec<u8>> {
    let now_ms = now_ns() / 1_000_000;
    let public = signer.public().context("the key has no public part")?;
    let mut wire = Vec::new();
    NewCertificate {
        key_name: name.as_name(),
        issuer: "self",
        version: now_ms,
        public: &public,
        // A day earlier, for clocks that differ.
        valid_ms: (now_ms.saturating_sub(86_400_000), now_ms + VALID_MS),
    }
    .write(signer, &mut wire)?;
    Ok(wire)
}

fn base64(bytes: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(bytes);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    lines.map(|line| line.into_owned() + "\n").collect()
}

/// The path with `end` after its last component.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut path: OsString = path.into();
    path.push(end);
    path.into()
}

/// Writes a file; an existing one is an error, because it may be a key in use.
fn write_new(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_precedes_the_last_key_component() {
        for (key, shown) in
            [("/example/KEY/1", "/example"), ("/a/KEY/b/KEY/1", "/a/KEY/b"), ("/KEY/1", "/")]
        {
            assert_eq!(identity(&key.parse().unwrap()).to_string(), shown, "{key}");
        }
        assert_eq!(identity(&key_name(&"/a/b".parse().unwrap())).to_string(), "/a/b");
    }
}
