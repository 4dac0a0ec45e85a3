//! Ticks of a compare-and-swap that takes a lock.
//!
//! ```text
//!  lock lines:   | 0 | . | . | 0 | . | . | 1 | …     a cache line each; every thread takes and gives back locks at random
//!                  └ naive: as they are, in another core's cache or in none
//!                              └ prefetched: asked for, to be written, 16 locks ahead
//!  uncontended:  64 lines of the thread's own, always near
//! ```
//!
//! A reading of the counter before and one behind each compare-and-swap; what two readings cost with nothing between
//! them is subtracted.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use ringtap_base::{prefetch_write, ticks};
use ringtap_skeleton::on_core;

use crate::exclusion::spread::Spread;
use ringtap_base::SplitMix;

/// Locks asked for ahead.
const AHEAD: usize = 16;

/// Lines that a thread has to itself.
const OWN: usize = 64;

/// A lock and nothing else on its line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU32);

/// Which lines, and whether they are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Shared lines, as they are.
    Naive,
    /// Shared lines, asked for ahead.
    Prefetched,
    /// The thread's own.
    Uncontended,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Naive, Self::Prefetched, Self::Uncontended];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Prefetched => "prefetched",
            Self::Uncontended => "uncontended",
        }
    }
}

/// What shall be measured.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which lines.
    pub way: Way,
    /// Threads that share the lines, at least 1.
    pub threads: usize,
    /// Cores that threads are pinned to, in turn; none: left to the kernel.
    pub cores: Vec<usize>,
    /// Shared lock lines, at least 1; the paper has 2^20.
    pub lines: usize,
    /// Compare-and-swaps of each thread.
    pub samples: usize,
    /// Of the order of the locks.
    pub seed: u64,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Ticks of a compare-and-swap; what the readings cost is subtracted.
    pub ticks: Spread,
    /// What the readings cost.
    pub overhead: f64,
    /// Locks that were found taken, and tried again; they are not among the samples.
    pub taken: u64,
}

/// Measures it.
pub fn measure(trial: &Trial) -> Measured {
    let lines: Vec<Line> = (0..trial.lines.max(1)).map(|_| Line::default()).collect();
    let threads = trial.threads.max(1);
    let start = Barrier::new(threads);
    let found: Vec<(Vec<f64>, u64)> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let core = (!trial.cores.is_empty()).then(|| trial.cores[thread % trial.cores.len()]);
            let (start, lines) = (&start, &lines[..]);
            scope.spawn(move || on_core(core, || take_locks(trial, thread, lines, start)))
        };
        let handles: Vec<_> = (0..threads).map(work).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let overhead = overhead();
    let taken = found.iter().map(|(_, taken)| taken).sum();
    let mut samples: Vec<f64> = found.into_iter().flat_map(|(samples, _)| samples).collect();
    Measured { ticks: Spread::of(&mut samples, overhead), overhead, taken }
}

fn take_locks(trial: &Trial, thread: usize, shared: &[Line], start: &Barrier) -> (Vec<f64>, u64) {
    let own: Vec<Line> = (0..OWN).map(|_| Line::default()).collect();
    let lines = if trial.way == Way::Uncontended { &own[..] } else { shared };
    let mut random = SplitMix::new(trial.seed.wrapping_add(thread as u64) << 1 | 1);
    let mut next = [0; AHEAD].map(|_: usize| random.below(lines.len() as u64) as usize);
    let mut samples = Vec::with_capacity(trial.samples);
    let mut taken = 0;
    // As many before the clock starts as it takes for lines to have been elsewhere, and no more than are measured.
    let warm_up = lines.len().min(trial.samples);
    start.wait();
    for number in 0..warm_up + trial.samples {
        let lock = &lines[next[number % AHEAD]].0;
        let later = random.below(lines.len() as u64) as usize;
        next[number % AHEAD] = later;
        if trial.way == Way::Prefetched {
            prefetch_write(&lines[later]);
        }
        let before = ticks();
        // Acquire: as a lock is taken. Pairs with the Release below, in whichever thread gave it back.
        let free = lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let after = ticks();
        if free {
            lock.store(0, Ordering::Release);
        } else {
            taken += 1;
        }
        if free && number >= warm_up {
            samples.push((after - before) as f64);
        }
    }
    (samples, taken)
}

/// Ticks between two readings with nothing between them.
pub(crate) fn overhead() -> f64 {
    let mut samples: Vec<f64> = (0..10_001)
        .map(|_| {
            let before = ticks();
            (ticks() - before) as f64
        })
        .collect();
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(way: Way, threads: usize) -> Trial {
        Trial { way, threads, cores: Vec::new(), lines: 1 << 12, samples: 5_000, seed: 1 }
    }

    #[test]
    fn each_way_has_all_its_samples() {
        for way in Way::ALL {
            let found = measure(&trial(way, 2));
            let samples = found.ticks.samples as u64;
            // Those found taken are no samples, of the measured part and of the one before.
            assert!(samples <= 10_000 && samples + found.taken >= 10_000, "{way:?}: {found:?}");
            assert!(found.ticks.p10 <= found.ticks.median && found.ticks.median <= found.ticks.p90);
            assert!(found.overhead > 0.0);
        }
    }
}
