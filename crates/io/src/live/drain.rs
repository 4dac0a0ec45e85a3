//! The end of a queue: stops receiving, and determines when all frames that arrived before have been read.

use crate::live::receiver::Receiver;
use ringtap_base::steady_ns;

/// A queue is empty if bursts return no frames for this time: several times the default block timeout.
const IDLE_NS: u64 = 60_000_000;

/// The drain ends this long after the first empty burst, even if the kernel still reports unread frames.
const TIMEOUT_NS: u64 = 2_000_000_000;

/// Least memory of a waiting frame, in bytes. It bounds the number of frames that can wait. A receiver that returns more
/// frames did not stop receiving.
const FRAME_LEAST: usize = 64;

/// Progress of reading the remaining frames of a [shut](Receiver::shut) receiver.
///
/// Invariant: the time is taken before each burst, not after it. So time in which the thread does not run does not
/// count as idle.
pub struct Drain {
    progress: Progress,
    burst_ns: u64,
}

impl Drain {
    /// Shuts the receiver and begins to drain it.
    pub fn begin(receiver: &mut Receiver) -> Self {
        receiver.shut();
        Self::new(receiver.describe().memory)
    }

    /// Begins to drain receivers that were shut. `memory` is their memory for waiting frames, in bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self { progress: Progress::new(memory / FRAME_LEAST), burst_ns: steady_ns() }
    }

    /// Records the time. Call this before each burst.
    pub fn before_burst(&mut self) {
        self.burst_ns = steady_ns();
    }

    /// Call this after a burst that returned `found` frames. Returns whether all frames have been read.
    pub fn is_over(&mut self, found: usize, receiver: &mut Receiver) -> bool {
        self.is_over_with(found, || receiver.has_unread())
    }

    /// As [`Drain::is_over`]; `has_unread` returns whether the kernel has frames that were not read yet.
    pub(crate) fn is_over_with(&mut self, found: usize, has_unread: impl FnOnce() -> bool) -> bool {
        self.progress.is_over(self.burst_ns, found, has_unread)
    }
}

/// Results of the bursts so far.
struct Progress {
    /// Most frames that can still wait: the capacity, minus the frames read.
    left: usize,
    /// Start of the first empty burst.
    empty_ns: Option<u64>,
    /// Start of the first empty burst since the last frame.
    idle_ns: Option<u64>,
}

impl Progress {
    fn new(left: usize) -> Self {
        Self { left, empty_ns: None, idle_ns: None }
    }

    fn is_over(&mut self, burst_ns: u64, found: usize, has_unread: impl FnOnce() -> bool) -> bool {
        if found > 0 {
            self.idle_ns = None;
            self.left = self.left.saturating_sub(found);
            return self.left == 0;
        }
        let empty_ns = *self.empty_ns.get_or_insert(burst_ns);
        let idle_ns = *self.idle_ns.get_or_insert(burst_ns);
        burst_ns - empty_ns >= TIMEOUT_NS || burst_ns - idle_ns >= IDLE_NS && !has_unread()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_ends_when_bursts_were_empty_for_the_idle_time() {
        let mut progress = Progress::new(1_000);
        let mut burst = |ms: u64, found| progress.is_over(ms * MS, found, || false);
        assert!(!burst(0, 0) && !burst(30, 0));
        // A frame restarts the idle time at the next empty burst.
        assert!(!burst(59, 7) && !burst(500, 0) && !burst(559, 0));
        assert!(burst(560, 0));
    }

    #[test]
    fn it_waits_for_unread_frames_until_the_timeout() {
        let mut progress = Progress::new(1_000);
        let mut burst = |ms: u64, unread| progress.is_over(ms * MS, 0, || unread);
        assert!(!burst(0, true) && !burst(100, true) && !burst(1_999, true));
        assert!(burst(2_000, true));
        let mut progress = Progress::new(1_000);
        let mut burst = |ms: u64, unread| progress.is_over(ms * MS, 0, || unread);
        assert!(!burst(0, true) && !burst(100, true) && burst(101, false));
    }

    #[test]
    fn it_ends_after_as_many_frames_as_can_wait() {
        let mut progress = Progress::new(100);
        let mut burst = |found| progress.is_over(0, found, || true);
        assert!(!burst(64) && !burst(35) && burst(1));
    }
}
