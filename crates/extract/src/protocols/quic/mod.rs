//! QUIC (RFC 9000, 9001, 9369, and earlier versions): the hellos in Initial packets.
//!
//! ```text
//! datagram | Initial | Initial | Handshake | …     header.rs: versions, types, lengths
//!               └─ keys of the first connection ID  keys.rs, packet.rs
//!               └─ CRYPTO frames ─▶ hello           crypto.rs, connections.rs
//!                                     └─ TLS handshake parser
//! ```
//!
//! The keys of Initial packets follow from the connection identifier to which the client sent its first one (RFC 9001,
//! section 5.2), so a reader of the packets can compute them. After a Retry, they follow from the identifier in it. Of
//! a connection whose first packets were not captured, the version alone is given.
//!
//! Google's versions before Q050 do not encrypt their hellos (google.rs).
//!
//! Invariant: a packet is read only if its authentication tag matches, and only such a packet changes a connection.

mod connections;
mod crypto;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod google;
mod header;
mod keys;
mod packet;
#[cfg(any(test, feature = "fuzz"))]
mod seal;
#[cfg(test)]
mod tests;

use ringtap_wire::{Flags, PacketRecord};

use self::connections::{Connection, Connections, Id, Unfinished};
use self::crypto::Crypto;
use self::header::{Family, Header, Start, Type, Version};
use self::keys::{Keys, Sender};
#[cfg(test)]
pub(crate) use self::seal::Plain;
use super::tls::{self, RETRY_REQUEST, Recent, Transport};
use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

/// Clients choose a first connection identifier of at least this length (RFC 9000, section 7.2).
const FIRST_ID_MIN: usize = 8;

/// Most Initial packets of a datagram that are read; more than two are unusual.
const INITIALS_MAX: u32 = 4;

pub(crate) struct Quic;

impl Extractor for Quic {
    const UDP: &'static [Opening] = &[
        Opening {
            first: Bytes::range(0x80, 0xff),
            // The second byte of the version: of 1, drafts and Version Negotiation; 2; Google's; Facebook's.
            third: Bytes::of(&[0x00, 0x33, 0x30, 0xce]),
            // The length of the connection identifier; in Google's Q044 and Q046, the lengths of both.
            sixth: Bytes::of(&[
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0x50,
                0x55,
            ]),
            ..Opening::ANY
        },
        // Google's first versions.
        Opening {
            first: Bytes::of(&[0x09, 0x0d, 0x19, 0x1d, 0x29, 0x2d, 0x39, 0x3d]),
            behind: Some((9, *b"Q0")),
            ..Opening::ANY
        },
    ];

    type State = State;

    fn read(
        state: &mut State,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        state.datagram(payload, found)
    }
}

/// The connections, and memory for decryption.
pub(crate) struct State {
    connections: Connections,
    scratch: Vec<u8>,
    /// Fingerprints of recent hellos.
    recent: Recent,
}

impl crate::State for State {
    fn new(memory: usize) -> Self {
        Self {
            connections: Connections::new(memory / 8 * 7),
            scratch: Vec::new(),
            recent: Recent::new(memory / 8),
        }
    }

    fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        self.connections.dropped(end, count);
    }

    fn turn(&mut self) {
        self.connections.turn();
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.connections.memory()
    }
}

/// An Initial packet.
struct Initial<'a> {
    record: &'a PacketRecord,
    /// From the header to the tag.
    bytes: &'a [u8],
    header: Header<'a>,
}

