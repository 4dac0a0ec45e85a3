//! The end of a queue: shut, and read until nothing is left.

use crate::live::receiver::Receiver;
use ringtap_base::steady_ns;

/// A queue that was shut is empty when looks find nothing for so long: several times what the kernel keeps a block.
const SILENCE_NS: u64 = 60_000_000;

/// So long after it was empty for the first time an empty look is the last, whatever the kernel says.
const EMPTY_MOST_NS: u64 = 2_000_000_000;

/// No frame that waits takes less room. Who gives more frames than there is room for could not be shut.
const FRAME_LEAST: usize = 64;

/// How far a receiver is that was [shut](Receiver::shut).
///
/// Invariant: times are taken before a look, never behind it. A thread that was kept from running for a while has not
/// looked at a silence.
pub struct Drain {
    looks: Looks,
    look_ns: u64,
}

impl Drain {
    /// Shuts the receiver.
    pub fn begin(receiver: &mut Receiver) -> Self {
        receiver.shut();
        Self::of(receiver.describe().memory)
    }

    /// The drain of what was shut and has room for so many bytes.
    pub(crate) fn of(memory: usize) -> Self {
        Self { looks: Looks::new(memory / FRAME_LEAST), look_ns: steady_ns() }
    }

    /// The receiver is about to be asked for frames.
    pub fn look(&mut self) {
        self.look_ns = steady_ns();
    }

    /// It has given so many. Whether those were the last.
    pub fn is_over(&mut self, found: usize, receiver: &mut Receiver) -> bool {
        self.is_over_when(found, || receiver.owes())
    }

    /// The same, of whatever may owe frames.
    pub(crate) fn is_over_when(&mut self, found: usize, owes: impl FnOnce() -> bool) -> bool {
        self.looks.was_last(self.look_ns, found, owes)
    }
}

/// What the looks have shown.
struct Looks {
    /// Frames that can have waited when it was shut, less those that were found since.
    left: usize,
    /// When the first look began that found nothing, and the first one since something was found.
    empty_ns: Option<u64>,
    quiet_ns: Option<u64>,
}

impl Looks {
    fn new(left: usize) -> Self {
        Self { left, empty_ns: None, quiet_ns: None }
    }

    fn was_last(&mut self, look_ns: u64, found: usize, owes: impl FnOnce() -> bool) -> bool {
        if found > 0 {
            self.quiet_ns = None;
            self.left = self.left.saturating_sub(found);
            return self.left == 0;
        }
        let empty_ns = *self.empty_ns.get_or_insert(look_ns);
        let quiet_ns = *self.quiet_ns.get_or_insert(look_ns);
        look_ns - empty_ns >= EMPTY_MOST_NS || look_ns - quiet_ns >= SILENCE_NS && !owes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_ends_after_a_silence_that_was_looked_at() {
        let mut looks = Looks::new(1_000);
        let mut look = |ms: u64, found| looks.was_last(ms * MS, found, || false);
        assert!(!look(0, 0) && !look(30, 0));
        // What came begins the silence anew, however long the look took.
        assert!(!look(59, 7) && !look(500, 0) && !look(559, 0));
        assert!(look(560, 0));
    }

    #[test]
    fn it_waits_for_what_the_kernel_owes_but_not_for_ever() {
        let mut looks = Looks::new(1_000);
        let mut look = |ms: u64, owes| looks.was_last(ms * MS, 0, || owes);
        assert!(!look(0, true) && !look(100, true) && !look(1_999, true));
        assert!(look(2_000, true));
        let mut looks = Looks::new(1_000);
        let mut look = |ms: u64, owes| looks.was_last(ms * MS, 0, || owes);
        assert!(!look(0, true) && !look(100, true) && look(101, false));
    }

    #[test]
    fn more_than_can_have_waited_is_not_waited_for() {
        let mut looks = Looks::new(100);
        let mut look = |found| looks.was_last(0, found, || true);
        assert!(!look(64) && !look(35) && look(1));
    }
}
