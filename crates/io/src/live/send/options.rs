//! Options of a sender, and what it counts.

use crate::live::options::Method;

/// Options of a [`Sender`](super::Sender).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// Send method, by default AF_PACKET. AF_XDP sends on one hardware queue and is faster for
    /// small frames; no other AF_XDP socket may be bound to that queue.
    pub method: Method,
    /// AF_PACKET: whether frames bypass the queueing discipline and go straight to the driver,
    /// which is faster. True by default. A capture on the sending interface does not see such
    /// frames.
    pub bypass: bool,
    /// AF_PACKET: whether frames may have [`Marks`](crate::live::Marks). False by default.
    pub marks: bool,
    /// AF_XDP: number of the hardware queue.
    pub queue: u32,
    /// AF_XDP: bytes of buffers for pending frames, rounded down to a power of two. AF_PACKET with
    /// marks: requested room in the socket. 4 MiB by default.
    pub memory: usize,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { method: Method::Packet, bypass: true, marks: false, queue: 0, memory: 4 << 20 }
    }
}

impl SendOptions {
    /// Most bytes of buffers for frames on their way, in AF_PACKET with marks and AF_XDP. Linux allows
    /// twice the requested room in a socket, because it counts its own overhead there
    /// (socket(7)).
    pub fn memory_most(&self) -> usize {
        match self.method {
            Method::Packet => self.memory.saturating_mul(2),
            Method::Xdp | Method::Dpdk => self.memory,
        }
    }
}

/// Counts of the frames given to a sender, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the interface accepted.
    pub accepted: u64,
    /// AF_XDP: frames handed over that the kernel has not begun to send.
    pub pending: u64,
    /// AF_XDP: frames that the interface dropped. They are lost.
    pub dropped: u64,
    /// AF_XDP: frames discarded by [`Sender::discard`](super::Sender::discard) or [`Sender::close`](super::Sender::close) before the interface
    /// accepted them.
    pub discarded: u64,
    /// How often the kernel had no room. The frame was sent again later or was not reported as
    /// sent.
    pub refused: u64,
}
