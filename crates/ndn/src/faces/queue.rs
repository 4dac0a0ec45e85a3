//! Receive queues for datagrams. The neighbours of a channel share its queue. One with a backlog there,
//! so that others wait behind its datagrams or lose theirs, gets a queue of its own: a socket at the
//! same port that is connected to it. Datagrams are still sent on the channel's socket.
//!
//! ```text
//!  neighbour a ─┐                        ┌─ queue of the channel ─ a turn ─┐
//!  neighbour b ─┼─▶ the kernel, by peer ─┤                                 ├─▶ Intake
//!  neighbour c ─┘                        └─ queue of c ─────────── a turn ─┘
//! ```

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::faces::channel::{Channel, Kind};
use crate::faces::counters::Lost;
use crate::faces::face::Link;
use crate::faces::registry::Faces;
use crate::faces::sys::{self, Address, BURST, Inbox};
use crate::faces::waiting::Source;
use crate::faces::xdp::XdpInput;

/// Number of datagrams of a queue after which the next queue is served.
pub(crate) const DATAGRAMS_PER_TURN: usize = 64;

/// Number of consecutive full turns after which a channel's queue is a backlog.
const BACKLOG_TURNS: u32 = 4;

/// Maximum number of neighbours with a queue of their own. The kernel searches through them for each
/// datagram of another neighbour.
const OWN_QUEUES_MAX: usize = 64;

/// Time without a full turn after which a neighbour's queue may be closed to make room for another.
const REPLACE_NS: u64 = 1_000_000_000;

/// Maximum number of calls that empty the queue of a closed face.
const LAST_CALLS: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) socket: Arc<OwnedFd>,
    /// Receives instead of the socket, which keeps the interface in the group.
    pub(crate) xdp: Option<XdpInput>,
    /// Number of messages to receive in one call.
    pub(crate) messages: usize,
    /// Number of consecutive full turns, modulo [`BACKLOG_TURNS`].
    full_turns: u32,
    /// Time of the latest full turn; 0: none.
    full_ns: u64,
}

impl Queue {
    pub(crate) fn new(socket: Arc<OwnedFd>) -> Self {
        Self { socket, xdp: None, messages: BURST, full_turns: 0, full_ns: 0 }
    }

    /// Receives the messages of one call, without blocking; returns their number.
    pub(crate) fn receive(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        match &mut self.xdp {
            Some(xdp) => Ok(xdp.receive(inbox, self.messages)),
            None => inbox.receive(self.socket.as_fd(), self.messages),
        }
    }

    /// The sockets that are readable while messages wait.
    pub(crate) fn readable(&self) -> Vec<BorrowedFd<'_>> {
        match &self.xdp {
            Some(xdp) => xdp.sockets().collect(),
            None => vec![self.socket.as_fd()],
        }
    }

    /// Datagrams that the kernel dropped for lack of room, since the socket was opened.
    pub(crate) fn drops(&self) -> u64 {
        sys::receive_drops(self.socket.as_fd())
    }

    /// Ends a turn with this number of datagrams. Returns whether there is a backlog.
    pub(crate) fn end_turn(&mut self, datagrams: usize, now_ns: u64) -> bool {
        if datagrams < DATAGRAMS_PER_TURN {
            self.full_turns = 0;
            return false;
        }
        self.full_ns = now_ns;
        self.full_turns = (self.full_turns + 1) % BACKLOG_TURNS;
        self.full_turns == 0
    }
}

