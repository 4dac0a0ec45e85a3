//! TLS over TCP (RFC 8446, RFC 5246; SSL 3.0: RFC 6101) and DTLS over UDP: the first hello of each side.
//!
//! ```text
//! record     0      1         3        5
//!            | type | version | length | fragment … |
//! handshake  0      1        4
//!            | type | length | body: a ClientHello or ServerHello |
//! ```
//!
//! A hello is recognised by its content on any port, so that one after STARTTLS is found, too. It may continue in
//! further segments, which the stream of the connection joins, and in further records, whose fragments are joined here.
//! Before it there may be a change of cipher spec (a client that repeats its hello, RFC 8446, appendix D.4) or a warning
//! (a server, RFC 6066, section 3). What follows it in the segment is not read.

mod ciphers;
mod dtls;
mod fingerprint;
mod hello;
mod message;
mod recent;
#[cfg(test)]
mod tests;

pub(crate) use hello::Transport;
pub(crate) use message::handshake;
pub(crate) use recent::Recent;

use message::{CLIENT_HELLO, HANDSHAKE, SERVER_HELLO, is_possible, message, split};

pub(crate) use ciphers::number as cipher_number;
pub(crate) use hello::version_number;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Payload, Progress, Unread};

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;

const RECORD_HEADER: usize = 5;
/// Longest fragment of a record that is not encrypted.
const FRAGMENT_MAX: usize = 1 << 14;

pub(crate) struct Tls;

impl Extractor for Tls {
    const TCP: &'static [Opening] = &[Opening {
        first: Bytes::range(CHANGE_CIPHER_SPEC, HANDSHAKE),
        third: Bytes::range(0, 4),
        // The type of the hello, the change of cipher spec, or the level of the alert.
        sixth: Bytes::of(&[CLIENT_HELLO, SERVER_HELLO]),
        ..Opening::ANY
    }];
    const UDP: &'static [Opening] = &[dtls::OPENING];

    type State = State;

    fn read(
        state: &mut State,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        const TCP: u8 = 6;
        if payload.record.protocol == TCP {
            segment(payload.bytes, &mut state.recent, found)
        } else {
            state.fragments.datagram(payload, &mut state.recent, found)
        }
    }
}

/// Hellos of DTLS in fragments, and fingerprints of recent hellos.
pub(crate) struct State {
    fragments: dtls::Fragments,
    recent: Recent,
}

impl crate::State for State {
    fn new(memory: usize) -> Self {
        Self { fragments: dtls::Fragments::new(memory), recent: Recent::new() }
    }

    fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        self.fragments.dropped(end, count);
    }

    fn turn(&mut self) {
        self.fragments.turn();
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.fragments.memory()
    }
}

/// Reads the hello that a segment, or a stream of several, begins with.
fn segment(bytes: &[u8], recent: &mut Recent, found: Found<'_>) -> Result<Progress, Unread> {
    let mut rest = bytes;
    let first = loop {
        let record = match Record::read(rest) {
            Ok(record) => record,
            // What precedes a hello may be alone in its segment.
            Err(progress) if !rest.is_empty() => return Ok(progress),
            Err(_) => return Ok(Progress::Other),
        };
        match (record.kind, record.fragment) {
            (HANDSHAKE, _) => break record,
            (CHANGE_CIPHER_SPEC, [1]) | (ALERT, [_, _]) if !record.cut => rest = record.rest,
            (CHANGE_CIPHER_SPEC, []) if record.len == 1 => return Ok(Progress::More(0)),
            (ALERT, _) if record.cut && record.len == 2 => return Ok(Progress::More(0)),
            _ => return Ok(Progress::Other),
        }
    };
    if !is_possible(first.fragment) {
        return Ok(Progress::Other);
    }
    if let Some((kind, body)) = split(first.fragment) {
        return message(kind, body, Transport::Tls, recent, found);
    }
    if first.cut {
        return Ok(Progress::More(0));
    }
    let mut joined = first.fragment.to_vec();
    rest = first.rest;
    loop {
        let record = match Record::read(rest) {
            Ok(record) if record.kind == HANDSHAKE => record,
            Err(Progress::More(_)) => return Ok(Progress::More(0)),
            // RFC 8446, section 5.1: "Handshake messages MUST NOT be interleaved with other record types."
            _ => return Err(Unread::Malformed),
        };
        joined.extend_from_slice(record.fragment);
        if !is_possible(&joined) {
            return Ok(Progress::Other);
        }
        if let Some((kind, body)) = split(&joined) {
            return message(kind, body, Transport::Tls, recent, found);
        }
        if record.cut {
            return Ok(Progress::More(0));
        }
        rest = record.rest;
    }
}

/// A record of the version 3.x, as SSL 3.0 and all versions of TLS have it.
struct Record<'a> {
    kind: u8,
    /// The captured bytes of the fragment.
    fragment: &'a [u8],
    /// The length of the fragment.
    len: usize,
    /// Whether that is more than there is.
    cut: bool,
    rest: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the beginning of `bytes`.
    ///
    /// # Errors
    /// `More`: the header is not complete. `Other`: it is not a record.
    fn read(bytes: &'a [u8]) -> Result<Self, Progress> {
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
