//! Does one core's compare-and-swap stop the others? One core does the worst it can, another does work that is its own,
//! and is timed.
//!
//! ```text
//!  core 0, the neighbour:  sleeps │ cas-own │ cas-all │ store-all │ load-all          32 MiB of lines of its own
//!  core 1, the bystander:  load │ chase │ cas                                         and these are its own, too
//! ```
//!
//! If the shared bus were locked, `chase` (every load goes to memory) would stand still beside `cas-own` and, above all,
//! `cas-all`; if only lines are locked, `cas-all` costs it what `load-all` costs: the memory's bandwidth.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ringtap_base::ticks;
use ringtap_skeleton::on_core;

use crate::exclusion::spread::Spread;
use ringtap_base::SplitMix;

/// Lines of each side: more than second-level caches hold.
const LINES: usize = (32 << 20) / 64;

/// Operations between two readings of the counter.
const CHUNK: usize = 4096;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// What the other core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Nothing.
    Sleeps,
    /// Compare-and-swaps on one line, as fast as it can.
    CasOwn,
    /// Compare-and-swaps on all its lines, each a miss.
    CasAll,
    /// Plain stores to the same.
    StoreAll,
    /// Plain loads of the same.
    LoadAll,
}

impl Neighbour {
    /// All of them; the first is what the others are compared with.
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

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Loads of one line.
    Load,
    /// Loads of all lines, each of which says which is next.
    Chase,
    /// Compare-and-swaps on one line.
    Cas,
}

impl Work {
    /// All works.
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

/// A row: how long an operation of the bystander took.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the other core did.
    pub neighbour: Neighbour,
    /// What was timed.
    pub work: Work,
    /// Ticks of an operation.
    pub ticks: Spread,
    /// How often longer than beside a neighbour that sleeps; medians.
    pub slowdown: f64,
}

/// Measures every neighbour beside every work, in turn, `rounds` times. `cores`: the neighbour's and the bystander's.
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

/// The works' ticks an operation, a chunk each.
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
            // Relaxed: it says when, it hands over nothing.
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
                    // It succeeds the first time on each line; the line is taken either way.
                    let _ = line.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
                }
            }
        }
    }
    std::hint::black_box(sum);
}

/// Lines that each say which is next, so that one round comes by all, in no order.
fn ring(seed: u64) -> Vec<Line> {
    let mut order: Vec<u32> = (0..LINES as u32).collect();
    let mut random = SplitMix::new(seed);
    // One cycle through all: each place changes with one before it (S. Sattolo, 1986).
    for at in (1..LINES).rev() {
        order.swap(at, random.below(at as u64) as usize);
    }
    order.into_iter().map(|next| Line(AtomicU64::new(next.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chase_comes_by_every_line() {
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
    fn every_neighbour_stands_beside_every_work() {
        let rows = measure([None, None], 1, 3);
        assert_eq!(rows.len(), 15);
        assert!(rows.iter().all(|row| row.ticks.samples == 3 && row.ticks.median > 0.0));
        assert!(
            rows[..3].iter().all(|row| row.neighbour == Neighbour::Sleeps && row.slowdown == 1.0)
        );
    }
}
