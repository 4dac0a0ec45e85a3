//! The work for an accepted packet: the computation of a fingerprint, one of 65,536.
//!
//! The work is a number of steps of the generator of `java.util.Random`, s ← (25,214,903,917 · s +
//! 11) mod 2⁴⁸, from a seed. The fingerprint is bits 12 to 27 of the last s. Each step depends on
//! the one before, so the published form measures the latency of a multiplier. Other modes compute
//! the same fingerprints faster; a figure is meaningful only with its mode.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

const FACTOR: u64 = 25_214_903_917;
const ADDEND: u64 = 11;
/// Parallel chains of [`Work::Interleaved`]: enough to hide the latency of a multiplication.
const LANES: usize = 4;
/// Parallel chains of [`Work::Simd`], in two or more vector registers.
const VECTOR_LANES: usize = 16;
/// Number of different fingerprints.
pub const FINGERPRINTS: usize = 1 << 16;

/// How fingerprints are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// One step after the other, as published.
    #[default]
    Serial,
    /// The chains of four packets in parallel, so that multiplications overlap.
    Interleaved,
    /// The chains of sixteen packets in the widest vector registers of the machine.
    Simd,
    /// All steps of a packet at once: affine maps compose, so n steps take log₂ n squarings.
    Jump,
    /// No steps: the fingerprint of the seed. A run measures the filter only.
    Off,
}

/// The work of one accepted packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Number of steps.
    pub iterations: u32,
    /// Start value.
    pub seed: u32,
}

/// A name that is not the name of a [`Work`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown work {0:?}: use serial, interleaved, simd, jump or off")]
pub struct UnknownWork(pub String);

impl Work {
    /// All modes, the published one first.
    pub const ALL: [Self; 5] = [Self::Serial, Self::Interleaved, Self::Simd, Self::Jump, Self::Off];

    /// The name that [`FromStr`] parses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Interleaved => "interleaved",
            Self::Simd => "simd",
            Self::Jump => "jump",
            Self::Off => "off",
        }
    }

    /// Runs all jobs. Calls `found` with the fingerprint of each, in any order.
    pub fn run(self, jobs: &[Job], mut found: impl FnMut(usize)) {
        match self {
            Self::Serial => jobs.iter().for_each(|job| found(serial(*job))),
            Self::Interleaved => in_lanes::<LANES>(jobs, steps, found),
            Self::Simd => {
                // Compiled for several instruction sets; the machine's is selected at run time.
                let machine = pulp::Arch::new();
                let steps = |states: &mut _, n| machine.dispatch(|| steps(states, n));
                in_lanes::<VECTOR_LANES>(jobs, steps, found);
            }
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

/// A step with constants hidden from the compiler, which would otherwise compose several steps into
/// one.
fn opaque_step() -> impl Fn(u64) -> u64 {
    let (factor, addend) = (black_box(FACTOR), black_box(ADDEND));
    move |state| state.wrapping_mul(factor).wrapping_add(addend)
}

fn serial(job: Job) -> usize {
    finish(job.seed.into(), job.iterations)
}

fn finish(mut state: u64, left: u32) -> usize {
    let step = opaque_step();
    for _ in 0..left {
        // The published chain truncates to 48 bits at every step; that is part of its cost.
        state = step(state) & 0xffff_ffff_ffff;
    }
    fingerprint(state)
}

/// `n` steps of all lanes. There is no truncation: higher bits never affect the lower 48.
#[inline(always)]
fn steps<const LANES: usize>(states: &mut [u64; LANES], n: u32) {
    let step = opaque_step();
    for _ in 0..n {
        *states = states.map(&step);
    }
}

/// Runs the jobs in parallel lanes. A lane whose job ends takes the next one.
fn in_lanes<const LANES: usize>(
    jobs: &[Job],
    steps: impl Fn(&mut [u64; LANES], u32),
    mut found: impl FnMut(usize),
) {
    let Some((first, rest)) = jobs.split_first_chunk::<LANES>() else {
        return jobs.iter().for_each(|job| found(serial(*job)));
    };
    let mut states = first.map(|job| u64::from(job.seed));
    let mut left = first.map(|job| job.iterations);
    let mut rest = rest.iter();
    loop {
        let together = left.iter().copied().min().unwrap_or(0);
        steps(&mut states, together);
        left = left.map(|left| left - together);
        for lane in 0..LANES {
            if left[lane] > 0 {
                continue;
            }
            found(fingerprint(states[lane]));
            let Some(job) = rest.next() else {
                // The other lanes hold jobs with the steps left; those after this one may have
                // none.
                let others = (0..LANES).filter(|&other| other != lane);
                return others.for_each(|other| found(finish(states[other], left[other])));
            };
            (states[lane], left[lane]) = (u64::from(job.seed), job.iterations);
        }
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
    fn fingerprints_equal_those_of_java() {
        // java.util.Random's state after n steps from the seed, bits 12 to 27.
        let one = |iterations, seed| serial(Job { iterations, seed });
        assert_eq!(one(0, 0x1234_5678), 0x2345);
        assert_eq!(one(1, 1), (25_214_903_928u64 >> 12) as usize & 0xffff);
    }

    proptest! {
        #[test]
        fn every_mode_finds_the_published_fingerprints(
            jobs in prop::collection::vec((0..3000u32, any::<u32>()), 0..60),
        ) {
            let jobs: Vec<_> =
                jobs.into_iter().map(|(iterations, seed)| Job { iterations, seed }).collect();
            let expected = histogram(Work::Serial, &jobs);
            for work in [Work::Interleaved, Work::Simd, Work::Jump] {
                prop_assert_eq!(&histogram(work, &jobs), &expected, "{}", work);
            }
        }
    }

    #[test]
    fn names_parse_and_an_unknown_name_is_an_error() {
        for work in Work::ALL {
            assert_eq!(work.name().parse(), Ok(work));
        }
        let error = "java".parse::<Work>().unwrap_err().to_string();
        assert_eq!(error, "unknown work \"java\": use serial, interleaved, simd, jump or off");
    }
}
