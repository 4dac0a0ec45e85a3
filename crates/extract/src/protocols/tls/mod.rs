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
mod recent;
#[cfg(test)]
mod tests;

use hello::{ClientHello, ServerHello};
pub(crate) use recent::Recent;

pub(crate) use ciphers::number as cipher_number;
pub(crate) use hello::version_number;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const RECORD_HEADER: usize = 5;
/// Longest fragment of a record that is not encrypted.
const FRAGMENT_MAX: usize = 1 << 14;
const HANDSHAKE_HEADER: usize = 4;
/// The body of the shortest hello: version, random, an empty session id, a cipher suite and a compression method.
/// (ServerHellos of drafts of TLS 1.3 lack some of it, but have extensions.)
const BODY_MIN: usize = 38;

/// The protocol that carries a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TLS over TCP.
    Tls,
    /// QUIC, which carries handshake messages of TLS 1.3 without records.
    Quic,
    /// DTLS over UDP.
    Dtls,
}

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

/// Whether a handshake message that begins with these bytes can be a hello.
fn is_possible(message: &[u8]) -> bool {
    let byte = |at: usize, is: fn(u8) -> bool| message.get(at).is_none_or(|&byte| is(byte));
    let len = message.first_chunk::<HANDSHAKE_HEADER>().map(|&[_, a, b, c]| length([a, b, c]));
    // Drafts of TLS 1.3 have the version 0x7f__ in their ServerHellos.
    byte(0, |kind| matches!(kind, CLIENT_HELLO | SERVER_HELLO))
        && len.is_none_or(|len| (BODY_MIN..=usize::from(u16::MAX)).contains(&len))
        && byte(4, |major| matches!(major, 3 | 0x7f))
}

fn length([high, middle, low]: [u8; 3]) -> usize {
    u32::from_be_bytes([0, high, middle, low]) as usize
}

/// The type and the body of a handshake message; `None`: it is not complete.
fn split(message: &[u8]) -> Option<(u8, &[u8])> {
    let (&[kind, a, b, c], rest) = message.split_first_chunk::<HANDSHAKE_HEADER>()?;
    Some((kind, rest.get(..length([a, b, c]))?))
}

/// Passes on a hello.
fn message(
    kind: u8,
    body: &[u8],
    transport: Transport,
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<Progress, Unread> {
    let hello = Hello::new(kind, body, transport)?;
    found(Kind::Protocol, if transport == Transport::Dtls { b"dtls" } else { b"tls" });
    hello.facts(transport, recent, found)?;
    Ok(Progress::Done)
}

/// Passes on the facts of one complete handshake message, except its [`Kind::Protocol`].
///
/// # Errors
/// It is not a hello, contradicts itself, or has too many values; then some were passed on.
pub(crate) fn handshake(
    message: &[u8],
    transport: Transport,
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<(), Unread> {
    let (kind, body) = split(message).ok_or(Unread::Malformed)?;
    Hello::new(kind, body, transport)?.facts(transport, recent, found)
}

enum Hello<'a> {
    Client(ClientHello<'a>),
    Server(ServerHello<'a>),
}

impl<'a> Hello<'a> {
    fn new(kind: u8, body: &'a [u8], transport: Transport) -> Result<Self, Unread> {
        match kind {
            CLIENT_HELLO => Ok(Self::Client(ClientHello::new(body, transport)?)),
            SERVER_HELLO => Ok(Self::Server(ServerHello::new(body)?)),
            _ => Err(Unread::Malformed),
        }
    }

    fn facts(
        &self,
        transport: Transport,
        recent: &mut Recent,
        found: Found<'_>,
    ) -> Result<(), Unread> {
        match self {
            Self::Client(hello) => client(hello, transport, recent, found),
            Self::Server(hello) => {
                server(hello, recent, found);
                Ok(())
            }
        }
    }
}

fn client(
    hello: &ClientHello<'_>,
    transport: Transport,
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<(), Unread> {
    found(Kind::TlsKind, b"client");
    hello.server_names().for_each(|name| found(Kind::TlsServerName, name));
    found(Kind::TlsVersion, hello::version_name(hello.newest_version()).as_bytes());
    hello.extensions.application_protocols().for_each(|name| found(Kind::TlsAlpn, name));
    let digests = recent.client(hello);
    found(Kind::Ja3, &digests.ja3);
    found(Kind::Ja4, &fingerprint::ja4(hello, &digests, transport)?);
    Ok(())
}

fn server(hello: &ServerHello<'_>, recent: &mut Recent, found: Found<'_>) {
    found(Kind::TlsKind, b"server");
    found(Kind::TlsVersion, hello::version_name(hello.selected_version()).as_bytes());
    match ciphers::name(hello.cipher) {
        Some(name) => found(Kind::TlsCipher, name.as_bytes()),
        None => found(Kind::TlsCipher, format!("0x{:04x}", hello.cipher).as_bytes()),
    }
    hello.extensions.application_protocols().for_each(|name| found(Kind::TlsAlpn, name));
    found(Kind::Ja3s, &recent.server(hello));
}
