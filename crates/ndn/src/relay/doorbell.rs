//! Wakes the main thread, which waits for sockets, when a worker has something for it.
//!
//! ```text
//!  main: asleep = true, fence, looks for batches, waits     worker: pushes a batch, fence, reads asleep
//! ```
//!
//! The fences are a pair: either the main thread finds the batch, or the worker finds it asleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// An event that epoll watches for edges, so that it need not be read.
#[derive(Debug)]
pub(crate) struct Doorbell {
    event: OwnedFd,
    asleep: AtomicBool,
    /// When the main thread's current round began.
    round_ns: AtomicU64,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, asleep: AtomicBool::new(false), round_ns: AtomicU64::new(0) })
    }

    /// Announces that the main thread is about to wait. It must look for batches once more.
    pub(crate) fn announce(&self) {
        // Relaxed, as is the load in `ring`: the fences order them.
        self.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
    }

    /// A round of the main thread begins: packets that were received earlier have been passed on.
    pub(crate) fn begin_round(&self, now_ns: u64) {
        // Pairs with the load in `round_ns`: a worker that reads the time finds these packets.
        self.round_ns.store(now_ns, Ordering::Release);
    }

    /// When the current round began. A worker without packets after this call has handled all that
    /// were received earlier.
    pub(crate) fn round_ns(&self) -> u64 {
        self.round_ns.load(Ordering::Acquire)
    }

    /// The main thread is awake.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the main thread if it waits, after something was pushed.
    pub(crate) fn ring(&self) {
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            // This fails only if the event is pending already.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
