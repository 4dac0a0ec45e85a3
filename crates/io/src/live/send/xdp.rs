//! Sending with AF_XDP: frames are copied into shared buffers, and a system call makes the kernel
//! send them.
//!
//! Invariant: handed over = accepted + pending + dropped + discarded. The kernel returns `EBUSY`
//! once for each frame that the device dropped.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::{SendOptions, Sent};
use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::queue;
use crate::live::sys::socket;
use crate::live::sys::xsk_send::XskSend;

/// Calls in a row without progress after which a send call returns.
const MAX_REFUSALS: u32 = 64;

/// Sizes of a buffer as powers of two: half a page or a page.
const SHIFTS: [u32; 2] = [11, 12];
const BUFFERS_LEAST: usize = 64;
const BUFFERS_MOST: usize = 1 << 20;

pub(super) struct XdpSender {
    /// `None` when closed.
    queue: Option<Queue>,
    shape: Shape,
    handed_over: u64,
    dropped: u64,
    discarded: u64,
    refused: u64,
}

/// The socket and its rings. The socket closes only after the memory is unmapped as well.
struct Queue {
    rings: XskSend,
    socket: OwnedFd,
    zero_copy: bool,
}

/// Parameters to open a socket with.
#[derive(Clone, Copy)]
struct Shape {
    queue: u32,
    buffers: u32,
    shift: u32,
}

impl Queue {
    fn open(interface: &Interface, shape: Shape) -> Result<Self, OpenError> {
        let Shape { queue, buffers, shift } = shape;
        let socket = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(OpenError::at("opening an AF_XDP socket for sending", Capability::PACKET))?;
        let rings = XskSend::new(&socket, buffers, shift)
            .map_err(OpenError::memory("allocating AF_XDP buffers", (buffers as usize) << shift))?;
        let zero_copy = queue::bind(&socket, interface, queue, true)?;
        Ok(Self { rings, socket, zero_copy })
    }
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
        let queue = Some(Queue::open(interface, shape)?);
        Ok(Self { queue, shape, handed_over: 0, dropped: 0, discarded: 0, refused: 0 })
    }

    pub(super) fn max_frame_len(&self) -> usize {
        1 << self.shape.shift
    }

    /// Hands over frames until the buffers run out; returns how many.
    pub(super) fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut all = 0;
        loop {
            let Queue { rings, .. } = self.queue.as_mut().ok_or_else(closed)?;
            rings.collect();
            let count = rings.push(frames.get(all..).unwrap_or_default());
            all += count;
            self.handed_over += count as u64;
            let result = self.send_pending();
            if count == 0 || all == frames.len() {
                return match result {
                    Err(error) if all == 0 => Err(error),
                    _ => Ok(all),
                };
            }
        }
    }

    /// Discards the pending frames and closes the socket.
    pub(super) fn close(&mut self) {
        if let Some(Queue { mut rings, .. }) = self.queue.take() {
            // Reads `pending` first: the kernel takes frames only during a call, except with
            // zero-copy.
            self.discarded += u64::from(rings.pending());
        }
    }

    /// Discards the pending frames and opens a new socket.
    pub(super) fn discard(&mut self, interface: &Interface) -> Result<(), OpenError> {
        self.close();
        self.queue = Some(Queue::open(interface, self.shape)?);
        Ok(())
    }

    /// Calls the kernel to send the pending frames until all are sent or it accepts no more.
    fn send_pending(&mut self) -> io::Result<()> {
        let Queue { rings, socket, zero_copy } = self.queue.as_mut().ok_or_else(closed)?;
        let (mut before, mut refusals) = (rings.pending(), 0);
        while before > 0 && refusals < MAX_REFUSALS && rings.wants_waking() {
            match socket::send(socket, &[]) {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBUSY) => self.dropped += 1,
                    // A batch is done, or there is no room: the number of pending frames shows
                    // which.
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => {}
                    _ => return Err(error),
                },
            }
            if *zero_copy {
                return Ok(());
            }
            let now = rings.pending();
            if now == before {
                refusals += 1;
                self.refused += 1;
                // Room comes from completed buffers and from a device that drains its queue.
                rings.collect();
                std::thread::yield_now();
            } else {
                (before, refusals) = (now, 0);
            }
        }
        Ok(())
    }

    /// Waits until nothing is pending, in steps of a millisecond.
    pub(super) fn flush(&mut self, timeout: Duration) -> io::Result<bool> {
        for _ in 0..=timeout.as_millis() {
            self.send_pending()?;
            let Queue { rings, socket, .. } = self.queue.as_mut().ok_or_else(closed)?;
            rings.collect();
            if rings.pending() == 0 {
                return Ok(true);
            }
            let _ = socket::poll(socket, 0, Duration::from_millis(1));
        }
        Ok(false)
    }

    pub(super) fn counters(&mut self) -> Sent {
        let pending = self.queue.as_mut().map_or(0, |queue| u64::from(queue.rings.pending()));
        let Self { dropped, discarded, refused, .. } = *self;
        let accepted = (self.handed_over - pending - discarded).saturating_sub(dropped);
        Sent { accepted, pending, dropped, discarded, refused }
    }
}