impl Faces {
    /// The queue of a source of datagrams, and its channel. `None` if its face was closed.
    pub(crate) fn queue(&mut self, source: Source) -> Option<(usize, &mut Queue)> {
        match source {
            Source::Channel(at) => {
                Some((at as usize, &mut self.channels.get_mut(at as usize)?.queue))
            }
            Source::Neighbour(face) => match &mut self.get_mut(face)?.link {
                Link::Datagrams { channel, queue: Some(queue), .. } => Some((*channel, queue)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives a UDP neighbour a queue of its own, if there is room for one. `to` is the local address to
    /// which it sends, if its channel has several: a connected socket has only one. Its datagrams in the
    /// channel's queue are still received from there. If the system refuses the socket, the
    /// neighbour remains there.
    pub(crate) fn separate(&mut self, number: u32, to: Option<SocketAddr>, now_ns: u64) {
        let offload = self.settings.udp_offload;
        let Some(face) = self.get(number) else { return };
        let Link::Datagrams { channel, peer, queue: None } = &face.link else { return };
        let shared = &self.channels[*channel];
        let Kind::Udp(at) = shared.kind else { return };
        let at = to.map_or(at, |mut to| {
            to.set_port(at.port());
            to
        });
        let is_full = self.own_queues.len() >= OWN_QUEUES_MAX;
        let replaced = is_full.then(|| self.queue_to_replace(now_ns));
        if replaced == Some(None) {
            return;
        }
        let (socket, to) = (shared.queue.socket.as_fd(), peer.to);
        let Ok(socket) = sys::second_udp_socket(socket, &at, offload) else { return };
        let opened = Queue { full_ns: now_ns, ..Queue::new(Arc::new(socket)) };
        let connected = sys::connect(opened.socket.as_fd(), &to);
        if connected.and_then(|()| self.watch(&opened.socket, Source::Neighbour(number))).is_err() {
            return self.close_own(number, &opened, &to);
        }
        if let Some(replaced) = replaced.flatten()
            && let Some(Link::Datagrams { peer, queue, .. }) = self.link(replaced)
            && let (to, Some(queue)) = (peer.to, queue.take())
        {
            self.close_own(replaced, &queue, &to);
        }
        if let Some(Link::Datagrams { queue, .. }) = self.link(number) {
            *queue = Some(opened);
            self.own_queues.push(number);
        }
    }

    fn link(&mut self, face: u32) -> Option<&mut Link> {
        self.get_mut(face).map(|face| &mut face.link)
    }

    /// The face whose own queue may be closed for that of another: the one without a full turn for the
    /// longest time, if that is long enough.
    fn queue_to_replace(&self, now_ns: u64) -> Option<u32> {
        let full = |&face: &u32| Some((self.get(face)?.link.own_queue()?.full_ns, face));
        let (full_ns, face) = self.own_queues.iter().filter_map(full).min()?;
        (now_ns.saturating_sub(full_ns) >= REPLACE_NS).then_some(face)
    }

    /// Ends the own queue of a face, before its socket is closed. Further datagrams of the neighbour
    /// arrive in the channel's queue.
    pub(crate) fn close_own(&mut self, face: u32, queue: &Queue, neighbour: &Address) {
        let _ = sys::connect(queue.socket.as_fd(), &neighbour.other_port());
        self.count_unread(queue);
        self.closed_drops += queue.drops();
        self.own_queues.retain(|&own| own != face);
    }

    /// Counts the datagrams that are left in a queue, which is then closed.
    pub(crate) fn count_unread(&mut self, queue: &Queue) {
        let mut inbox = Inbox::new();
        for _ in 0..LAST_CALLS {
            let count = match inbox.receive(queue.socket.as_fd(), BURST) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The error belongs to an earlier send.
                Err(_) => continue,
            };
            for message in (0..count).map(|at| inbox.message(at).0) {
                let frames = message.len.div_ceil(message.segment.max(1)).max(1) as u64;
                self.others.frames_in += frames;
                self.others.octets_in += message.len as u64;
                self.others.count_lost(Lost::NoFace, frames);
            }
        }
    }

    /// Number of datagrams that the kernel dropped before they could be read.
    pub fn kernel_drops(&mut self) -> u64 {
        let queue = |&face: &u32| self.get(face)?.link.own_queue();
        let own: u64 = self.own_queues.iter().filter_map(queue).map(Queue::drops).sum();
        let channels: u64 = self.channels.iter_mut().map(Channel::kernel_drops).sum();
        channels + own + self.closed_drops
    }
}
