//! The machine: which CPUs, what they are called, how far apart they are.

use crate::{ends::wait_if, rounds::child, trial};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

/// The first two CPUs that this process may use.
pub fn first_two() -> Result<[usize; 2], String> {
    let allowed = sched_getaffinity(None).map_err(|why| format!("allowed CPUs: {why}"))?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    match (cpus.next(), cpus.next()) {
        (Some(a), Some(b)) => Ok([a, b]),
        _ => Err("two CPUs are needed: a producer and a consumer on one say nothing".to_owned()),
    }
}

/// "A,B"
pub fn two(text: &str) -> Result<[usize; 2], String> {
    let pair =
        text.split_once(',').and_then(|(a, b)| Some([a.parse::<usize>().ok()?, b.parse().ok()?]));
    match pair {
        Some([a, b]) if a != b && a.max(b) < CpuSet::MAX_CPU => Ok([a, b]),
        _ => Err(format!("--cpus takes two different CPUs, as 0,1; not \"{text}\"")),
    }
}

/// CPU model, kernel and the distance of the two CPUs, in words.
pub fn describe(cpus: [usize; 2]) -> Result<String, String> {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let unknown = || "unknown".to_owned();
    let model = field("model name").unwrap_or_else(unknown);
    let megahertz = field("cpu MHz").unwrap_or_else(unknown);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown());
    let [a, b] = cpus;
    let round_trip = round_trip(cpus)?;
    Ok(format!(
        "{model}, {megahertz} MHz, Linux {}, CPUs {a} and {b}; a cache line takes {round_trip:.0} ns \
         from one to the other and back.",
        kernel.trim()
    ))
}

/// [`same_line`] in a process of its own.
pub fn round_trip(cpus: [usize; 2]) -> Result<f64, String> {
    let answer = child("roundtrip", &cpus.map(|cpu| cpu as u64))?;
    answer.parse().map_err(|_| format!("not a time: \"{answer}\""))
}

/// Nanoseconds that a cache line takes from one CPU to the other and back: each in turn adds one.
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
