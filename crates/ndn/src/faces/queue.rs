//! The receive queue of a datagram socket, which is read in turns.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::faces::counters::{Counters, Lost};
use crate::faces::sys::{self, BURST, Inbox};
use crate::faces::xdp::XdpInput;

/// Number of datagrams of a queue after which the next queue is served.
pub(crate) const DATAGRAMS_PER_TURN: usize = 64;

/// Number of consecutive full turns after which a channel's queue is a backlog.
const BACKLOG_TURNS: u32 = 4;

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
    pub(crate) full_ns: u64,
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

    /// Counters of the datagrams that are left in the queue, which is then closed.
    pub(crate) fn unread(&self) -> Counters {
        let (mut unread, mut inbox) = (Counters::default(), Inbox::new());
        for _ in 0..LAST_CALLS {
            let count = match inbox.receive(self.socket.as_fd(), BURST) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The error belongs to an earlier send.
                Err(_) => continue,
            };
            for message in (0..count).map(|at| inbox.message(at).0) {
                let frames = message.len.div_ceil(message.segment.max(1)).max(1) as u64;
                unread.frames_in += frames;
                unread.octets_in += message.len as u64;
                unread.count_lost(Lost::NoFace, frames);
            }
        }
        unread
    }
}
