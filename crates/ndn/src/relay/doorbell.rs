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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the event is pending; clears it.
    fn is_rung(doorbell: &Doorbell) -> bool {
        rustix::io::read(&doorbell.event, &mut [0; 8]).is_ok()
    }

    #[test]
    fn in_no_order_of_the_steps_a_waiting_thread_misses_a_batch() {
        // The set bits are the worker's steps: it pushes, then rings. The others are of the main
        // thread: it announces that it waits, then looks.
        for order in (0..16_u8).filter(|order| order.count_ones() == 2) {
            let doorbell = Doorbell::new().unwrap();
            let (mut worker, mut main) = (0, 0);
            let (mut is_pushed, mut is_seen) = (false, false);
            for step in 0..4 {
                let count = if order >> step & 1 == 1 { &mut worker } else { &mut main };
                *count += 1;
                match (order >> step & 1 == 1, *count) {
                    (true, 1) => is_pushed = true,
                    (true, _) => doorbell.ring(),
                    (false, 1) => doorbell.announce(),
                    (false, _) => is_seen = is_pushed,
                }
            }
            assert!(is_seen || is_rung(&doorbell), "{order:04b}");
        }
    }

    #[test]
    fn a_thread_that_waits_is_woken_once_and_one_that_does_not_never() {
        let doorbell = Doorbell::new().unwrap();
        doorbell.ring();
        assert!(!is_rung(&doorbell));
        doorbell.announce();
        doorbell.ring();
        assert!(is_rung(&doorbell));
        doorbell.ring();
        assert!(!is_rung(&doorbell));
        doorbell.announce();
        doorbell.awake();
        doorbell.ring();
        assert!(!is_rung(&doorbell));
    }
}
