//! When shards move from the main thread to their workers, and back.
//!
//! ```text
//!  turn: waits for packets │ receives, forwards, sends     busy:  did not wait, many packets
//!                                                          quiet: waited
//!  home ── BUSY turns in a row are busy ──▶ away ── QUIET turns in a row are quiet ──▶ home
//! ```
//!
//! Another thread helps only if the main thread has more work than time. If it waits for packets,
//! handing them to a worker costs two wake-ups and makes each packet later. Only packets of faces on
//! which workers can send are counted: those for streams go back to the main thread. The decision
//! needs no clock.

/// Turns in a row after which a shard moves. Between the limits, nothing changes.
const BUSY: u32 = 16;
const QUIET: u32 = 64;

/// Packets of a busy turn, at least.
pub(super) const MANY: u64 = 64;

/// A move of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The busiest shard that is home goes to its worker.
    HandOver,
    /// All shards return.
    Return,
}

/// Counts busy and quiet turns in a row.
#[derive(Debug, Default)]
pub(super) struct Load {
    busy: u32,
    quiet: u32,
    is_fixed: bool,
}

impl Load {
    /// No shard moves.
    pub(super) fn always() -> Self {
        Self { is_fixed: true, ..Self::default() }
    }

    /// Counts a turn: whether the thread waited before, and the packets received then.
    pub(super) fn turn(&mut self, waited: bool, packets: u64) -> Option<Move> {
        let is_busy = !waited && packets >= MANY;
        self.busy = if is_busy { self.busy + 1 } else { 0 };
        self.quiet = if waited { self.quiet.saturating_add(1) } else { 0 };
        if self.is_fixed {
            None
        } else if self.busy == BUSY {
            self.busy = 0;
            Some(Move::HandOver)
        } else if self.quiet == QUIET {
            Some(Move::Return)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_never_waits_hands_over() {
        let mut load = Load::default();
        // It waits now and then, or has few packets.
        for turn in 0..1_000 {
            assert_ne!(load.turn(turn % (BUSY - 1) == 0, 1_000), Some(Move::HandOver));
            assert_ne!(load.turn(false, MANY - 1), Some(Move::HandOver));
        }
        let mut load = Load::default();
        let moves: Vec<_> = (0..2 * BUSY).map(|_| load.turn(false, MANY)).collect();
        assert_eq!(moves.iter().filter(|one| one.is_some()).count(), 2);
        assert_eq!(moves[BUSY as usize - 1], Some(Move::HandOver));
    }

    #[test]
    fn shards_return_after_quiet_turns_only() {
        let mut load = Load::default();
        for turn in 1..10 * QUIET {
            assert_eq!(load.turn(turn % QUIET != 0, 1), None);
        }
        let mut load = Load::default();
        let moves: Vec<_> = (0..3 * QUIET).map(|_| load.turn(true, 1)).collect();
        assert_eq!(moves[QUIET as usize - 1], Some(Move::Return));
        assert_eq!(moves.iter().filter(|one| one.is_some()).count(), 1);
    }
}
