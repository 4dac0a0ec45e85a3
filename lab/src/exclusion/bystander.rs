//! Measures whether compare-and-swaps of one core slow down another core that shares no data with
//! it.
//!
//! One core (the neighbour) loads the memory system. The other (the bystander) works on cache lines
//! of its own and is timed.
//!
//! ```text
//!  core 0, the neighbour:  sleeps │ cas-own │ cas-all │ store-all │ load-all   on 32 MiB of its own
//!  core 1, the bystander:  load │ chase │ cas                                  on 32 MiB of its own
//! ```
//!
//! If a compare-and-swap locked the shared bus, `chase` (each load goes to memory) would stall next
//! to `cas-own` and, above all, `cas-all`. If it locks only its cache line, `cas-all` slows the
//! bystander as much as `load-all` does: both use memory bandwidth.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ringtap_base::ticks;
use ringtap_skeleton::on_core;

use crate::exclusion::spread::Spread;
use ringtap_base::SplitMix;

/// Cache lines of each core: more than a second-level cache holds.
const LINES: usize = (32 << 20) / 64;

/// Operations between two readings of the counter.
const CHUNK: usize = 4096;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// What the other core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Sleeps.
    Sleeps,
    /// Compare-and-swaps on one line, back to back.
    CasOwn,
    /// Compare-and-swaps on all its lines; each is a cache miss.
    CasAll,
    /// Plain stores to all its lines.
    StoreAll,
    /// Plain loads of all its lines.
    LoadAll,
}

impl Neighbour {
    /// All neighbours; the first is the baseline of the slowdowns.
    pub const ALL: [Self; 5] =
        [Self::Sleeps, Self::CasOwn, Self::CasAll, Self::StoreAll, Self::LoadAll];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleeps => "sleeps",
            Self::CasOwn => "cas-own",
            Self::CasAll => "cas-all",
            Self::StoreAll => "store-all",
            Self::LoadAll => "load-all",
        }
    }
}

/// The bystander's operation, which is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Loads of one line.
    Load,
    /// Loads of all lines; each line holds the index of the next (pointer chasing).
    Chase,
    /// Compare-and-swaps on one line.
    Cas,
}

impl Work {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Load, Self::Chase, Self::Cas];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Chase => "chase",
            Self::Cas => "cas",
        }
    }
}

/// The time of one operation of the bystander, next to one neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the other core did.
    pub neighbour: Neighbour,
    /// The operation that was timed.
    pub work: Work,
    /// Ticks per operation.
    pub ticks: Spread,
    /// Median ticks divided by those next to [`Neighbour::Sleeps`].
    pub slowdown: f64,
}

/// Measures every operation next to every neighbour, in turn, `rounds` times, `chunks` readings
/// each. `cores`: those of the neighbour and of the bystander; `None` leaves a thread unpinned.
pub fn measure(cores: [Option<usize>; 2], rounds: usize, chunks: usize) -> Vec<Row> {
    let ring = ring(11);
    let mut samples = vec![Vec::new(); Neighbour::ALL.len() * Work::ALL.len()];
    for _ in 0..rounds.max(1) {
        for (at, &neighbour) in Neighbour::ALL.iter().enumerate() {
            let found = beside(neighbour, cores, &ring, chunks.max(1));
            for (work, found) in found.into_iter().enumerate() {
                samples[at * Work::ALL.len() + work].extend(found);
            }
        }
    }
    let pairs = Neighbour::ALL.iter().flat_map(|&n| Work::ALL.map(|work| (n, work)));
    let mut rows: Vec<Row> = pairs
        .zip(&mut samples)
        .map(|((neighbour, work), samples)| {
            let ticks = Spread::of(samples, 0.0);
            Row { neighbour, work, ticks, slowdown: 1.0 }
        })
        .collect();
    let alone: Vec<f64> = rows[..Work::ALL.len()].iter().map(|row| row.ticks.median).collect();
    for (row, alone) in rows.iter_mut().zip(alone.iter().cycle()) {
        row.slowdown = row.ticks.median / alone.max(f64::MIN_POSITIVE);
    }
    rows
}

/// Ticks per operation of each [`Work`], one value per chunk.
fn beside(
    neighbour: Neighbour,
    cores: [Option<usize>; 2],
    ring: &[Line],
    chunks: usize,
) -> [Vec<f64>; 3] {
    let (start, over) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| on_core(cores[0], || disturb(neighbour, &start, &over)));
        on_core(cores[1], || {
            let one = Line::default();
            start.wait();
            let found = Work::ALL.map(|work| {
                let mut at = 0;
                let mut time = || {
                    let before = ticks();
                    at = operate(work, &one, ring, at);
                    (ticks() - before) as f64 / CHUNK as f64
                };
                time();
                (0..chunks).map(|_| time()).collect()
            });
            // Relaxed: a stop flag; no data depends on it.
            over.store(true, Ordering::Relaxed);
            found
        })
    })
}

#[inline(never)]
fn operate(work: Work, one: &Line, ring: &[Line], mut at: usize) -> usize {
    for number in 0..CHUNK as u64 {
        match work {
            Work::Load => at = (at as u64 & one.0.load(Ordering::Relaxed)) as usize,
            Work::Chase => at = ring[at].0.load(Ordering::Relaxed) as usize,
            Work::Cas => {
                let _ = one.0.compare_exchange(
                    number & 1,
                    !number & 1,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
            }
        }
    }
    at
}

fn disturb(neighbour: Neighbour, start: &Barrier, over: &AtomicBool) {
    let count = match neighbour {
        Neighbour::Sleeps | Neighbour::CasOwn => 1,
        Neighbour::CasAll | Neighbour::StoreAll | Neighbour::LoadAll => LINES,
    };
    let lines: Vec<Line> = (0..count).map(|_| Line::default()).collect();
    let mut random = SplitMix::new(5);
    start.wait();
    let mut sum = 0;
    while !over.load(Ordering::Relaxed) {
        if neighbour == Neighbour::Sleeps {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        for _ in 0..CHUNK {
            let line = &lines[random.below(count as u64) as usize].0;
            match neighbour {
                Neighbour::LoadAll => sum += line.load(Ordering::Relaxed),
                Neighbour::StoreAll => line.store(1, Ordering::Relaxed),
                _ => {
                    // It succeeds once on each line; the core acquires the line in any case.
                    let _ = line.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
                }
            }
        }
    }
    std::hint::black_box(sum);
}

/// Lines that each hold the index of the next: one random cycle through all.
fn ring(seed: u64) -> Vec<Line> {
    let mut order: Vec<u32> = (0..LINES as u32).collect();
    let mut random = SplitMix::new(seed);
    // Sattolo's algorithm (1986): swap each place with an earlier one; the result is a single
    // cycle.
    for at in (1..LINES).rev() {
        order.swap(at, random.below(at as u64) as usize);
    }
    order.into_iter().map(|next| Line(AtomicU64::new(next.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chase_visits_every_line() {
        let ring = ring(3);
        let (mut at, mut steps) = (0, 0);
        loop {
            at = ring[at].0.load(Ordering::Relaxed) as usize;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, LINES);
    }

    #[test]
    fn every_operation_is_measured_next_to_every_neighbour() {
        let rows = measure([None, None], 1, 3);
        assert_eq!(rows.len(), 15);
        assert!(rows.iter().all(|row| row.ticks.samples == 3 && row.ticks.median > 0.0));
        assert!(
            rows[..3].iter().all(|row| row.neighbour == Neighbour::Sleeps && row.slowdown == 1.0)
        );
    }
}
