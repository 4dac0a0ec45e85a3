//! Labels of applications, and what lists of them have in common.

use std::fmt;

/// The longest label, in bytes.
pub const LABEL_MAX: usize = 30;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// A label of an application: up to 30 printable characters of ASCII. Labels are ordered as texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The rest is zero.
    bytes: [u8; LABEL_MAX],
    len: u8,
}

impl Label {
    /// No label: it has no text, and is before all others.
    pub const EMPTY: Self = Self { bytes: [0; LABEL_MAX], len: 0 };

    /// The label with this text; `None` if it is empty, too long, or has other characters than printable ones of ASCII.
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; LABEL_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let usable = !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
        usable.then_some(Self { bytes, len: text.len() as u8 })
    }

    /// The label with a text of the program.
    pub(crate) const fn of(text: &str) -> Self {
        let text = text.as_bytes();
        let (mut bytes, mut letter) = ([0; LABEL_MAX], 0);
        while letter < text.len() {
            bytes[letter] = text[letter];
            letter += 1;
        }
        Self { bytes, len: text.len() as u8 }
    }

    /// The first eight characters as a number, for hashes.
    #[inline]
    pub fn head(&self) -> u64 {
        self.bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head))
    }

    /// The text, and zeros behind it.
    #[inline]
    pub const fn padded(&self) -> &[u8; LABEL_MAX] {
        &self.bytes
    }

    /// Octets of the text.
    #[inline]
    pub const fn octets(&self) -> u8 {
        self.len
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// What a label was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplicationReason {
    /// A name in the list.
    Name,
    /// A protocol recognised in the payloads.
    Content,
    /// A port.
    Port,
}

impl ApplicationReason {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Content => "content",
            Self::Port => "port",
        }
    }
}

/// The application of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Application {
    /// Its label.
    pub label: Label,
    /// What the label was derived from.
    pub reason: ApplicationReason,
}

/// A list of names that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidNames {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong there, and the remedy.
    pub(crate) why: String,
}

impl fmt::Display for InvalidNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for InvalidNames {}

/// A port with its protocol, as a key.
pub(crate) const fn key(protocol: u8, port: u16) -> u32 {
    port as u32 | (protocol as u32) << 16
}
