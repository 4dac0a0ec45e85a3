//! Receive queues of single neighbours. The neighbours of a channel share its queue. One with a backlog
//! there, so that others wait behind its datagrams or lose theirs, gets a queue of its own: a socket at
//! the same port that is connected to it. Datagrams are still sent on the channel's socket.
//!
//! ```text
//!  neighbour a ─┐                        ┌─ queue of the channel ─ a turn ─┐
//!  neighbour b ─┼─▶ the kernel, by peer ─┤                                 ├─▶ Intake
//!  neighbour c ─┘                        └─ queue of c ─────────── a turn ─┘
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use crate::faces::channel::{Channel, Kind};
use crate::faces::counters::Counters;
use crate::faces::queue::Queue;
use crate::faces::sys::{self, Address};
use crate::faces::waiting::{Poller, Source};

/// Maximum number of neighbours with a queue of their own. The kernel searches through them for each
/// datagram of another neighbour.
const OWN_QUEUES_MAX: usize = 64;

/// Time without a full turn after which a neighbour's queue may be closed to make room for another.
const REPLACE_NS: u64 = 1_000_000_000;

/// The queues by face.
pub(crate) struct OwnQueues {
    queues: BTreeMap<u32, OwnQueue>,
    /// Datagrams that the kernel dropped in queues that are closed.
    closed_drops: u64,
    /// Whether the kernel may merge received datagrams.
    offload: bool,
    poller: Poller,
}

struct OwnQueue {
    /// The number of the neighbour's channel.
    channel: u32,
    neighbour: Address,
    queue: Queue,
}

impl OwnQueues {
    pub(crate) fn new(offload: bool, poller: Poller) -> Self {
        Self { queues: BTreeMap::new(), closed_drops: 0, offload, poller }
    }

    /// The queue of a face, and the number of its channel.
    pub(crate) fn get_mut(&mut self, face: u32) -> Option<(u32, &mut Queue)> {
        self.queues.get_mut(&face).map(|own| (own.channel, &mut own.queue))
    }

    /// Gives a UDP neighbour of a channel a queue of its own, if it has none and there is room for
    /// one. `to` is the local address to which it sends, if its channel has several: a connected
    /// socket has only one. Its datagrams in the channel's queue are still received from there. If the
    /// system refuses the socket, the neighbour remains there. Returns the counters of datagrams
    /// that were left in a queue which was closed.
    pub(crate) fn open(
        &mut self,
        face: u32,
        (number, channel): (u32, &Channel),
        neighbour: Address,
        to: Option<SocketAddr>,
        now_ns: u64,
    ) -> Counters {
        let Kind::Udp(at) = channel.kind else { return Counters::default() };
        let at = to.map_or(at, |mut to| {
            to.set_port(at.port());
            to
        });
        let is_full = self.queues.len() >= OWN_QUEUES_MAX;
        let replaced = if is_full { self.to_replace(now_ns) } else { None };
        if self.queues.contains_key(&face) || is_full && replaced.is_none() {
            return Counters::default();
        }
        let socket = sys::second_udp_socket(channel.queue.socket.as_fd(), &at, self.offload);
        let Ok(socket) = socket else { return Counters::default() };
        let mut queue = Queue::new(Arc::new(socket));
        queue.full_ns = now_ns;
        let opened = OwnQueue { channel: number, neighbour, queue };
        let socket = &opened.queue.socket;
        let connected = sys::connect(socket.as_fd(), &neighbour);
        let source = Source::Neighbour(face);
        if connected.and_then(|()| self.poller.watch(socket, source, EventFlags::IN)).is_err() {
            return self.end(&opened);
        }
        let unread = replaced.map(|face| self.close(face)).unwrap_or_default();
        self.queues.insert(face, opened);
        unread
    }

    /// Closes the queue of a face, if it has one. Further datagrams of the neighbour arrive in the
    /// channel's queue. Returns the counters of the datagrams that were left.
    pub(crate) fn close(&mut self, face: u32) -> Counters {
        let closed = self.queues.remove(&face);
        closed.map(|closed| self.end(&closed)).unwrap_or_default()
    }

    /// Ends a queue, before its socket is closed.
    fn end(&mut self, own: &OwnQueue) -> Counters {
        let _ = sys::connect(own.queue.socket.as_fd(), &own.neighbour.other_port());
        let unread = own.queue.unread();
        self.closed_drops += own.queue.drops();
        unread
    }

    /// The face whose queue may be closed for that of another: the one without a full turn for the
    /// longest time, if that is long enough.
    fn to_replace(&self, now_ns: u64) -> Option<u32> {
        let full = self.queues.iter().map(|(&face, own)| (own.queue.full_ns, face));
        let (full_ns, face) = full.min()?;
        (now_ns.saturating_sub(full_ns) >= REPLACE_NS).then_some(face)
    }

    /// Number of datagrams that the kernel dropped for lack of room.
    pub(crate) fn kernel_drops(&self) -> u64 {
        self.closed_drops + self.queues.values().map(|own| own.queue.drops()).sum::<u64>()
    }
}
