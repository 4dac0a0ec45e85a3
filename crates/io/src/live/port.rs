//! A port: the frames of one EtherType of an interface, received and sent with AF_XDP.
//!
//! ```text
//!  interface ─▶ program ─┬─ this EtherType ─▶ socket of the queue ─▶ Receiver
//!                        └─ others ─▶ the host's network stack
//!  interface ◀──────────────────────────── socket of queue 0 ◀─ PortSender
//! ```
//!
//! A frame with a VLAN tag in it has the EtherType of the tag.

use std::fmt;
use std::io;

use super::error::OpenError;
use super::options::Options;
use super::receiver::{Receiver, open_port};
use super::send::XdpQueue;

/// An interface open for the frames of one EtherType.
pub struct Port {
    /// One receiver for each receive queue. The first holds the notices.
    pub receivers: Vec<Receiver>,
    /// Sends on queue 0.
    pub sender: PortSender,
}

/// Sends the frames of a [`Port`].
pub struct PortSender {
    queue: XdpQueue,
    frame_max: usize,
    /// Dropped frames that [`PortSender::take_dropped`] has returned.
    reported: u64,
}

impl Port {
    /// Opens the interface called `name` for the frames of `ethertype`, with AF_XDP; the host gets
    /// all others. [`Options::method`] is not used.
    ///
    /// # Errors
    /// As for [`open`](super::open).
    pub fn open(name: &str, ethertype: u16, options: &Options) -> Result<Self, OpenError> {
        let (receivers, sender) = open_port(name, ethertype, options)?;
        Ok(Self { receivers, sender })
    }
}

impl fmt::Debug for PortSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortSender").field("frame_max", &self.frame_max).finish_non_exhaustive()
    }
}

impl PortSender {
    /// `frame_max`: length of the longest frame, in bytes.
    pub(super) fn new(queue: XdpQueue, frame_max: usize) -> Self {
        Self { queue, frame_max, reported: 0 }
    }

    /// Hands over `frames` in order, with one system call for many; returns how many, counted from
    /// the first. The number is smaller than `frames.len()` if there is no room, or if the next
    /// frame is too long. Calls the kernel again for frames that are pending since an earlier call.
    ///
    /// # Errors
    /// If the first frame is too long, or cannot be sent for a lasting reason.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let fit = frames.iter().take_while(|frame| frame.len() <= self.frame_max).count();
        if fit == 0 && !frames.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        self.queue.send(frames.get(..fit).unwrap_or_default())
    }

    /// Whether frames were handed over that the kernel has not begun to send.
    pub fn has_pending(&mut self) -> bool {
        self.queue.pending() > 0
    }

    /// Number of frames that the device has dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        let dropped = self.queue.counts().dropped;
        dropped - std::mem::replace(&mut self.reported, dropped)
    }

    /// The longest frame, in bytes, that can be sent, and received from a neighbour with the same
    /// MTU.
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }
}
