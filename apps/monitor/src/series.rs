//! Packets and octets over time, for the charts of a report.
//!
//! The number of steps is bounded: when they no longer span the run, their length doubles. They are outside digests and
//! states, and no limit of the report depends on them.

use ringtap_wire::{Flags, PacketRecord};

/// Most steps.
const STEPS: u64 = 256;

/// The length of the first steps.
const FIRST_NS: u64 = 125_000_000;

/// Counters of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Packets, without inner ones.
    pub packets: u64,
    /// Octets on the wire.
    pub octets: u64,
}

impl Step {
    fn add(&mut self, more: Self) {
        self.packets = self.packets.saturating_add(more.packets);
        self.octets = self.octets.saturating_add(more.octets);
    }
}

/// Steps of equal length, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    step_ns: u64,
    /// The number of the first step since 1970.
    first: u64,
    steps: Vec<Step>,
}

impl Default for Series {
    fn default() -> Self {
        Self::new(FIRST_NS)
    }
}

impl Series {
    /// No steps; their length will be at least `step_ns` nanoseconds.
    pub const fn new(step_ns: u64) -> Self {
        let step_ns = if step_ns == 0 { 1 } else { step_ns };
        Self { step_ns, first: 0, steps: Vec::new() }
    }

    /// Nanoseconds of a step.
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// When the first step begins, nanoseconds since 1970.
    pub const fn start_ns(&self) -> u64 {
        self.first * self.step_ns
    }

    /// All steps, earliest first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn on_burst(&mut self, burst: &[PacketRecord]) {
        for packet in burst.iter().filter(|packet| !packet.flags.contains(Flags::INNER)) {
            self.add(packet.ts_ns, Step { packets: 1, octets: packet.wire_len.into() });
        }
    }

    /// Adds to the step of a time.
    pub fn add(&mut self, time_ns: u64, more: Step) {
        let mut at = (time_ns / self.step_ns).wrapping_sub(self.first);
        if at >= self.steps.len() as u64 {
            self.reach(time_ns);
            at = time_ns / self.step_ns - self.first;
        }
        self.steps[at as usize].add(more);
    }

    /// Adds steps, and doubles their length if necessary, so that they have the one of a time.
    #[cold]
    fn reach(&mut self, time_ns: u64) {
        let number = time_ns / self.step_ns;
        let (low, high) = match self.steps.len() as u64 {
            0 => (number, number),
            length => (self.first.min(number), (self.first + length - 1).max(number)),
        };
        let mut doublings = 0;
        while (high >> doublings) - (low >> doublings) >= STEPS {
            doublings += 1;
        }
        self.widen(doublings);
        let (low, high) = (low >> doublings, high >> doublings);
        let before = if self.steps.is_empty() { 0 } else { self.first - low };
        self.steps.splice(..0, (0..before).map(|_| Step::default()));
        self.first = low;
        self.steps.resize((high - low + 1) as usize, Step::default());
    }

    /// Doubles the length of all steps this number of times.
    fn widen(&mut self, doublings: u32) {
        let first = self.first >> doublings;
        let mut steps: Vec<Step> = Vec::new();
        for (step, at) in self.steps.iter().zip(self.first..) {
            let at = ((at >> doublings) - first) as usize;
            steps.resize(steps.len().max(at + 1), Step::default());
            steps[at].add(*step);
        }
        (self.first, self.steps) = (first, steps);
        self.step_ns <<= doublings;
    }

    /// Adds the steps of another part of the run.
    pub(crate) fn merge(&mut self, other: &Self) {
        while self.step_ns < other.step_ns {
            self.widen(1);
        }
        for (step, number) in other.steps.iter().zip(other.first..) {
            self.add(number * other.step_ns, *step);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[u64]) -> Series {
        let mut series = Series::default();
        times.iter().for_each(|&time| series.add(time, Step { packets: 1, octets: 10 }));
        series
    }

    proptest! {
        #[test]
        fn all_is_counted_whatever_the_times(
            times in vec(prop_oneof![any::<u64>(), 0..1_000_000_000_000_u64], 1..50),
            split in any::<prop::sample::Index>(),
        ) {
            let whole = of(&times);
            prop_assert!(whole.steps().len() as u64 <= STEPS);
            let sum: u64 = whole.steps().iter().map(|step| step.packets).sum();
            prop_assert_eq!(sum, times.len() as u64);
            let at = |time: u64| (time / whole.step_ns() - whole.first) as usize;
            prop_assert!(times.iter().all(|&time| whole.steps()[at(time)].packets > 0));
            let (one, other) = times.split_at(split.index(times.len()));
            let (mut one, other) = (of(one), of(other));
            one.merge(&other);
            let sum: u64 = one.steps().iter().map(|step| step.packets).sum();
            prop_assert_eq!(sum, times.len() as u64);
            prop_assert!(one.steps().len() as u64 <= STEPS);
        }
    }

    #[test]
    fn steps_double_when_the_run_grows() {
        let second = 1_000_000_000;
        let series = of(&[10 * second, 11 * second]);
        assert_eq!((series.step_ns(), series.start_ns()), (FIRST_NS, 10 * second));
        assert_eq!(series.steps().len(), 9);
        let series = of(&[0, 60 * second]);
        assert_eq!((series.step_ns(), series.steps().len()), (2 * FIRST_NS, 241));
    }
}
