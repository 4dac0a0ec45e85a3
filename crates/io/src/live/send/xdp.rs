//! Sending with AF_XDP, by a socket of its own that can be closed and opened again.
//!
//! A queue that receives has memory and rings already. A further socket can send there only if it shares
//! these, from buffers that the receiver does not use.
//!
//! Invariant: handed over = accepted + pending + dropped + discarded.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::options::{SendOptions, Sent};
use super::xdp_queue::{Counts, XdpQueue};
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::queue;
use crate::live::sys::socket;
use crate::live::sys::xsk_send::XskSend;

/// Sizes of a buffer as powers of two: half a page or a page.
const SHIFTS: [u32; 2] = [11, 12];
const BUFFERS_LEAST: usize = 64;
const BUFFERS_MOST: usize = 1 << 20;

pub(crate) struct XdpSender {
    /// `None` when closed.
    queue: Option<XdpQueue>,
    origin: Origin,
    /// Size of a buffer, as a power of two.
    shift: u32,
    /// The counts of closed sockets.
    closed: Counts,
    discarded: u64,
}

/// How the socket is opened again.
enum Origin {
    /// With memory of its own.
    Own(Shape),
    /// On this queue, with memory of the receiver's socket.
    Shared { queue: u32, first: Arc<OwnedFd> },
}

/// Parameters to open a socket with.
#[derive(Clone, Copy)]
struct Shape {
    queue: u32,
    buffers: u32,
    shift: u32,
}

impl Shape {
    fn open(self, interface: &Interface) -> Result<XdpQueue, OpenError> {
        let Self { queue, buffers, shift } = self;
        let socket = open_socket()?;
        let rings = XskSend::new(&socket, buffers, shift)
            .map_err(OpenError::memory("allocating AF_XDP buffers", (buffers as usize) << shift))?;
        let zero_copy = queue::bind(&socket, interface, queue, true)?;
        Ok(XdpQueue::new(rings, Arc::new(socket), zero_copy))
    }
}

/// Opens a socket that sends.
pub(crate) fn open_socket() -> Result<OwnedFd, OpenError> {
    socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)
        .map_err(OpenError::at("opening an AF_XDP socket for sending", Capability::PACKET))
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the AF_XDP socket is closed")
}

impl XdpSender {
    /// Opens an AF_XDP socket. `longest` is the longest frame that the interface accepts, in bytes.
    pub(super) fn open(
        interface: &Interface,
        options: &SendOptions,
        longest: usize,
    ) -> Result<Self, OpenError> {
        let [half, page] = SHIFTS;
        let shift = if longest <= 1 << half { half } else { page };
        let buffers = options.memory >> shift;
        if buffers < BUFFERS_LEAST {
            let needed = BUFFERS_LEAST << shift;
            return Err(OpenError::TooLittleMemory { requested: options.memory, needed });
        }
        let buffers = 1 << buffers.min(BUFFERS_MOST).ilog2();
        let shape = Shape { queue: options.queue, buffers, shift };
        let queue = Some(shape.open(interface)?);
        Ok(Self {
            queue,
            origin: Origin::Own(shape),
            shift,
            closed: Counts::default(),
            discarded: 0,
        })
    }

    /// Sends on a queue that the socket `first` receives from. `rings` are for `socket`, which is not
    /// bound yet; buffers have `1 << shift` bytes.
    pub(crate) fn shared(
        interface: &Interface,
        queue: u32,
        first: &Arc<OwnedFd>,
        socket: OwnedFd,
        rings: XskSend,
        shift: u32,
    ) -> Result<Self, OpenError> {
        let zero_copy = queue::bind_sender(&socket, interface, queue, first)?;
        Ok(Self {
            queue: Some(XdpQueue::new(rings, Arc::new(socket), zero_copy)),
            origin: Origin::Shared { queue, first: Arc::clone(first) },
            shift,
            closed: Counts::default(),
            discarded: 0,
        })
    }

    pub(super) fn max_frame_len(&self) -> usize {
        1 << self.shift
    }

    /// Hands over frames until the buffers run out; returns how many.
    pub(super) fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        self.queue.as_mut().ok_or_else(closed)?.send(frames)
    }

    /// Discards the pending frames and closes the socket.
    pub(super) fn close(&mut self) {
        self.take();
    }

    /// Closes the socket and returns its rings.
    fn take(&mut self) -> Option<XskSend> {
        self.queue.take().map(|mut queue| {
            // Reads `pending` first: the kernel takes frames only during a call, except with
            // zero-copy.
            self.discarded += u64::from(queue.pending());
            let Counts { handed_over, dropped, refused } = queue.counts();
            self.closed.handed_over += handed_over;
            self.closed.dropped += dropped;
            self.closed.refused += refused;
            queue.into_rings()
        })
    }

    /// Discards the pending frames and opens a new socket.
    pub(super) fn discard(&mut self, interface: &Interface) -> Result<(), OpenError> {
        let rings = self.take();
        self.queue = Some(match &self.origin {
            Origin::Own(shape) => {
                drop(rings);
                shape.open(interface)?
            }
            Origin::Shared { queue, first } => {
                let mut rings = rings.ok_or(OpenError::NotSent)?;
                let socket = open_socket()?;
                rings.reopen(&socket).map_err(OpenError::at(
                    "opening a ring of an AF_XDP socket",
                    Capability::PACKET,
                ))?;
                let zero_copy = queue::bind_sender(&socket, interface, *queue, first)?;
                XdpQueue::new(rings, Arc::new(socket), zero_copy)
            }
        });
        Ok(())
    }

    /// Waits until nothing is pending, in steps of a millisecond.
    pub(super) fn flush(&mut self, timeout: Duration) -> io::Result<bool> {
        self.queue.as_mut().ok_or_else(closed)?.flush(timeout)
    }

    pub(super) fn counters(&mut self) -> Sent {
        let pending = self.queue.as_mut().map_or(0, |queue| u64::from(queue.pending()));
        let open = self.queue.as_ref().map(XdpQueue::counts).unwrap_or_default();
        let handed_over = self.closed.handed_over + open.handed_over;
        let dropped = self.closed.dropped + open.dropped;
        let refused = self.closed.refused + open.refused;
        let discarded = self.discarded;
        let accepted = (handed_over - pending - discarded).saturating_sub(dropped);
        Sent { accepted, pending, dropped, discarded, refused }
    }
}
