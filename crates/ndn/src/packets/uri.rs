//! Names as URIs, for example `/ringtap/seg=7`.
//!
//! Generic components are text; `%41` escapes a byte. A component of dots alone, or an empty one,
//! is written with three more dots. Components of other types are `TYPE=text`, or one of
//! `sha256digest=HEX`, `params-sha256=HEX`, `seg=N`, `off=N`, `v=N`, `t=N`, `seq=N`.

use std::fmt;
use std::str::FromStr;

use crate::packets::write::{put, put_value};
use crate::packets::{Component, Name, component};

/// Component types that are written as a number.
const NUMBERED: [(&str, u32); 5] = [
    ("seg", component::SEGMENT),
    ("off", component::BYTE_OFFSET),
    ("v", component::VERSION),
    ("t", component::TIMESTAMP),
    ("seq", component::SEQUENCE),
];

/// Component types that are written as a hexadecimal digest.
const DIGESTS: [(&str, u32); 2] =
    [("sha256digest", component::IMPLICIT_DIGEST), ("params-sha256", component::PARAMETERS_DIGEST)];

/// A name that owns its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameBuf(Vec<u8>);

/// The text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name component {component:?}: use /text/of/names, %41, 54=%03 or seg=7")]
pub struct NameError {
    /// The invalid component.
    pub component: String,
}

impl NameBuf {
    /// Copies a name.
    pub fn of(name: Name<'_>) -> Self {
        Self(name.as_bytes().to_vec())
    }

    /// The name as a view.
    pub fn as_name(&self) -> Name<'_> {
        // The bytes are always complete, checked components.
        Name::read(&self.0).unwrap_or(Name::EMPTY)
    }

    /// The bytes of the components.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends a generic component.
    pub fn push(&mut self, value: &[u8]) {
        put(&mut self.0, component::GENERIC, value);
    }

    /// Appends a component that holds a number, such as a segment or sequence number. `kind` is the
    /// component's type.
    pub fn push_number(&mut self, kind: u32, number: u64) {
        put_value(&mut self.0, kind.clamp(1, 0xffff), number);
    }

    /// Truncates the name to its first `len` bytes, which must be complete components.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl FromStr for NameBuf {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let text = text.strip_prefix("ndn:").unwrap_or(text);
        let mut name = Self::default();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            let invalid = || NameError { component: part.into() };
            let (kind, value) = parse_component(part).ok_or_else(invalid)?;
            put(&mut name.0, kind, &value);
        }
        Name::read(&name.0).map_err(|_| NameError { component: text.into() })?;
        Ok(name)
    }
}

/// The type and value of a component.
fn parse_component(part: &str) -> Option<(u32, Vec<u8>)> {
    let Some((kind, text)) = part.split_once('=') else {
        return Some((component::GENERIC, unescape(part)?));
    };
    if let Some(&(_, number)) = NUMBERED.iter().find(|(name, _)| *name == kind) {
        let mut value = Vec::new();
        put_value(&mut value, number, text.parse().ok()?);
        return Some((number, value.split_off(2)));
    }
    if let Some(&(_, number)) = DIGESTS.iter().find(|(name, _)| *name == kind) {
        let digit = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
        let value = (0..text.len()).step_by(2).map(digit).collect::<Option<Vec<_>>>()?;
        return Some((number, value));
    }
    let kind = kind.parse().ok().filter(|kind| (1..=0xffff).contains(kind))?;
    Some((kind, unescape(text)?))
}

/// The bytes of a component's text; `None` if it is malformed.
fn unescape(text: &str) -> Option<Vec<u8>> {
    if text.bytes().all(|byte| byte == b'.') {
        return Some(text.get(3..)?.into());
    }
    let mut bytes = text.bytes();
    let mut value = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        value.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    Some(value)
}

impl fmt::Display for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_name().fmt(f)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("/");
        }
        self.components().try_for_each(|component| {
            f.write_str("/")?;
            write_component(&component, f)
        })
    }
}

fn write_component(component: &Component<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some((name, _)) = DIGESTS.iter().find(|(_, kind)| *kind == component.kind) {
        write!(f, "{name}=")?;
        return component.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
    }
    if let Some((name, _)) = NUMBERED.iter().find(|(_, kind)| *kind == component.kind)
        && let Ok(number) = component.number()
        && component.value.len() == crate::packets::write::value_len(number)
    {
        return write!(f, "{name}={number}");
    }
    if component.kind != component::GENERIC {
        write!(f, "{}=", component.kind)?;
    }
    if component.value.iter().all(|&byte| byte == b'.') {
        f.write_str("...")?;
    }
    component.value.iter().try_for_each(|&byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            write!(f, "{}", char::from(byte))
        }
        _ => write!(f, "%{byte:02X}"),
    })
}
