//! The connections of a reader: the first connection identifier of each, and the unread CRYPTO data of its sides.
//!
//! ```text
//! client's direction ─▶ connection: version, first ID, side │ client │ read up to │ keys, CRYPTO data  (until its hello)
//!                                                           │ server │ …          │ –                  (afterwards)
//! ```
//!
//! A connection stays for [`LIFETIME_NS`] after its first packet, by the times of its packets, so that retransmissions give
//! no second message. Packets of a tunnel are sides of their own for each path, because a flow may be captured in two tunnels.
//!
//! Bounds: the memory given to [`Connections::new`], the oldest connection is removed first; for each side what
//! `crypto.rs` allows; [`SIDES_MAX`] sides.
//!
//! Invariant: what is found depends on the packets of the connection and on the places of [`Connections::turn`] alone, as
//! long as none is removed for lack of room.

use ringtap_base::Aged;
use ringtap_wire::PacketRecord;

use super::crypto::Crypto;
use super::header::{ID_MAX, Version};
use super::keys::{Keys, Sender};
use crate::hashing::Hashing;
use crate::streams::Direction;
use crate::{LIFETIME_NS, Unread};

/// Most sides of a connection: client and server by four paths.
const SIDES_MAX: usize = 8;

/// A connection identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    bytes: [u8; ID_MAX],
    len: u8,
}

impl Id {
    pub(super) fn of(id: &[u8]) -> Self {
        let len = id.len().min(ID_MAX);
        let mut bytes = [0; ID_MAX];
        bytes[..len].copy_from_slice(&id[..len]);
        Self { bytes, len: len as u8 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// What is needed until the hello of a side was read.
pub(super) struct Unfinished {
    pub(super) version: &'static Version,
    pub(super) keys: Keys,
    /// The largest packet number.
    pub(super) largest: Option<u64>,
    pub(super) crypto: Crypto,
}

/// One side of a connection, as seen by one path.
pub(super) struct Side {
    pub(super) sender: Sender,
    path: u16,
    /// Its hello was read, or cannot be read.
    pub(super) done: bool,
    /// Bytes of CRYPTO data that were read.
    pub(super) read: u32,
    pub(super) unfinished: Option<Box<Unfinished>>,
}

/// A connection.
pub(super) struct Connection {
    start_ns: u64,
    pub(super) version: &'static Version,
    /// The identifier from which the keys follow; `None`: no Initial packet of the client was read.
    pub(super) id: Option<Id>,
    /// Whether an Initial packet of the server was read.
    pub(super) answered: bool,
    pub(super) sides: Vec<Side>,
}

impl Connection {
    /// The side that sent a packet; `None`: there are too many.
    pub(super) fn side(&mut self, sender: Sender, record: &PacketRecord) -> Option<&mut Side> {
        let path = Direction::of(record).path();
        let known = self.sides.iter().position(|side| side.sender == sender && side.path == path);
        let at = known.unwrap_or(self.sides.len());
        if at == self.sides.len() {
            if at == SIDES_MAX {
                return None;
            }
            self.sides.push(Side { sender, path, done: false, read: 0, unfinished: None });
        }
        self.sides.get_mut(at)
    }

    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        let unfinished = self.sides.iter().filter_map(|side| side.unfinished.as_ref());
        let data = unfinished.map(|own| size_of::<Unfinished>() + own.crypto.memory());
        SIDES_MAX * size_of::<Side>() + data.sum::<usize>()
    }

    /// Whether a hello of the client began and is not complete.
    fn is_incomplete(&self) -> bool {
        self.sides.iter().any(|side| side.sender == Sender::Client && side.has_begun())
    }
}

impl Side {
    /// Whether its hello began and is not complete.
    fn has_begun(&self) -> bool {
        self.unfinished.as_ref().is_some_and(|own| own.crypto.has_begun())
    }
}

type Table = Aged<Direction, Connection, Hashing>;

/// The connections of a reader.
pub(super) struct Connections {
    /// By the direction of the client's packets, without their path.
    all: Table,
    /// Bytes beside the table, and most bytes with it.
    bytes: usize,
    bytes_max: usize,
    no_room: u64,
    evicted: u64,
    incomplete: u64,
}

impl Connections {
    /// No connections; all together take at most about `memory_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            all: Aged::new(bytes_max / Table::ENTRY_BYTES, Hashing::default()),
            bytes: 0,
            bytes_max,
            no_room: 0,
            evicted: 0,
            incomplete: 0,
        }
    }

