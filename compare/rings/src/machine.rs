//! The CPUs of a run, and the cache-line latency between them.

use crate::{ends::wait_if, trial};
use beside::child;
use rustix::thread::CpuSet;
use std::sync::{
    Arc,
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Release},
    },
};

/// The first two CPUs that this process may use.
pub fn first_two() -> Result<[usize; 2], String> {
    match beside::allowed_cpus()?.as_slice() {
        &[a, b, ..] => Ok([a, b]),
        _ => Err("two CPUs are needed, one for the producer and one for the consumer".to_owned()),
    }
}

/// Parses "A,B" as two different CPUs.
pub fn two(text: &str) -> Result<[usize; 2], String> {
    let pair =
        text.split_once(',').and_then(|(a, b)| Some([a.parse::<usize>().ok()?, b.parse().ok()?]));
    match pair {
        Some([a, b]) if a != b && a.max(b) < CpuSet::MAX_CPU => Ok([a, b]),
        _ => Err(format!("invalid --cpus \"{text}\": use two different CPUs, like 0,1")),
    }
}

/// A description of the machine, with the cache-line latency between the two CPUs.
pub fn describe(cpus: [usize; 2]) -> Result<String, String> {
    let (machine, [a, b], round_trip) = (beside::describe(), cpus, round_trip(cpus)?);
    Ok(format!(
        "{machine}, CPUs {a} and {b}; round trip of a cache line between them: {round_trip:.0} ns."
    ))
}

/// [`same_line`], measured in a child process.
pub fn round_trip(cpus: [usize; 2]) -> Result<f64, String> {
    let answer = child("roundtrip", &cpus.map(|cpu| cpu as u64))?;
    answer.parse().map_err(|_| format!("invalid time \"{answer}\""))
}

/// Nanoseconds of a round trip of a cache line between the CPUs: each in turn increments a counter
/// on it.
pub fn same_line(cpus: [usize; 2]) -> Result<f64, String> {
    #[repr(align(128))]
    struct Line(AtomicU64);

    const TRIPS: u64 = 100_000;
    let line = Arc::new(Line(AtomicU64::new(0)));
    let other = Arc::clone(&line);
    let turns = |line: &AtomicU64, odd: u64| {
        let mut idle = 0;
        for trip in 0..TRIPS {
            while line.load(Acquire) != 2 * trip + odd {
                wait_if(true, &mut idle);
            }
            idle = 0;
            line.store(2 * trip + odd + 1, Release);
        }
        0
    };
    let [there, _] = trial::on_two_cpus(
        cpus,
        move || trial::timed(|| turns(&line.0, 0)),
        move || trial::timed(|| turns(&other.0, 1)),
    )?;
    Ok(there.wall / TRIPS as f64 * 1e9)
}
