//! Counts lost, duplicated, reordered and late frames by their numbers.
//!
//! ```text
//!  numbers  … 4 5 6 │ 7 8 9 10 11 12 │ 13 …
//!            lost or │ a bit each     │ next
//!            counted └──── window ────┘
//! ```
//!
//! Invariant: memory is constant. A number that leaves the window and did not arrive counts as lost; if it arrives
//! later, it counts as stale, because it may have arrived before.

use ringtap_base::Latency;

/// Numbers in the window.
const WINDOW: u64 = 1 << 16;
const WORDS: usize = WINDOW as usize / 64;

/// Frames of one stream as they arrive.
#[derive(Clone, Debug)]
pub struct Arrivals {
    window: Box<[u64]>,
    /// The highest number that arrived, plus one.
    next: u64,
    counts: ArrivalCounts,
    latency: Latency,
}

/// Counters of arrived frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Different frames.
    pub received: u64,
    /// Further copies of frames.
    pub duplicated: u64,
    /// Received frames that arrived after one with a higher number (RFC 4737).
    pub reordered: u64,
    /// Frames that arrived after more than 65,536 higher numbers: they may be duplicates.
    pub stale: u64,
    /// Frames with a sending time after their arrival: the two clocks differ.
    pub before_sent: u64,
    /// Frames that must have been sent, by the highest number that arrived.
    pub sent_least: u64,
}

impl ArrivalCounts {
    /// Frames that did not arrive, if `sent` were sent; for `None`, those missing below the highest number that
    /// arrived.
    pub fn lost(&self, sent: Option<u64>) -> u64 {
        self.sent_least.max(sent.unwrap_or(0)) - self.received
    }
}

impl Default for Arrivals {
    fn default() -> Self {
        let window = vec![0; WORDS].into_boxed_slice();
        Self { window, next: 0, counts: ArrivalCounts::default(), latency: Latency::default() }
    }
}

impl Arrivals {
    /// Counts the arrival of frame `number`, below 2⁴⁸, with its latency, if it is known.
    pub fn add(&mut self, number: u64, latency_ns: Option<i64>) {
        if number >= self.next {
            self.advance(number);
            self.next = number.saturating_add(1);
            self.counts.sent_least = self.next;
        } else if self.next - number > WINDOW {
            self.counts.stale += 1;
            return;
        } else if self.word(number).0 & self.word(number).1 != 0 {
            self.counts.duplicated += 1;
            return;
        } else {
            self.counts.reordered += 1;
        }
        let (word, bit) = self.word(number);
        self.window[at(number)] = word | bit;
        self.counts.received += 1;
        match latency_ns.map(u64::try_from) {
            Some(Ok(latency)) => self.latency.add(latency),
            Some(Err(_)) => self.counts.before_sent += 1,
            None => {}
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> ArrivalCounts {
        self.counts
    }

    /// The latencies of frames; duplicates do not count.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Moves the window so that it contains `number`.
    fn advance(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.window.fill(0);
            return;
        }
        for number in self.next..=number {
            let (word, bit) = self.word(number);
            self.window[at(number)] = word & !bit;
        }
    }

    /// The index of the word that contains the bit of `number`, and the bit.
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
        arrivals.counters()
    }

    #[test]
    fn missing_duplicated_and_late_frames_are_counted() {
        let counts = after([0, 1, 3, 2, 2, 6, 6, 7]);
        assert_eq!((counts.received, counts.duplicated, counts.reordered), (6, 2, 1));
        assert_eq!((counts.lost(None), counts.lost(Some(10)), counts.lost(Some(3))), (2, 4, 2));
        assert_eq!(ArrivalCounts::default().lost(Some(5)), 5);
    }

    #[test]
    fn the_first_frames_may_be_missing() {
        assert_eq!(after([5]).lost(None), 5);
    }

    #[test]
    fn numbers_behind_the_window_are_stale() {
        let counts = after([0, WINDOW, 0, 1]);
        assert_eq!(
            (counts.received, counts.stale, counts.duplicated, counts.reordered),
            (3, 1, 0, 1)
        );
        assert_eq!(after([3, 1 << 47, 3]).stale, 1);
    }

    proptest! {
        /// If numbers differ from the highest by less than the window, a set gives the same counts.
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
            prop_assert_eq!(arrivals.counters(), expected);
        }
    }
}
