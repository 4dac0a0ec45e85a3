//! The length of a step: the only clock of the streams. It divides and measures time, and reaches
//! no result.
//!
//! A step begins with one item. While it has used less than [`SHARE`], it doubles its number of
//! items: 1, 1, 2, 4, … up to [`BURST`]. So a step with items of a few nanoseconds reads the clock
//! once in dozens of them, and a step with items of a millisecond handles a single one, without
//! configuration. Other nodes on the seat, especially an emitter, wait for a step no longer than
//! that.

use std::time::{Duration, Instant};

use crate::BURST;

/// A step takes no new item after this time: long compared with the cost of a step, short compared
/// with the items in the rings.
const SHARE: Duration = Duration::from_micros(25);

/// The items of one step.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// `None`: no clock, as in a simulation.
    start: Option<Instant>,
    most: usize,
    done: usize,
    /// Number of items at which the clock is read.
    check: usize,
}

impl Pace {
    pub(super) fn by_the_clock() -> Self {
        Self { start: Some(now()), most: BURST, done: 0, check: 0 }
    }

    /// `most` items a step, however long they take.
    pub(super) fn by_number(most: usize) -> Self {
        Self { start: None, most, done: 0, check: 0 }
    }

    /// A step begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        (self.done, self.check) = (0, 1);
        if let Some(start) = &mut self.start {
            *start = now();
        }
    }

    /// Whether the step may handle one more item; counts it.
    #[inline]
    pub(super) fn more(&mut self) -> bool {
        if self.done == self.check {
            if self.done >= self.most || self.elapsed() >= SHARE {
                return false;
            }
            self.check = (self.done * 2).min(self.most);
        }
        self.done += 1;
        true
    }

    /// As [`Pace::more`], for tasks of very different cost: the clock is read before each.
    #[inline]
    pub(super) fn one_more(&mut self) -> bool {
        let more = self.more();
        self.check = self.done;
        more
    }

    /// Time since the step began.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.map_or(Duration::ZERO, |start| now() - start)
    }
}

#[expect(clippy::disallowed_methods, reason = "shares out time and measures it, nothing else")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_after_its_burst_or_its_share() {
        let mut pace = Pace::by_number(5);
        for _ in 0..2 {
            pace.begin();
            assert_eq!((0..100).take_while(|_| pace.more()).count(), 5);
        }
        let mut pace = Pace::by_the_clock();
        pace.begin();
        assert!((0..1_000).take_while(|_| pace.more()).count() <= BURST);
        pace.begin();
        let slow = |pace: &mut Pace| {
            std::thread::sleep(SHARE);
            pace.more()
        };
        assert!(pace.more() && !slow(&mut pace), "one item used up the share");
        pace.begin();
        assert!(pace.one_more() && !slow(&mut pace));
    }
}
