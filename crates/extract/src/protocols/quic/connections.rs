//! The connections of a reader: the first connection identifier of each, and the unread CRYPTO data of its sides.
//!
//! ```text
//! client's direction ─▶ connection: version, first ID, side │ client │ read up to │ keys, CRYPTO data  (until its hello)
//!                                                           │ server │ …          │ –                  (afterwards)
//! ```
//!
//! A connection stays for [`LIFETIME_NS`] of packet time after its first packet, so that retransmissions give no second
//! message. Packets of a tunnel are sides of their own for each path, because a flow may be captured in two tunnels.
//!
//! Bounds: the memory given to [`Connections::new`], the oldest connection is removed first; for each side what
//! `crypto.rs` allows; [`SIDES_MAX`] sides.
//!
//! Invariant: what is found depends on the packets of the connection alone, as long as none is removed for lack of room.

use std::collections::{HashMap, VecDeque};

use ringtap_wire::PacketRecord;

use super::crypto::Crypto;
use super::header::{ID_MAX, Version};
use super::keys::{Keys, Sender};
use crate::Unread;
use crate::hashing::Hashing;
use crate::streams::Direction;

/// The life of a connection, in packet time, nanoseconds.
const LIFETIME_NS: u64 = 10_000_000_000;
/// Most sides of a connection: client and server by four paths.
const SIDES_MAX: usize = 8;
/// The memory of a connection without its data: its place in the table, which is half empty, and among the ages.
const CONNECTION: usize =
    2 * (size_of::<Direction>() + size_of::<Connection>()) + 2 * size_of::<Side>();
const AGE: usize = size_of::<(Direction, u64)>();

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

    fn memory(&self) -> usize {
        let unfinished = self.sides.iter().filter_map(|side| side.unfinished.as_ref());
        let data = unfinished.map(|own| size_of::<Unfinished>() + own.crypto.memory());
        CONNECTION + data.sum::<usize>()
    }

    /// Whether a hello of the client began and is not complete.
    fn is_incomplete(&self) -> bool {
        let mut clients = self.sides.iter().filter(|side| side.sender == Sender::Client);
        clients.any(|side| side.unfinished.as_ref().is_some_and(|own| own.crypto.has_begun()))
    }
}

/// The connections of a reader.
pub(super) struct Connections {
    /// By the direction of the client's packets, without their path.
    all: HashMap<Direction, Connection, Hashing>,
    /// The directions and start times, oldest first; replaced connections stay until they are the oldest.
    ages: VecDeque<(Direction, u64)>,
    memory: usize,
    memory_max: usize,
    no_room: u64,
    incomplete: u64,
}

impl Connections {
    /// No connections; all together take at most about `memory_max` bytes.
    pub(super) fn new(memory_max: usize) -> Self {
        Self {
            all: HashMap::default(),
            ages: VecDeque::new(),
            memory: 0,
            memory_max,
            no_room: 0,
            incomplete: 0,
        }
    }

    /// The connection of a packet, and the side that sent the packet.
    pub(super) fn find(&mut self, record: &PacketRecord) -> Option<(Sender, &mut Connection)> {
        let own = Direction::of(record).without_path();
        let key = [own, own.reversed()].into_iter().find(|key| self.all.contains_key(key))?;
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
        self.memory = self.memory - before + connection.memory();
        self.expire(record.ts_ns);
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
        self.memory += connection.memory() + AGE;
        self.all.insert(key, connection);
        self.ages.push_back((key, start_ns));
        self.expire(start_ns);
    }

    /// Removes a connection that ended, and counts it if it is incomplete.
    fn remove(&mut self, key: &Direction) {
        if let Some(old) = self.all.remove(key) {
            self.memory -= old.memory();
            self.incomplete += u64::from(old.is_incomplete());
        }
    }

    /// Removes connections that are too old, and the oldest ones until the memory suffices.
    fn expire(&mut self, now_ns: u64) {
        while let Some(&(key, start_ns)) = self.ages.front() {
            let old = now_ns.saturating_sub(start_ns) > LIFETIME_NS;
            if !old && self.memory <= self.memory_max {
                break;
            }
            self.ages.pop_front();
            self.memory -= AGE;
            if self.all.get(&key).is_some_and(|own| own.start_ns == start_ns) {
                if old {
                    self.remove(&key);
                } else if let Some(connection) = self.all.remove(&key) {
                    self.memory -= connection.memory();
                    self.no_room += 1;
                }
            }
        }
    }

    /// Counts connections that ended before the client's hello was complete, or for lack of room, since the last call.
    pub(super) fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        if end {
            let rest = self.all.drain().filter(|(_, connection)| connection.is_incomplete());
            self.incomplete += rest.count() as u64;
            self.ages.clear();
            self.memory = 0;
        }
        count(Unread::NoRoom, std::mem::take(&mut self.no_room));
        count(Unread::Incomplete, std::mem::take(&mut self.incomplete));
    }

    /// Bytes that the connections take, about.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}
