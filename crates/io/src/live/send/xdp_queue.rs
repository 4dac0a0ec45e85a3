//! An AF_XDP socket that sends on one queue: frames are copied into shared buffers, and a system
//! call makes the kernel send them.
//!
//! Invariant: handed over = accepted + pending + dropped. The kernel returns `EBUSY` once for each
//! frame that the device dropped.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::live::sys::socket;
use crate::live::sys::xsk_send::XskSend;

/// Calls in a row without progress after which a send call returns.
const MAX_REFUSALS: u32 = 64;

/// The socket and its rings. The socket closes only after the memory is unmapped as well.
pub(crate) struct XdpQueue {
    rings: XskSend,
    socket: Arc<OwnedFd>,
    zero_copy: bool,
    counts: Counts,
}

/// Numbers of frames, and of calls for which the kernel had no room.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) handed_over: u64,
    pub(crate) dropped: u64,
    pub(crate) refused: u64,
}

impl XdpQueue {
    /// Sends by the rings of a bound socket.
    pub(crate) fn new(rings: XskSend, socket: Arc<OwnedFd>, zero_copy: bool) -> Self {
        Self { rings, socket, zero_copy, counts: Counts::default() }
    }

    /// Closes the socket and returns the rings.
    pub(crate) fn into_rings(self) -> XskSend {
        self.rings
    }

    /// Hands over frames until the buffers run out; returns how many.
    pub(crate) fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut all = 0;
        loop {
            self.rings.collect();
            let count = self.rings.push(frames.get(all..).unwrap_or_default());
            all += count;
            self.counts.handed_over += count as u64;
            let result = self.send_pending();
            if count == 0 || all == frames.len() {
                return match result {
                    Err(error) if all == 0 => Err(error),
                    _ => Ok(all),
                };
            }
        }
    }

    /// Number of frames that the kernel has not begun to send.
    pub(crate) fn pending(&mut self) -> u32 {
        self.rings.pending()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Calls the kernel to send the pending frames until all are sent or it accepts no more.
    fn send_pending(&mut self) -> io::Result<()> {
        let Self { rings, socket, zero_copy, counts } = self;
        let (mut before, mut refusals) = (rings.pending(), 0);
        while before > 0 && refusals < MAX_REFUSALS && rings.wants_waking() {
            match socket::send(socket, &[]) {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBUSY) => counts.dropped += 1,
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
                counts.refused += 1;
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
    pub(crate) fn flush(&mut self, timeout: Duration) -> io::Result<bool> {
        for _ in 0..=timeout.as_millis() {
            self.send_pending()?;
            self.rings.collect();
            if self.rings.pending() == 0 {
                return Ok(true);
            }
            let _ = socket::poll(&self.socket, 0, Duration::from_millis(1));
        }
        Ok(false)
    }
}
