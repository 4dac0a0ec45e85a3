//! The end of a queue: shut, and read until nothing is left.

use crate::receiver::Receiver;
use crate::sys::steady_ns;

/// A queue that was shut is empty when looks find nothing for so long: several times what the kernel keeps a block.
const SILENCE_NS: u64 = 60_000_000;

/// So long after it was empty for the first time it counts as empty, whatever comes and whatever the kernel says:
/// then it could not be shut.
const EMPTY_MOST_NS: u64 = 2_000_000_000;

/// No frame that waits takes less room.
const FRAME_LEAST: usize = 64;

/// How far a receiver is that was [shut](Receiver::shut).
///
/// Invariant: times are taken before a look, never behind it. A thread that was kept from running for a while has not
/// looked at a silence.
pub struct Drain {
    /// Frames that can have waited when it was shut, less those that were found since.
    left: usize,
    look_ns: u64,
    /// When the first look began that found nothing, and the first one since something was found.
    empty_ns: Option<u64>,
    quiet_ns: Option<u64>,
}

impl Drain {
    /// Shuts the receiver.
    pub fn begin(receiver: &mut Receiver) -> Self {
        receiver.shut();
        let left = receiver.describe().memory / FRAME_LEAST;
        Self { left, look_ns: steady_ns(), empty_ns: None, quiet_ns: None }
    }

    /// The receiver is about to be asked for frames.
    pub fn look(&mut self) {
        self.look_ns = steady_ns();
    }

    /// It has given so many. Whether those were the last.
    pub fn is_over(&mut self, found: usize, receiver: &mut Receiver) -> bool {
        if found > 0 {
            self.quiet_ns = None;
            self.left = self.left.saturating_sub(found);
            return self.left == 0;
        }
        let empty_ns = *self.empty_ns.get_or_insert(self.look_ns);
        let quiet_ns = *self.quiet_ns.get_or_insert(self.look_ns);
        self.look_ns - empty_ns >= EMPTY_MOST_NS
            || self.look_ns - quiet_ns >= SILENCE_NS && !receiver.owes()
    }
}
