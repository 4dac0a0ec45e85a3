//! The keys of commands in the configuration: `[[anchor]]`.

use std::path::PathBuf;
use std::str::FromStr;

use ringtap_ndn::packets::NameBuf;
use ringtap_ndn::packets::signature::{SignatureType, VerifyingKey};
use ringtap_ndn::relay::{ANCHORS_MAX, Anchor, Module};
use serde::Deserialize;

use super::values::Parsed;
use crate::keys::{self, PublicKey};

/// A key as it is configured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnchorRow {
    /// By default, the name in the certificate.
    name: Option<Parsed<NameBuf>>,
    #[serde(rename = "type")]
    of: Parsed<Type>,
    pub(super) key: Option<PathBuf>,
    #[serde(default = "rib")]
    allow: Vec<Parsed<ModuleName>>,
    prefix: Option<Parsed<NameBuf>>,
}

fn rib() -> Vec<Parsed<ModuleName>> {
    vec![Parsed(ModuleName(Module::Rib))]
}

struct Type(SignatureType);

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = SignatureType::ALL.into_iter().find(|one| one.name() == text);
        known
            .map(Self)
            .ok_or_else(|| format!("invalid type {text:?}: use ed25519, ecdsa, hmac or digest"))
    }
}

struct ModuleName(Module);

impl FromStr for ModuleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Module::ALL.into_iter().find(|module| module.name() == text);
        known.map(Self).ok_or_else(|| {
            let names = Module::ALL.map(Module::name).join(", ");
            format!("unknown module {text:?}: use {names}")
        })
    }
}

/// Reads the key files of all anchors.
pub(super) fn read(rows: Vec<AnchorRow>) -> Result<Vec<Anchor>, String> {
    if rows.len() > ANCHORS_MAX {
        return Err(format!("{} anchors: use at most {ANCHORS_MAX}", rows.len()));
    }
    let mut anchors: Vec<Anchor> = Vec::new();
    for row in rows {
        let anchor = read_one(row)?;
        let of = anchor.key.signature_type();
        let is_same = |one: &Anchor| one.name == anchor.name && one.key.signature_type() == of;
        if anchors.iter().any(is_same) {
            if of == SignatureType::Digest {
                return Err("two anchors of type digest: use one, with all modules in allow".into());
            }
            return Err(format!("two anchors {} of type {}", anchor.name, of.name()));
        }
        anchors.push(anchor);
    }
    Ok(anchors)
}

fn read_one(row: AnchorRow) -> Result<Anchor, String> {
    let Type(of) = row.of.0;
    let shown = || {
        let name = row.name.as_ref().map(|name| format!(" {}", name.0));
        format!("[[anchor]]{}", name.unwrap_or_default())
    };
    let path = row.key.as_deref();
    let need_path = || path.ok_or_else(|| format!("{}: missing key", shown()));
    let in_words = |error: anyhow::Error| format!("{}: {error:#}", shown());
    let unnamed = |key| PublicKey { key, name: None, valid_ms: (0, u64::MAX) };
    let PublicKey { key, name, valid_ms } = match of {
        SignatureType::Digest if path.is_some() => {
            return Err(format!("{}: a digest has no key", shown()));
        }
        SignatureType::Digest if row.name.is_some() => {
            return Err(format!("{}: a digest has no name: remove name", shown()));
        }
        SignatureType::Digest => {
            unnamed(VerifyingKey::digest().map_err(|error| in_words(error.into()))?)
        }
        SignatureType::Hmac => unnamed(keys::hmac(need_path()?).map_err(in_words)?),
        _ => keys::public(need_path()?).map_err(in_words)?,
    };
    if key.signature_type() != of {
        let found = key.signature_type().name();
        return Err(format!("{}: a key of type {found}, not {}", shown(), of.name()));
    }
    let is_digest = of == SignatureType::Digest;
    let name = row.name.map(|name| name.0).or(name).or(is_digest.then(NameBuf::default));
    let name = name.ok_or_else(|| "[[anchor]]: missing name".to_owned())?;
    if name.as_bytes().is_empty() && !is_digest {
        return Err("[[anchor]]: invalid name /: use the name of the key".into());
    }
    Ok(Anchor {
        name,
        key,
        allow: row.allow.into_iter().map(|module| module.0.0).collect(),
        prefix: row.prefix.map(|prefix| prefix.0).unwrap_or_default(),
        valid_ms,
    })
}
