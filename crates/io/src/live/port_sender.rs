//! `PortSender`: sends the frames of a port on queue 0 of its interface.

use std::fmt;
use std::io;

use super::send::XdpQueue;

/// Sends the frames of a [`Port`](super::Port).
pub struct PortSender {
    queue: XdpQueue,
    frame_max: usize,
    /// Dropped frames that [`PortSender::take_dropped`] has returned.
    reported: u64,
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
