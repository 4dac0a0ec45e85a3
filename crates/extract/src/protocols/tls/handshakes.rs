//! Handshakes that are not over: what the client's hello says that matters for the server's answer, and where the
//! server's messages continue.
//!
//! An entry begins with a hello, and ends when the server's certificate was read, when it is clear that none will be, or
//! after [`LIFETIME_NS`] by the times of its packets. It is at the direction of the client, by any path.

use ringtap_base::Aged;
use ringtap_wire::PacketRecord;

use super::hello::{ClientHello, ServerHello};
use super::records::Between;
use crate::hashing::Hashing;
use crate::streams::Direction;
use crate::{LIFETIME_NS, State, Unread};

/// Longest server name that is compared.
const NAME_MAX: usize = 255;
/// Most handshakes at a time.
const MOST: usize = 1 << 16;

/// A handshake.
#[derive(Default)]
pub(super) struct Handshake {
    /// The server name that the client asks for.
    pub(super) name: Option<Box<[u8]>>,
    session: Session,
    /// Whether the client's hello has a ticket; `None`: it was not seen.
    has_ticket: Option<bool>,
    /// The sequence number at which the server's messages continue, and what is left of a record there.
    next: Option<(u32, usize)>,
    start_ns: u64,
}

/// The identifier of a session.
#[derive(Default, PartialEq, Eq)]
struct Session {
    bytes: [u8; 32],
    len: usize,
}

impl Session {
    fn new(id: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(id).for_each(|(place, byte)| *place = *byte);
        Self { bytes, len: id.len() }
    }
}

impl Handshake {
    /// How the server resumes a session before TLS 1.3, if its hello says so.
    pub(super) fn resumption(&self, hello: &ServerHello<'_>) -> Option<&'static str> {
        // A server returns the identifier of the client if it resumes (RFC 5246, section 7.4.1.3; RFC 5077, section 3.4).
        let resumes = !hello.session.is_empty() && Session::new(hello.session) == self.session;
        resumes.then_some(if self.has_ticket == Some(true) { "ticket" } else { "session" })
    }

    /// Whether the server may resume a session by a ticket without returning an identifier.
    pub(super) fn may_have_ticket(&self) -> bool {
        self.has_ticket == Some(true)
    }

    /// Whether a packet of this time may belong to it.
    fn lives(&self, ts_ns: u64) -> bool {
        ts_ns.abs_diff(self.start_ns) <= LIFETIME_NS
    }

    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        self.name.as_ref().map_or(0, |name| name.len())
    }
}

type Table = Aged<Direction, Handshake, Hashing>;

/// The handshakes of a reader.
pub(super) struct Handshakes {
    all: Table,
    /// Bytes of names, and most bytes of names and table.
    bytes: usize,
    bytes_max: usize,
    /// Handshakes that made room for others: in the middle of the server's messages, and before them.
    no_room: u64,
    evicted: u64,
}

impl State for Handshakes {
    fn new(memory: usize) -> Self {
        Self {
            all: Aged::new((memory / Table::ENTRY_BYTES).min(MOST), Hashing::default()),
            bytes: 0,
            bytes_max: memory,
            no_room: 0,
            evicted: 0,
        }
    }

    fn turn(&mut self) {
        self.all.turn();
        while let Some((_, handshake)) = self.all.pop_old() {
            self.bytes -= handshake.memory();
        }
    }

    /// A handshake that made room for others is counted: the certificate in it is not read; or not compared with the name
    /// that the client asked for, if there is one.
    fn dropped(&mut self, _end: bool, count: &mut dyn FnMut(Unread, u64)) {
        count(Unread::NoRoom, std::mem::take(&mut self.no_room));
        count(Unread::Evicted, std::mem::take(&mut self.evicted));
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.bytes + self.all.len() * Table::ENTRY_BYTES
    }
}

/// The client's direction of a packet that the server sent.
fn of_server(record: &PacketRecord) -> Direction {
    Direction::of(record).without_path().reversed()
}

impl Handshakes {
    /// A client's hello begins a handshake; `None`: of SSL 2.0.
    pub(super) fn begin(&mut self, record: &PacketRecord, hello: Option<&ClientHello<'_>>) {
        let mut handshake = Handshake { start_ns: record.ts_ns, ..Handshake::default() };
        if let Some(hello) = hello {
            let name = hello.server_names().next().filter(|name| name.len() <= NAME_MAX);
            handshake.name = name.map(Box::from);
            handshake.session = Session::new(hello.session);
            handshake.has_ticket = Some(hello.has_ticket());
        }
        self.put(Direction::of(record).without_path(), handshake);
    }

    /// Takes the handshake that a packet of the server belongs to.
    pub(super) fn take(&mut self, record: &PacketRecord) -> Option<Handshake> {
        let handshake = self.all.remove(&of_server(record))?;
        self.bytes -= handshake.memory();
        handshake.lives(record.ts_ns).then_some(handshake)
    }

    /// The server's messages continue at this place of a payload that begins at a sequence number.
    pub(super) fn wait(
        &mut self,
        record: &PacketRecord,
        mut handshake: Handshake,
        sequence: u32,
        place: Between,
    ) {
        handshake.next = Some((sequence.wrapping_add(place.at as u32), place.inside));
        handshake.start_ns = record.ts_ns;
        self.put(of_server(record), handshake);
    }

    /// Takes the handshake whose messages continue at the beginning of this payload, with what is left of a record.
    pub(super) fn resume(
        &mut self,
        record: &PacketRecord,
        sequence: u32,
    ) -> Option<(Handshake, usize)> {
        let (next, inside) = self.all.get(&of_server(record))?.next?;
        if next != sequence {
            return None;
        }
        self.take(record).map(|handshake| (handshake, inside))
    }

    /// Whether the client sent a packet; by the ports if no hello was seen: a client's port is ephemeral and usually
    /// higher.
    pub(super) fn is_from_client(&self, record: &PacketRecord) -> bool {
        let direction = Direction::of(record).without_path();
        let has = |direction| self.all.get(direction).is_some_and(|own| own.lives(record.ts_ns));
        if has(&direction) {
            return true;
        }
        let &PacketRecord { src_port, dst_port, .. } = record;
        !has(&direction.reversed()) && (src_port, record.src) > (dst_port, record.dst)
    }

    fn put(&mut self, client: Direction, handshake: Handshake) {
        self.bytes += handshake.memory();
        let (replaced, mut evicted) = self.all.insert(client, handshake);
        self.bytes -= replaced.map_or(0, |handshake| handshake.memory());
        // The oldest ones, until the memory suffices.
        loop {
            if let Some((_, handshake)) = evicted {
                self.bytes -= handshake.memory();
                let waits = handshake.next.is_some();
                *(if waits { &mut self.no_room } else { &mut self.evicted }) += 1;
            }
            if self.bytes + self.all.len() * Table::ENTRY_BYTES <= self.bytes_max {
                return;
            }
            evicted = self.all.pop_oldest();
        }
    }
}
