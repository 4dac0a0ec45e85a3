//! What travels between the main thread and a worker.
//!
//! ```text
//!  main ── the shard, now, commands, packets ────────────▶ worker
//!       ◀── notices, packets for streams, a report, ─────         the same batch, emptied
//!           the shard
//! ```

use crate::faces::{FaceInfo, Outgoing, Sent};
use crate::forwarder::{Counters, Face, FaceId, FaceUse, Notice, Strategy};
use crate::packets::{Headers, NameBuf};
use std::sync::Arc;

/// A batch: filled by one thread, emptied by the other, and used again. `S` is the type of a shard.
#[derive(Debug)]
pub(super) struct Batch<S> {
    /// The shard that the receiver holds from now on.
    pub(super) shard: Option<Box<S>>,
    /// Whether the worker returns the shard after this batch.
    pub(super) returns: bool,
    /// When the packets were received.
    pub(super) now_ns: u64,
    /// Executed before the packets.
    pub(super) commands: Vec<Command>,
    /// Received packets; on the way back, those that only the main thread can send.
    pub(super) packets: Packets,
    /// Changes that all other shards must know, before the packets are sent.
    pub(super) notices: Vec<Notice>,
    pub(super) report: Option<Box<WorkerReport>>,
}

impl<S> Default for Batch<S> {
    fn default() -> Self {
        Self {
            shard: None,
            returns: false,
            now_ns: 0,
            commands: Vec::new(),
            packets: Packets::default(),
            notices: Vec::new(),
            report: None,
        }
    }
}

/// A command of the main thread.
#[derive(Debug)]
pub(super) enum Command {
    /// An opened channel, by its number; `None`: a closed one, or only the main thread can send on it.
    SetChannel(u32, Option<Outgoing>),
    /// A new or changed face.
    SetFace(u32, Face, FaceInfo),
    RemoveFace(u32),
    AddRoute {
        prefix: Arc<NameBuf>,
        face: FaceId,
        cost: u64,
    },
    RemoveRoute {
        prefix: Arc<NameBuf>,
        face: FaceId,
    },
    SetStrategy {
        prefix: Arc<NameBuf>,
        strategy: Strategy,
    },
    UnsetStrategy {
        prefix: Arc<NameBuf>,
    },
    /// A notice of another shard.
    Notice(Arc<Notice>),
    /// Requests a [`WorkerReport`].
    Report,
}

/// The state of a worker at the time of [`Command::Report`].
#[derive(Debug, Default)]
pub(super) struct WorkerReport {
    pub(super) shard: ShardReport,
    /// Faces with use of its tables.
    pub(super) uses: Vec<(u32, FaceUse)>,
    /// What it sent since its last report.
    pub(super) sent: Vec<Sent>,
}

/// The counters of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardReport {
    /// Counters of its forwarder.
    pub counters: Counters,
    /// Number of pending Interests.
    pub pending: usize,
    /// Number of Data in its content store.
    pub kept: usize,
    /// Number of bytes that they need.
    pub kept_bytes: usize,
}

/// Packets, one after the other in one buffer.
#[derive(Debug, Default)]
pub(super) struct Packets {
    bytes: Vec<u8>,
    list: Vec<Position>,
}

#[derive(Debug)]
struct Position {
    face: u32,
    serial: u64,
    headers: Headers,
    end: usize,
}

impl Packets {
    /// Adds a packet. `serial` is the face's serial number, or 0 if it is not needed.
    pub(super) fn push(&mut self, face: u32, serial: u64, headers: &Headers, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.list.push(Position { face, serial, headers: *headers, end: self.bytes.len() });
    }

    /// Face, serial number, headers and bytes of each packet.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u64, &Headers, &[u8])> {
        let mut start = 0;
        self.list.iter().map(move |position| {
            let packet = &self.bytes[start..position.end];
            start = position.end;
            (position.face, position.serial, &position.headers, packet)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Frees the buffer if it is larger than `bytes`.
    pub(super) fn shrink_above(&mut self, bytes: usize) {
        if self.bytes.capacity() > bytes {
            self.bytes = Vec::new();
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }
}
