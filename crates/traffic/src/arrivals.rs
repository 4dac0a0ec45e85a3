//! What became of numbered frames: lost, duplicated, reordered, late.
//!
//! ```text
//!  numbers  … 4 5 6 │ 7 8 9 10 11 12 │ 13 …
//!            lost or │ a bit each     │ next
//!            counted └──── window ────┘
//! ```
//!
//! Invariant: memory does not grow. A number that falls behind the window without having come
//! counts as lost; should it come still, it is counted as stale, since it is unknown whether it came
//! before.

use ringtap_base::Latency;

/// Numbers that are remembered.
const WINDOW: u64 = 1 << 16;
const WORDS: usize = WINDOW as usize / 64;

/// Frames of one stream as they arrive.
#[derive(Clone, Debug)]
pub struct Arrivals {
    window: Box<[u64]>,
    /// One more than the highest number that came.
    next: u64,
    tally: ArrivalCounts,
    latency: Latency,
}

/// What has come so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Frames, each counted once however often it came.
    pub received: u64,
    /// Copies of frames that had come before.
    pub duplicated: u64,
    /// Of those received, frames that came after one with a higher number (RFC 4737).
    pub reordered: u64,
    /// Frames that came when more than 65,536 higher numbers had: they may have come before.
    pub stale: u64,
    /// Frames that came before they were sent: two clocks are compared that differ.
    pub before_sent: u64,
    /// Frames that must have been sent, by the highest number that came.
    pub sent_least: u64,
}

impl ArrivalCounts {
    /// Frames that never came, if `sent` were sent; unless it is known how many, those that are
    /// missing before the highest number that came.
    pub fn lost(&self, sent: Option<u64>) -> u64 {
        self.sent_least.max(sent.unwrap_or(0)) - self.received
    }
}

impl Default for Arrivals {
    fn default() -> Self {
        let window = vec![0; WORDS].into_boxed_slice();
        Self { window, next: 0, tally: ArrivalCounts::default(), latency: Latency::default() }
    }
}

impl Arrivals {
    /// Frame `number`, below 2⁴⁸, comes after so long a way, if that is known.
    pub fn add(&mut self, number: u64, latency_ns: Option<i64>) {
        if number >= self.next {
            self.forget(number);
            self.next = number.saturating_add(1);
            self.tally.sent_least = self.next;
        } else if self.next - number > WINDOW {
            self.tally.stale += 1;
            return;
        } else if self.word(number).0 & self.word(number).1 != 0 {
            self.tally.duplicated += 1;
            return;
        } else {
            self.tally.reordered += 1;
        }
        let (word, bit) = self.word(number);
        self.window[at(number)] = word | bit;
        self.tally.received += 1;
        match latency_ns.map(u64::try_from) {
            Some(Ok(latency)) => self.latency.add(latency),
            Some(Err(_)) => self.tally.before_sent += 1,
            None => {}
        }
    }

    /// What has come so far.
    pub fn tally(&self) -> ArrivalCounts {
        self.tally
    }

    /// How long frames were on their way; copies do not count.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Makes room for the numbers from the next one to `number`.
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.window.fill(0);
            return;
        }
        for number in self.next..=number {
            let (word, bit) = self.word(number);
            self.window[at(number)] = word & !bit;
        }
    }

    /// The word that `number` has its bit in, and the bit.
    fn word(&self, number: u64) -> (u64, u64) {
        (self.window[at(number)], 1 << (number % 64))
    }
}

fn at(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn after(numbers: impl IntoIterator<Item = u64>) -> ArrivalCounts {
        let mut arrivals = Arrivals::default();
        numbers.into_iter().for_each(|number| arrivals.add(number, None));
        arrivals.tally()
    }

    #[test]
    fn what_is_missing_doubled_or_late_is_told_apart() {
        let tally = after([0, 1, 3, 2, 2, 6, 6, 7]);
        assert_eq!((tally.received, tally.duplicated, tally.reordered), (6, 2, 1));
        assert_eq!((tally.lost(None), tally.lost(Some(10)), tally.lost(Some(3))), (2, 4, 2));
        assert_eq!(ArrivalCounts::default().lost(Some(5)), 5);
    }

    #[test]
    fn the_first_frames_may_be_missing() {
        assert_eq!(after([5]).lost(None), 5);
    }

    #[test]
    fn behind_the_window_nobody_knows() {
        let tally = after([0, WINDOW, 0, 1]);
        assert_eq!((tally.received, tally.stale, tally.duplicated, tally.reordered), (3, 1, 0, 1));
        assert_eq!(after([3, 1 << 47, 3]).stale, 1);
    }

    proptest! {
        /// Numbers that differ by less than the window from the highest: a set knows as much.
        #[test]
        fn a_set_counts_the_same(steps in prop::collection::vec((0..3_u64, 0..200_u64), 1..400)) {
            let (mut highest, mut seen, mut expected) = (0, HashSet::new(), ArrivalCounts::default());
            let mut arrivals = Arrivals::default();
            for (kind, step) in steps {
                let number = match kind {
                    0 => highest + step * 700 % WINDOW,
                    1 => highest + 1,
                    _ => highest - step.min(highest),
                };
                let late = !seen.is_empty() && number < highest;
                if seen.insert(number) {
                    expected.received += 1;
                    expected.reordered += u64::from(late);
                } else {
                    expected.duplicated += 1;
                }
                highest = highest.max(number);
                expected.sent_least = highest + 1;
                arrivals.add(number, None);
            }
            prop_assert_eq!(arrivals.tally(), expected);
        }
    }
}
