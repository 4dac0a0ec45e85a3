//! Records, and handshake messages in them.
//!
//! ```text
//! records     | header | message, | header | rest of it, message … |
//! ```
//!
//! A message may continue in further records, and a record may have several messages.

use std::borrow::Cow;

use crate::protocols::tls::message::{HANDSHAKE, HANDSHAKE_HEADER, length};
use crate::{Progress, Unread};

pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const ALERT: u8 = 21;

const RECORD_HEADER: usize = 5;
/// Longest fragment of a record that is not encrypted.
const FRAGMENT_MAX: usize = 1 << 14;

/// A record of the version 3.x, as SSL 3.0 and all versions of TLS have it.
pub(super) struct Record<'a> {
    pub(super) kind: u8,
    /// The captured bytes of the fragment.
    pub(super) fragment: &'a [u8],
    /// The length of the fragment.
    pub(super) len: usize,
    /// Whether that is more than there is.
    pub(super) cut: bool,
    pub(super) rest: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`.
    ///
    /// # Errors
    /// `More`: the header is not complete. `Other`: it is not a record.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Progress> {
        let kind = bytes.first().is_none_or(|kind| (CHANGE_CIPHER_SPEC..=HANDSHAKE).contains(kind));
        if !kind || !b"\x03".starts_with(bytes.get(1..2).unwrap_or_default()) {
            return Err(Progress::Other);
        }
        let Some((&[kind, _, minor, high, low], rest)) = bytes.split_first_chunk::<RECORD_HEADER>()
        else {
            return Err(Progress::More(0));
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if minor > 4 || len == 0 || len > FRAGMENT_MAX {
            return Err(Progress::Other);
        }
        let (fragment, rest) = rest.split_at(len.min(rest.len()));
        Ok(Self { kind, fragment, len, cut: fragment.len() < len, rest })
    }
}

/// A place between two handshake messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Between {
    /// The position in the bytes.
    pub(super) at: usize,
    /// The number of bytes from there on that belong to a record whose header is before.
    pub(super) inside: usize,
}

/// A complete handshake message.
pub(super) struct Message<'a> {
    bytes: Cow<'a, [u8]>,
    /// The place behind it.
    pub(super) end: Between,
}

impl Message<'_> {
    /// The type and the body.
    pub(super) fn split(&self) -> Result<(u8, &[u8]), Unread> {
        super::message::split(&self.bytes).ok_or(Unread::Malformed)
    }
}

/// What is at a place.
pub(super) enum Next<'a> {
    Message(Message<'a>),
    /// The message is not complete.
    Cut,
    /// No handshake record begins there, or the first bytes are not possible.
    Other,
}

/// Reads the handshake message at a place; `is_possible` is asked whether a message can begin with these bytes.
///
/// # Errors
/// Another record is within the message.
pub(super) fn next<'a>(
    bytes: &'a [u8],
    place: Between,
    is_possible: fn(&[u8]) -> bool,
) -> Result<Next<'a>, Unread> {
    let Between { mut at, mut inside } = place;
    let mut joined: Cow<'a, [u8]> = Cow::default();
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        if inside == 0 {
            match Record::read(rest) {
                Ok(record) if record.kind == HANDSHAKE => {
                    inside = record.len;
                    at += RECORD_HEADER;
                    continue;
                }
                Err(Progress::More(_)) => return Ok(Next::Cut),
                _ if joined.is_empty() => return Ok(Next::Other),
                // RFC 8446, section 5.1: "Handshake messages MUST NOT be interleaved with other record types."
                _ => return Err(Unread::Malformed),
            }
        }
        let piece = &rest[..inside.min(rest.len())];
        if joined.is_empty() {
            joined = Cow::Borrowed(piece);
        } else {
            joined.to_mut().extend_from_slice(piece);
        }
        if !is_possible(&joined) {
            return Ok(Next::Other);
        }
        let header = joined.first_chunk::<HANDSHAKE_HEADER>();
        let whole = header.map(|&[_, a, b, c]| HANDSHAKE_HEADER + length([a, b, c]));
        if let Some(behind) = whole.and_then(|whole| joined.len().checked_sub(whole)) {
            let taken = piece.len() - behind;
            let end = Between { at: at + taken, inside: inside - taken };
            return Ok(Next::Message(Message { bytes: joined, end }));
        }
        if piece.len() < inside {
            return Ok(Next::Cut);
        }
        at += inside;
        inside = 0;
    }
}