impl State {
    /// Reads the packets of a datagram. If several cannot be read, the reason is that of the first.
    fn datagram(&mut self, payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let record = payload.record;
        let is_cut = record.flags.0 & (Flags::TRUNCATED.0 | Flags::FRAGMENT.0) != 0;
        if let Some((version, message)) = google::hello(payload.bytes) {
            return self.google_hello(record, version, message, found).map(|()| Progress::Done);
        }
        let (mut rest, mut initials) = (payload.bytes, 0);
        loop {
            let is_first = rest.len() == payload.bytes.len();
            let (version, header) = match header::start(rest) {
                Start::Packet(header) => (header.version, Some(header)),
                Start::Broken(version) => (version, None),
                Start::Negotiation if is_first => {
                    begin("negotiation", found);
                    break;
                }
                Start::Unread(version) if is_first => {
                    self.version_alone(record, version, &[], found);
                    break;
                }
                Start::Other if is_first => return Ok(Progress::Other),
                // Padding, or a packet with a short header.
                _ => break,
            };
            // Of other packets than Initial ones, the header alone is read.
            let fits = |header: &Header<'_>| {
                let is_initial = header.kind == Type::Initial;
                header.end <= rest.len() || !is_initial && (is_cut || !is_first)
            };
            let header = header.filter(fits);
            let Some(header) = header else {
                if is_first && !header::has_fixed_bit(rest) {
                    return Ok(Progress::Other);
                }
                if is_first && is_cut {
                    self.version_alone(record, version, &[], found);
                }
                let why = if is_cut { Unread::Truncated } else { Unread::Malformed };
                return Err(why);
            };
            let end = header.end;
            match header.kind {
                Type::Initial => {
                    let initial = Initial { record, bytes: &rest[..end], header };
                    match self.initial(&initial, found) {
                        Ok(Progress::Other) if is_first => return Ok(Progress::Other),
                        Ok(_) => {}
                        // Keys take time: a datagram with one invalid packet is not read further.
                        Err(why) => return Err(why),
                    }
                    initials += 1;
                    if initials == INITIALS_MAX {
                        break;
                    }
                }
                Type::Retry if is_first => begin(version.name, found),
                Type::Handshake if is_first && header::has_fixed_bit(rest) => {
                    self.version_alone(record, version, header.destination, found);
                }
                _ => {}
            }
            match rest.get(end..) {
                Some(behind) if !behind.is_empty() => rest = behind,
                _ => break,
            }
        }
        Ok(Progress::Done)
    }

    /// Passes on the version of a connection of which no Initial packet of the client was read, once.
    fn version_alone(
        &mut self,
        record: &PacketRecord,
        version: &'static Version,
        destination: &[u8],
        found: Found<'_>,
    ) {
        if self.connections.find(record).is_none() {
            let from_client = may_be_first(record, destination);
            let sender = if from_client { Sender::Client } else { Sender::Server };
            self.connections.open(record, sender, version, None);
            begin(version.name, found);
        }
    }

    /// Passes on the first hello of a client of Google's versions; later ones repeat its name.
    fn google_hello(
        &mut self,
        record: &PacketRecord,
        version: &'static Version,
        message: &[u8],
        found: Found<'_>,
    ) -> Result<(), Unread> {
        let name = crypto::chlo_server_name(message)?;
        if self.connections.find(record).is_none() {
            self.connections.open(record, Sender::Client, version, None);
            chlo(version, name, found);
        }
        Ok(())
    }

    /// Reads an Initial packet with the keys of its connection, or else as the first one of a connection.
    fn initial(&mut self, initial: &Initial<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let Initial { record, bytes, header } = initial;
        let (version, number_at) = (header.version, header.number_at);
        let (mut is_known, mut is_after_retry, mut has_keys) = (false, false, false);
        if let Some((sender, connection)) = self.connections.find(record) {
            is_known = true;
            has_keys = connection.id.is_some();
            let from_client = sender == Sender::Client;
            let same_version = connection.version == version;
            // A client that starts again after Version Negotiation may keep its connection identifier.
            let restarts = from_client && !same_version && !connection.answered;
            is_after_retry =
                from_client && same_version && !connection.answered && header.token && has_keys;
            if let Some(id) = connection.id.filter(|_| !restarts) {
                let side = connection.side(sender, record).ok_or(Unread::TooMuch)?;
                if side.done && (!from_client || id.bytes() == header.destination) {
                    return Ok(Progress::Done);
                }
                let unfinished = side.unfinished.as_deref();
                let largest = unfinished.and_then(|own| own.largest);
                let keys = match unfinished.filter(|own| own.version == version) {
                    Some(own) => Some(own.keys.clone()),
                    None => Keys::new(version, id.bytes(), sender),
                };
                let opened = keys.as_ref().and_then(|keys| {
                    packet::open(bytes, number_at, keys, largest, &mut self.scratch)
                });
                if let (Some(keys), Some(opened)) = (keys, opened) {
                    let read = self.connections.change(record, sender, |connection| {
                        read(connection, sender, initial, keys, &opened, &mut self.recent, found)
                    });
                    return read.unwrap_or(Ok(())).map(|()| Progress::Done);
                }
            }
        }
        let keys = Keys::new(version, header.destination, Sender::Client);
        let opened = keys
            .as_ref()
            .and_then(|keys| packet::open(bytes, number_at, keys, None, &mut self.scratch));
        let (Some(keys), Some(opened)) = (keys, opened) else {
            if has_keys {
                return Err(Unread::Malformed);
            }
            if is_known {
                return Ok(Progress::Done);
            }
            if !header::has_fixed_bit(bytes) {
                return Ok(Progress::Other);
            }
            if may_be_first(record, header.destination) {
                return Err(Unread::Malformed);
            }
            self.version_alone(record, version, header.destination, found);
            return Ok(Progress::Done);
        };
        let id = Some(Id::of(header.destination));
        if !is_after_retry {
            self.connections.open(record, Sender::Client, version, id);
        }
        let read = self.connections.change(record, Sender::Client, |connection| {
            connection.id = id;
            read(connection, Sender::Client, initial, keys, &opened, &mut self.recent, found)
        });
        read.unwrap_or(Ok(())).map(|()| Progress::Done)
    }
}

