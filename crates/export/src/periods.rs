//! Periods of packet time, each with files of its own (`--rotate`).
//!
//! ```text
//! worker 0:  ── blocks of 10:00 ── mark 10:05 ── blocks of 10:05 ──▶ held until worker 1 is at the mark, too
//! worker 1:  ── blocks of 10:00 ─────────────────── mark 10:05 ────▶
//! writer:    flows-1000.json ────────────────────── rotation ──────▶ flows-1005.json
//! ```
//!
//! A worker hands over its block where a period ends, and only then publishes the next one, so all blocks of a period are
//! in the ring before it. Over files all workers have the same marks, and a block of a later period waits until each has
//! reached it; if its worker has no other block left, it is written at once, so no worker waits for another. On
//! interfaces nothing waits: the first worker at a mark begins the period.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bits of the number in a period; those above count how often time was set back.
const NUMBER_BITS: u32 = 36;

/// A period: its number since 1970 and, because a clock may be set back, how often that happened before. Later ones
/// are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Period(u64);

impl Period {
    /// Before the first time.
    pub(crate) const NONE: Self = Self(0);

    /// The period of a time after this one, or of the first time.
    pub(crate) fn at(self, time_ns: u64, every_ns: u64) -> Self {
        let number = time_ns / every_ns;
        let times_back = self.0 >> NUMBER_BITS;
        Self(match self {
            Self::NONE => 1 << NUMBER_BITS | number,
            _ if number < self.number() => (times_back + 1) << NUMBER_BITS | number,
            _ => times_back << NUMBER_BITS | number,
        })
    }

    fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// Its begin, in seconds since 1970.
    pub(crate) fn begin(self, every_ns: u64) -> u64 {
        self.number().saturating_mul(every_ns) / 1_000_000_000
    }
}

/// What a worker and the writer share about its periods.
#[derive(Default)]
pub(crate) struct Progress {
    /// The period of the worker, which it writes.
    period: AtomicU64,
    /// The worker waits for an empty block.
    starved: AtomicBool,
}

impl Progress {
    /// The worker has handed over all blocks of earlier periods.
    pub(crate) fn reach(&self, period: Period) {
        // Pairs with the load in `reached`: the blocks before are in the ring.
        self.period.store(period.0, Ordering::Release);
    }

    /// What a worker has reached; then the ring has all blocks of earlier periods.
    pub(crate) fn reached(&self) -> Period {
        // Pairs with the store in `reach`.
        Period(self.period.load(Ordering::Acquire))
    }

    pub(crate) fn set_starved(&self, is: bool) {
        // Relaxed: the writer reads it again and again.
        self.starved.store(is, Ordering::Relaxed);
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn a_period_begins_at_a_multiple_and_a_clock_that_is_set_back_begins_a_later_one() {
        let first = Period::NONE.at(10 * MINUTE + 7, MINUTE);
        assert!(first > Period::NONE);
        assert_eq!(first.begin(MINUTE), 600);
        assert_eq!(first.at(11 * MINUTE - 1, MINUTE), first);
        let next = first.at(11 * MINUTE, MINUTE);
        assert!(next > first);
        assert_eq!(next.begin(MINUTE), 660);
        let back = next.at(3 * MINUTE, MINUTE);
        assert!(back > next);
        assert_eq!(back.begin(MINUTE), 180);
        assert!(back.at(4 * MINUTE, MINUTE) > back);
        let last = back.at(u64::MAX, 1_000_000_000);
        assert!(last > back);
        assert_eq!(last.begin(1_000_000_000), u64::MAX / 1_000_000_000);
    }
}