    /// The connection of a packet, and the side that sent the packet.
    pub(super) fn find(&mut self, record: &PacketRecord) -> Option<(Sender, &mut Connection)> {
        let own = Direction::of(record).without_path();
        let key = [own, own.reversed()].into_iter().find(|key| self.all.get(key).is_some())?;
        let sender = if key == own { Sender::Client } else { Sender::Server };
        if record.ts_ns.saturating_sub(self.all.get(&key)?.start_ns) > LIFETIME_NS {
            self.remove(&key);
            return None;
        }
        self.all.get_mut(&key).map(|connection| (sender, connection))
    }

    /// Changes a connection that was found with this sender.
    pub(super) fn change<T>(
        &mut self,
        record: &PacketRecord,
        sender: Sender,
        change: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        let own = Direction::of(record).without_path();
        let key = if sender == Sender::Client { own } else { own.reversed() };
        let connection = self.all.get_mut(&key)?;
        let before = connection.memory();
        let result = change(connection);
        self.bytes = self.bytes - before + connection.memory();
        self.make_room();
        Some(result)
    }

    /// Opens the connection of a packet from this sender, in place of an earlier one of the two endpoints.
    pub(super) fn open(
        &mut self,
        record: &PacketRecord,
        sender: Sender,
        version: &'static Version,
        id: Option<Id>,
    ) {
        let own = Direction::of(record).without_path();
        self.remove(&own);
        self.remove(&own.reversed());
        let start_ns = record.ts_ns;
        let key = if sender == Sender::Client { own } else { own.reversed() };
        let connection = Connection { start_ns, version, id, answered: false, sides: Vec::new() };
        self.bytes += connection.memory();
        let (_, evicted) = self.all.insert(key, connection);
        if let Some((_, connection)) = evicted {
            self.evict(&connection);
        }
        self.make_room();
    }

    /// Removes a connection that ended, and counts it if it is incomplete.
    fn remove(&mut self, key: &Direction) {
        if let Some(old) = self.all.remove(key) {
            self.end(&old);
        }
    }

    /// Counts a connection that ended, if it is incomplete.
    fn end(&mut self, connection: &Connection) {
        self.bytes -= connection.memory();
        self.incomplete += u64::from(connection.is_incomplete());
    }

    /// Counts a connection that was removed for lack of room.
    fn evict(&mut self, connection: &Connection) {
        self.bytes -= connection.memory();
        let begun = connection.sides.iter().any(Side::has_begun);
        *(if begun { &mut self.no_room } else { &mut self.evicted }) += 1;
    }

    /// Removes the oldest connections until the memory suffices.
    fn make_room(&mut self) {
        while self.memory() > self.bytes_max
            && let Some((_, connection)) = self.all.pop_oldest()
        {
            self.evict(&connection);
        }
    }

    /// Removes connections that were opened before the last turn.
    pub(super) fn turn(&mut self) {
        self.all.turn();
        while let Some((_, connection)) = self.all.pop_old() {
            self.end(&connection);
        }
    }

    /// Counts connections that ended before the client's hello was complete, or for lack of room, since the last call.
    pub(super) fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        while end && let Some((_, connection)) = self.all.pop_oldest() {
            self.end(&connection);
        }
        count(Unread::NoRoom, std::mem::take(&mut self.no_room));
        count(Unread::Evicted, std::mem::take(&mut self.evicted));
        count(Unread::Incomplete, std::mem::take(&mut self.incomplete));
    }

    /// Bytes that the connections take.
    pub(super) fn memory(&self) -> usize {
        self.bytes + self.all.len() * Table::ENTRY_BYTES
    }
}
