//! TLS over TCP (RFC 8446, RFC 5246; SSL 3.0: RFC 6101) and DTLS over UDP: the first hello of each side, the server's
//! certificates before TLS 1.3, and alerts that are not encrypted.
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
//! (a server, RFC 6066, section 3). What follows a client's hello in the segment is not read, and of what follows a
//! server's hello, the first message (`flight.rs`).

mod alert;
mod certificate;
mod certificates;
mod ciphers;
mod dtls;
mod fingerprint;
mod flight;
#[cfg(test)]
mod handshake_tests;
mod handshakes;
mod hello;
mod message;
mod recent;
mod records;
mod sslv2;
#[cfg(test)]
mod tests;

pub(crate) use fingerprint::hex;
pub(crate) use hello::{RETRY_REQUEST, Transport};
pub(crate) use message::handshake;
pub(crate) use recent::Recent;

use certificates::Certificates;
use flight::Flight;
use handshakes::{Handshake, Handshakes};
use message::{CLIENT_HELLO, HANDSHAKE, Hello, SERVER_HELLO, is_possible};
use records::{ALERT, Between, CHANGE_CIPHER_SPEC, Next, Record};

pub(crate) use ciphers::number as cipher_number;
pub(crate) use hello::version_number;

use crate::opening::{Bytes, LOOKED_AT, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

pub(crate) struct Tls;

impl Extractor for Tls {
    const TCP: &'static [Opening] = &[
        Opening {
            first: Bytes::range(CHANGE_CIPHER_SPEC, HANDSHAKE),
            third: Bytes::range(0, 4),
            // The type of the hello, the change of cipher spec, or the level of the alert.
            sixth: Bytes::of(&[CLIENT_HELLO, SERVER_HELLO]),
            ..Opening::ANY
        },
        sslv2::OPENING,
    ];
    const UDP: &'static [Opening] = &[dtls::OPENING];

    type State = State;

    fn read(
        state: &mut State,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        const TCP: u8 = 6;
        if payload.record.protocol == TCP {
            state.segment(payload, found)
        } else {
            state.fragments.datagram(payload, &mut state.recent, found)
        }
    }
}

/// Hellos of DTLS in fragments, handshakes over TCP, recent certificates, and fingerprints of recent hellos.
pub(crate) struct State {
    fragments: dtls::Fragments,
    handshakes: Handshakes,
    certificates: Certificates,
    recent: Recent,
}

impl crate::State for State {
    fn new(memory: usize) -> Self {
        Self {
            fragments: dtls::Fragments::new(memory / 4),
            handshakes: Handshakes::new(memory / 4),
            certificates: Certificates::new(memory / 4),
            recent: Recent::new(memory / 4),
        }
    }

    fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        self.fragments.dropped(end, count);
        self.handshakes.dropped(end, count);
    }

    fn turn(&mut self) {
        self.fragments.turn();
        self.handshakes.turn();
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.fragments.memory() + self.handshakes.memory() + self.certificates.memory()
    }
}

impl State {
    /// Reads the hello that a segment, or a stream of several, begins with; or what follows a server's hello that was read.
    fn segment(&mut self, payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let Payload { record, bytes, sequence } = *payload;
        if let Some((handshake, inside)) = self.handshakes.resume(record, sequence) {
            return self.flight(payload, Between { at: 0, inside }, handshake, found);
        }
        if bytes.len() >= LOOKED_AT && bytes.first().is_some_and(|first| first & 0x80 != 0) {
            let version = match sslv2::version(bytes) {
                Ok(version) => version,
                Err(progress) => return Ok(progress),
            };
            found(Kind::Protocol, b"tls");
            found(Kind::TlsKind, b"client");
            found(Kind::TlsClientVersion, hello::version_name(version).as_bytes());
            self.handshakes.begin(record, None);
            return Ok(Progress::Done);
        }
        self.records(payload, found)
    }

    /// Reads alerts and a hello.
    fn records(&mut self, payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let bytes = payload.bytes;
        let mut at = 0;
        // The position behind the last alert.
        let mut read = None;
        let other = |read: Option<usize>| Ok(read.map_or(Progress::Other, |_| Progress::Done));
        let more = |read: Option<usize>| Ok(Progress::More(read.unwrap_or(0)));
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let record = match Record::read(rest) {
                Ok(record) => record,
                // What precedes a hello may be alone in its segment.
                Err(Progress::More(_)) if !rest.is_empty() => return more(read),
                Err(_) => return other(read),
            };
            if let Some(description) = alert::description(&record) {
                self.alert(payload, description, found);
                at = bytes.len() - record.rest.len();
                read = Some(at);
                continue;
            }
            match (record.kind, record.fragment) {
                (HANDSHAKE, _) => break,
                (CHANGE_CIPHER_SPEC, [1]) if !record.cut => at = bytes.len() - record.rest.len(),
                (CHANGE_CIPHER_SPEC, []) if record.len == 1 => return more(read),
                (ALERT, []) | (ALERT, [1 | 2]) if record.len == 2 => return more(read),
                _ => return other(read),
            }
        }
        let message = match records::next(bytes, Between { at, inside: 0 }, is_possible)? {
            Next::Message(message) => message,
            Next::Cut => return more(read),
            Next::Other => return other(read),
        };
        let (kind, body) = message.split()?;
        let hello = Hello::new(kind, body, Transport::Tls)?;
        found(Kind::Protocol, b"tls");
        hello.facts(Transport::Tls, &mut self.recent, found)?;
        let server = match hello {
            Hello::Client(hello) => {
                self.handshakes.begin(payload.record, Some(&hello));
                return Ok(Progress::Done);
            }
            Hello::Server(server) => server,
        };
        let handshake = self.handshakes.take(payload.record).unwrap_or_default();
        if server.encrypts() {
            return Ok(Progress::Done);
        }
        if let Some(how) = handshake.resumption(&server) {
            found(Kind::TlsResumption, how.as_bytes());
            return Ok(Progress::Done);
        }
        self.flight(payload, message.end, handshake, found)
    }

    /// Reads what follows a server's hello, from a place on.
    fn flight(
        &mut self,
        payload: &Payload<'_>,
        place: Between,
        handshake: Handshake,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        let certificates = &mut self.certificates;
        match flight::read(payload, place, &handshake, certificates, found)? {
            Flight::Over => Ok(Progress::Done),
            Flight::Waits => {
                self.handshakes.wait(payload.record, handshake, payload.sequence, place);
                Ok(Progress::More(place.at))
            }
            Flight::Alert => {
                let mut rest = payload.bytes.get(place.at..).unwrap_or_default();
                while let Ok(record) = Record::read(rest)
                    && let Some(description) = alert::description(&record)
                {
                    self.alert(payload, description, found);
                    rest = record.rest;
                }
                Ok(Progress::Done)
            }
        }
    }

    /// Passes on an alert.
    fn alert(&self, payload: &Payload<'_>, description: u8, found: Found<'_>) {
        found(Kind::Protocol, b"tls");
        found(Kind::TlsKind, b"alert");
        let client = self.handshakes.is_from_client(payload.record);
        let kind = Kind::TlsServerAlerts.of_side(client);
        found(kind, alert::name(description).as_bytes());
    }
}
