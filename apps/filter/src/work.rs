//! The work that an accepted packet asks for: a fingerprint, one of 65,536.
//!
//! Steps of the generator of `java.util.Random`, s ← (25,214,903,917 · s + 11) mod 2⁴⁸, from a
//! seed; the fingerprint is bits 12 to 27 of the last s. Each step needs the one before, so the
//! published form measures the latency of a multiplier. The other modes give the same fingerprints
//! sooner, and are told apart because a figure without its mode says nothing.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

const FACTOR: u64 = 25_214_903_917;
const ADDEND: u64 = 11;
/// Chains that are worked on side by side.
const LANES: usize = 4;
/// How many fingerprints there are.
pub const FINGERPRINTS: usize = 1 << 16;

/// How fingerprints are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// One step after the other, as published.
    #[default]
    Serial,
    /// The chains of four packets side by side, so that multiplications overlap.
    Interleaved,
    /// All steps of a packet at once: affine maps compose, so n of them take log₂ n squarings.
    Jump,
    /// No step at all: the fingerprint of the seed. What is left is the filter.
    Off,
}

/// The work of one accepted packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Steps.
    pub iterations: u32,
    /// Where they start.
    pub seed: u32,
}

/// A name that is none of [`Work::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no work is called \"{0}\"; there are serial, interleaved, jump, off")]
pub struct UnknownWork(pub String);

impl Work {
    /// All there are, the published one first.
    pub const ALL: [Self; 4] = [Self::Serial, Self::Interleaved, Self::Jump, Self::Off];

    /// The name by which [`FromStr`] knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Interleaved => "interleaved",
            Self::Jump => "jump",
            Self::Off => "off",
        }
    }

    /// Does all jobs; tells the fingerprints in any order.
    pub fn run(self, jobs: &[Job], mut found: impl FnMut(usize)) {
        match self {
            Self::Serial => jobs.iter().for_each(|job| found(serial(*job))),
            Self::Interleaved => interleaved(jobs, found),
            Self::Jump => jobs.iter().for_each(|job| found(jump(*job))),
            Self::Off => jobs.iter().for_each(|job| found(fingerprint(job.seed.into()))),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Work {
    type Err = UnknownWork;

    fn from_str(name: &str) -> Result<Self, UnknownWork> {
        Self::ALL
            .into_iter()
            .find(|work| work.name() == name)
            .ok_or_else(|| UnknownWork(name.to_owned()))
    }
}

fn fingerprint(state: u64) -> usize {
    (state >> 12) as usize & (FINGERPRINTS - 1)
}

/// A step whose constants the compiler must not know: otherwise it composes several steps into one, and
/// a chain is not a chain any more.
fn opaque_step() -> impl Fn(u64) -> u64 {
    let (factor, addend) = (black_box(FACTOR), black_box(ADDEND));
    move |state| state.wrapping_mul(factor).wrapping_add(addend)
}

fn serial(job: Job) -> usize {
    let step = opaque_step();
    let mut state = u64::from(job.seed);
    for _ in 0..job.iterations {
        // The published chain cuts to 48 bits at every step, and that is a part of its cost.
        state = step(state) & 0xffff_ffff_ffff;
    }
    fingerprint(state)
}

/// Keeps every lane busy while there are jobs. Bits above 48 never reach those below.
fn interleaved(jobs: &[Job], mut found: impl FnMut(usize)) {
    let step = opaque_step();
    let mut jobs = jobs.iter();
    let mut next = || jobs.next().map(|job| (u64::from(job.seed), job.iterations));
    let mut lanes: [_; LANES] = std::array::from_fn(|_| next());
    while let [Some(a), Some(b), Some(c), Some(d)] = lanes {
        let together = a.1.min(b.1).min(c.1).min(d.1);
        let mut states = [a.0, b.0, c.0, d.0];
        for _ in 0..together {
            states = states.map(&step);
        }
        for (lane, state) in lanes.iter_mut().zip(states) {
            *lane = lane.map(|(_, left)| (state, left - together));
            if let Some((state, 0)) = *lane {
                found(fingerprint(state));
                *lane = next();
            }
        }
    }
    for (state, left) in lanes.into_iter().flatten() {
        found(fingerprint((0..left).fold(state, |state, _| step(state))));
    }
}

fn jump(job: Job) -> usize {
    let (mut factor, mut addend) = (FACTOR, ADDEND);
    let mut state = u64::from(job.seed);
    let mut left = job.iterations;
    while left > 0 {
        if left % 2 == 1 {
            state = state.wrapping_mul(factor).wrapping_add(addend);
        }
        // The map of twice as many steps.
        addend = addend.wrapping_mul(factor.wrapping_add(1));
        factor = factor.wrapping_mul(factor);
        left /= 2;
    }
    fingerprint(state)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(work: Work, jobs: &[Job]) -> Vec<usize> {
        let mut found = Vec::new();
        work.run(jobs, |fingerprint| found.push(fingerprint));
        found.sort_unstable();
        found
    }

    #[test]
    fn fingerprints_are_those_of_java() {
        // java.util.Random's state after n steps from the seed, bits 12 to 27.
        let one = |iterations, seed| serial(Job { iterations, seed });
        assert_eq!(one(0, 0x1234_5678), 0x2345);
        assert_eq!(one(1, 1), (25_214_903_928u64 >> 12) as usize & 0xffff);
    }

    proptest! {
        #[test]
        fn every_mode_finds_the_published_fingerprints(
            jobs in prop::collection::vec((0..3000u32, any::<u32>()), 0..20),
        ) {
            let jobs: Vec<_> =
                jobs.into_iter().map(|(iterations, seed)| Job { iterations, seed }).collect();
            let expected = histogram(Work::Serial, &jobs);
            prop_assert_eq!(&histogram(Work::Interleaved, &jobs), &expected);
            prop_assert_eq!(&histogram(Work::Jump, &jobs), &expected);
        }
    }

    #[test]
    fn names_are_known() {
        for work in Work::ALL {
            assert_eq!(work.name().parse(), Ok(work));
        }
        let error = "simd".parse::<Work>().unwrap_err().to_string();
        assert_eq!(error, "no work is called \"simd\"; there are serial, interleaved, jump, off");
    }
}