/// Whether a packet can be the first one of a client, by its ports and the length of the identifier.
fn may_be_first(record: &PacketRecord, destination: &[u8]) -> bool {
    destination.len() >= FIRST_ID_MIN && record.src_port >= record.dst_port
}

/// Begins a message.
fn begin(version: &str, found: Found<'_>) {
    found(Kind::Protocol, b"quic");
    found(Kind::QuicVersion, version.as_bytes());
}

/// Passes on a client hello of Google's handshake.
fn chlo(version: &Version, name: Option<&[u8]>, found: Found<'_>) {
    begin(version.name, found);
    found(Kind::TlsKind, b"client");
    name.into_iter().for_each(|name| found(Kind::TlsServerName, name));
}

/// Reads the frames of a packet, and the hellos that are complete by them.
fn read(
    connection: &mut Connection,
    sender: Sender,
    initial: &Initial<'_>,
    keys: Keys,
    opened: &packet::Opened<'_>,
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<(), Unread> {
    let version = initial.header.version;
    connection.answered |= sender == Sender::Server;
    let side = connection.side(sender, initial.record).ok_or(Unread::TooMuch)?;
    // The server's part of Google's handshake has no names.
    side.done |= version.family == Family::GoogleChlo && sender == Sender::Server;
    if side.done {
        return Ok(());
    }
    let read = u64::from(side.read);
    let mut own = side.unfinished.take().unwrap_or_else(|| {
        let crypto = Crypto::from(read);
        Box::new(Unfinished { version, keys: keys.clone(), largest: None, crypto })
    });
    own.version = version;
    own.keys = keys;
    own.largest = own.largest.max(Some(opened.number));
    let crypto = &mut own.crypto;
    let mut result =
        crypto::frames(version.family, opened.payload, &mut |at, data| crypto.add(at, data));
    let mut asks_again = false;
    side.done = result == Err(Unread::TooMuch);
    while !side.done {
        let message = match crypto.message(version.family) {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(why) => {
                result = result.and(Err(why));
                side.done = true;
                break;
            }
        };
        result = result.and(hello(sender, version, message, recent, found));
        let is_retry_request = message.get(6..38).is_some_and(|random| random == RETRY_REQUEST);
        let asks = sender == Sender::Server && is_retry_request && !asks_again;
        let len = message.len();
        crypto.remove(len);
        asks_again |= asks;
        side.done = !asks;
    }
    side.read = crypto.read() as u32;
    if !side.done {
        side.unfinished = Some(own);
    }
    if asks_again {
        let clients = connection.sides.iter_mut().filter(|side| side.sender == Sender::Client);
        clients.for_each(|client| client.done = false);
    }
    result
}

/// Passes on the facts in a hello.
fn hello(
    sender: Sender,
    version: &Version,
    message: &[u8],
    recent: &mut Recent,
    found: Found<'_>,
) -> Result<(), Unread> {
    if version.family == Family::GoogleChlo {
        chlo(version, crypto::chlo_server_name(message)?, found);
        return Ok(());
    }
    // RFC 8446, section 4: the type of a client hello is 1, of a server hello 2.
    let kind = if sender == Sender::Client { 1 } else { 2 };
    if message.first() != Some(&kind) {
        return Err(Unread::Malformed);
    }
    begin(version.name, found);
    tls::handshake(message, Transport::Quic, recent, found)
}
