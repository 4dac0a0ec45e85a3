//! Measures the ticks of a compare-and-swap that acquires a lock.
//!
//! ```text
//!  lock lines:   | 0 | . | . | 0 | . | . | 1 | …     a cache line each; threads lock them at random
//!                  └ naive: the line is in another core's cache or in none
//!                              └ prefetched: prefetched for writing, 16 locks ahead
//!  uncontended:  64 lines of the thread's own, always in its cache
//! ```
//!
//! The counter is read before and after each compare-and-swap. The ticks between two readings with
//! nothing in between are subtracted.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use ringtap_base::{prefetch_write, ticks};
use ringtap_skeleton::on_core;

use crate::exclusion::spread::Spread;
use ringtap_base::SplitMix;

/// Prefetch distance, in locks.
const AHEAD: usize = 16;

/// Private lock lines of a thread, for [`Access::Uncontended`].
const OWN: usize = 64;

/// A lock, alone on its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU32);

/// Which lines are locked, and whether they are prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Shared lines, not prefetched.
    Naive,
    /// Shared lines, prefetched for writing.
    Prefetched,
    /// Private lines of the thread.
    Uncontended,
}

impl Access {
    /// All kinds of access.
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

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which lines are locked.
    pub access: Access,
    /// Threads that share the lines, at least 1.
    pub threads: usize,
    /// Cores that threads are pinned to, in turn; if empty, threads are not pinned.
    pub cores: Vec<usize>,
    /// Shared lock lines, at least 1; the paper has 2^20.
    pub lines: usize,
    /// Compare-and-swaps of each thread.
    pub samples: usize,
    /// Seed of the order of the locks.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Ticks of a compare-and-swap, less `overhead`.
    pub ticks: Spread,
    /// Ticks of the two counter readings.
    pub overhead: f64,
    /// Compare-and-swaps that found the lock taken; not among the samples.
    pub taken: u64,
}

/// Runs the trial.
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
    let lines = if trial.access == Access::Uncontended { &own[..] } else { shared };
    let mut random = SplitMix::new(trial.seed.wrapping_add(thread as u64) << 1 | 1);
    let mut next = [0; AHEAD].map(|_: usize| random.below(lines.len() as u64) as usize);
    let mut samples = Vec::with_capacity(trial.samples);
    let mut taken = 0;
    // Enough uncounted operations that most lines have been in other caches, and no more than are
    // measured.
    let warm_up = lines.len().min(trial.samples);
    start.wait();
    for number in 0..warm_up + trial.samples {
        let lock = &lines[next[number % AHEAD]].0;
        let later = random.below(lines.len() as u64) as usize;
        next[number % AHEAD] = later;
        if trial.access == Access::Prefetched {
            prefetch_write(&lines[later]);
        }
        let before = ticks();
        // Acquire, as in a real lock. Pairs with the Release below, in the thread that unlocked it.
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

    fn trial(access: Access, threads: usize) -> Trial {
        Trial { access, threads, cores: Vec::new(), lines: 1 << 12, samples: 5_000, seed: 1 }
    }

    #[test]
    fn each_kind_of_access_yields_all_its_samples() {
        for access in Access::ALL {
            let found = measure(&trial(access, 2));
            let samples = found.ticks.samples as u64;
            // `taken` counts failures of the warm-up, too.
            assert!(samples <= 10_000 && samples + found.taken >= 10_000, "{access:?}: {found:?}");
            assert!(found.ticks.p10 <= found.ticks.median && found.ticks.median <= found.ticks.p90);
            assert!(found.overhead > 0.0);
        }
    }
}
