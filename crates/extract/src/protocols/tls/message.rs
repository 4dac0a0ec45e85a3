//! Handshake messages: hellos and their facts.

use super::hello::{self, ClientHello, ServerHello, Transport};
use super::recent::Recent;
use super::{ciphers, fingerprint};
use crate::text::Text;
use crate::{Found, Kind, Progress, Unread};

pub(super) const HANDSHAKE_HEADER: usize = 4;
/// The body of the shortest hello: version, random, an empty session id, a cipher suite and a compression method.
/// (ServerHellos of drafts of TLS 1.3 lack some of it, but have extensions.)
const BODY_MIN: usize = 38;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;

/// Whether a handshake message that begins with these bytes can be a hello.
pub(super) fn is_possible(message: &[u8]) -> bool {
    let byte = |at: usize, is: fn(u8) -> bool| message.get(at).is_none_or(|&byte| is(byte));
    let len = message.first_chunk::<HANDSHAKE_HEADER>().map(|&[_, a, b, c]| length([a, b, c]));
    // Drafts of TLS 1.3 have the version 0x7f__ in their ServerHellos.
    byte(0, |kind| matches!(kind, CLIENT_HELLO | SERVER_HELLO))
        && len.is_none_or(|len| (BODY_MIN..=usize::from(u16::MAX)).contains(&len))
        && byte(4, |major| matches!(major, 3 | 0x7f))
}

pub(super) fn length([high, middle, low]: [u8; 3]) -> usize {
    u32::from_be_bytes([0, high, middle, low]) as usize
}

/// The type and the body of a handshake message; `None`: it is not complete.
pub(super) fn split(message: &[u8]) -> Option<(u8, &[u8])> {
    let (&[kind, a, b, c], rest) = message.split_first_chunk::<HANDSHAKE_HEADER>()?;
    Some((kind, rest.get(..length([a, b, c]))?))
}

/// Passes on a hello of DTLS.
pub(super) fn datagram(
    kind: u8,
    body: &[u8],
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<Progress, Unread> {
    let hello = Hello::new(kind, body, Transport::Dtls)?;
    found(Kind::Protocol, b"dtls");
    hello.facts(Transport::Dtls, recent, found)?;
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

pub(super) enum Hello<'a> {
    Client(ClientHello<'a>),
    Server(ServerHello<'a>),
}

impl<'a> Hello<'a> {
    /// The hello with this type and body.
    pub(super) fn new(kind: u8, body: &'a [u8], transport: Transport) -> Result<Self, Unread> {
        match kind {
            CLIENT_HELLO => Ok(Self::Client(ClientHello::new(body, transport)?)),
            SERVER_HELLO => Ok(Self::Server(ServerHello::new(body)?)),
            _ => Err(Unread::Malformed),
        }
    }

    /// Passes on its facts, except [`Kind::Protocol`].
    pub(super) fn facts(
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
    found(Kind::TlsClientVersion, hello::version_name(hello.newest_version()).as_bytes());
    hello.extensions.application_protocols().for_each(|name| found(Kind::TlsAlpn, name));
    if let Some(id) = hello.encrypted_hello() {
        found(Kind::TlsEchConfigId, Text::number(id.into()).bytes());
    }
    let digests = recent.client(hello);
    found(Kind::Ja3, &digests.ja3);
    found(Kind::Ja4, &fingerprint::ja4(hello, &digests, transport)?);
    Ok(())
}

fn server(hello: &ServerHello<'_>, recent: &mut Recent, found: Found<'_>) {
    found(Kind::TlsKind, if hello.is_retry { b"retry" } else { b"server" });
    found(Kind::TlsVersion, hello::version_name(hello.selected_version()).as_bytes());
    match ciphers::name(hello.cipher) {
        Some(name) => found(Kind::TlsCipher, name.as_bytes()),
        None => found(Kind::TlsCipher, format!("0x{:04x}", hello.cipher).as_bytes()),
    }
    hello.extensions.application_protocols().for_each(|name| found(Kind::TlsAlpn, name));
    if hello.selects_key() {
        found(Kind::TlsResumption, b"psk");
    }
    found(Kind::Ja3s, &recent.server(hello));
}
