//! Measures the ticks of a compare-and-swap that acquires a lock.
//!
//! ```text
//!  lock lines:   | 0 | . | . | 0 | . | . | 1 | …     a cache line each; threads lock them at random
//!                  └ naive: the line is in another core's cache or in none
//!                              └ prefetched: prefetched for writing, 16 locks ahead
//! ```
//!
//! That mixes lines in different states, as in the paper. The others separate them:
//!
//! | access | the line was last written by | and is now |
//! |---|---|---|
//! | uncontended | this core | in its cache |
//! | remote | the other core, in the turn before | modified in that core's cache: the paper's stale line |
//! | remote-prefetched | the other core, in the turn before | prefetched for writing, 16 locks ahead |
//! | evicted | this core, long ago | in memory: the lines take 256 MiB |
//!
//! The counter is read before and after each compare-and-swap. The ticks between two readings with
//! nothing in between are subtracted.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use ringtap_base::{prefetch_write, ticks};
use ringtap_skeleton::on_core;

use crate::exclusion::spread::Spread;
use ringtap_base::SplitMix;

/// Prefetch distance, in locks.
const AHEAD: usize = 16;

/// Private lock lines of a thread, for [`Access::Uncontended`].
const OWN: usize = 64;

/// Private lock lines of a thread, for [`Access::Evicted`]: more than caches hold.
const MANY: usize = 1 << 22;

/// Lock lines that two threads take in turns: a first-level cache holds them.
const TURN: usize = 128;

/// Polls after which a waiting thread yields, in case both threads share a core.
const SPINS: u32 = 1 << 10;

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
    /// Lines that the other thread has just modified.
    Remote,
    /// Lines that the other thread has just modified, prefetched for writing.
    RemotePrefetched,
    /// Private lines of the thread that its caches no longer hold.
    Evicted,
}

impl Access {
    /// All kinds of access.
    pub const ALL: [Self; 6] = [
        Self::Naive,
        Self::Prefetched,
        Self::Uncontended,
        Self::Remote,
        Self::RemotePrefetched,
        Self::Evicted,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Prefetched => "prefetched",
            Self::Uncontended => "uncontended",
            Self::Remote => "remote",
            Self::RemotePrefetched => "remote-prefetched",
            Self::Evicted => "evicted",
        }
    }

    /// Whether two threads take the same lines in turns.
    pub fn is_remote(self) -> bool {
        matches!(self, Self::Remote | Self::RemotePrefetched)
    }

    fn is_prefetched(self) -> bool {
        matches!(self, Self::Prefetched | Self::RemotePrefetched)
    }
}

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which lines are locked.
    pub access: Access,
    /// Threads that share the lines, at least 1; two take turns, whatever this is.
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
    let is_remote = trial.access.is_remote();
    let threads = if is_remote { 2 } else { trial.threads.max(1) };
    let count = match trial.access {
        Access::Naive | Access::Prefetched => trial.lines.max(1),
        // Every second line is used, because processors prefetch lines in pairs.
        Access::Remote | Access::RemotePrefetched => 2 * TURN,
        Access::Uncontended | Access::Evicted => 0,
    };
    let lines: Vec<Line> = (0..count).map(|_| Line::default()).collect();
    let (start, turn) = (Barrier::new(threads), AtomicUsize::new(0));
    let found: Vec<Taken> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let core = (!trial.cores.is_empty()).then(|| trial.cores[thread % trial.cores.len()]);
            let (start, turn, lines) = (&start, &turn, &lines[..]);
            scope.spawn(move || {
                on_core(core, || match is_remote {
                    true => take_turns(trial, thread, lines, turn),
                    false => take_locks(trial, thread, lines, start),
                })
            })
        };
        let handles: Vec<_> = (0..threads).map(work).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).collect()
    });
    let overhead = overhead();
    let taken = found.iter().map(|found| found.taken).sum();
    let mut samples: Vec<f64> = found.into_iter().flat_map(|found| found.samples).collect();
    Measured { ticks: Spread::of(&mut samples, overhead), overhead, taken }
}

/// What a thread measured.
struct Taken {
    samples: Vec<f64>,
    /// Compare-and-swaps that found the lock taken.
    taken: u64,
}

impl Taken {
    fn with_room(samples: usize) -> Self {
        Self { samples: Vec::with_capacity(samples), taken: 0 }
    }

    /// Takes and releases a lock; keeps its ticks if they count.
    #[inline]
    fn take(&mut self, lock: &AtomicU32, counts: bool) {
        let before = ticks();
        // Acquire, as in a real lock. Pairs with the Release below, in the thread that unlocked it.
        let free = lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let after = ticks();
        if free {
            lock.store(0, Ordering::Release);
        } else {
            self.taken += 1;
        }
        if free && counts {
            self.samples.push((after - before) as f64);
        }
    }
}

fn take_locks(trial: &Trial, thread: usize, shared: &[Line], start: &Barrier) -> Taken {
    let count = if trial.access == Access::Evicted { MANY } else { OWN };
    let is_own = matches!(trial.access, Access::Uncontended | Access::Evicted);
    let own: Vec<Line> = (0..if is_own { count } else { 0 }).map(|_| Line::default()).collect();
    let lines = if is_own { &own[..] } else { shared };
    let mut random = SplitMix::new(trial.seed.wrapping_add(thread as u64) << 1 | 1);
    let mut next = [0; AHEAD].map(|_: usize| random.below(lines.len() as u64) as usize);
    let mut found = Taken::with_room(trial.samples);
    // Enough uncounted operations that most shared lines have been in other caches, and no more than
    // are measured.
    let warm_up = lines.len().min(trial.samples);
    start.wait();
    for number in 0..warm_up + trial.samples {
        let lock = &lines[next[number % AHEAD]].0;
        let later = random.below(lines.len() as u64) as usize;
        next[number % AHEAD] = later;
        if trial.access.is_prefetched() {
            prefetch_write(&lines[later]);
        }
        found.take(lock, number >= warm_up);
    }
    found
}

/// Takes all locks, after the other thread has taken all of them, in a new random order each time.
fn take_turns(trial: &Trial, thread: usize, lines: &[Line], turn: &AtomicUsize) -> Taken {
    let mut random = SplitMix::new(trial.seed.wrapping_add(thread as u64) << 1 | 1);
    let mut order: Vec<usize> = (0..TURN).map(|number| 2 * number).collect();
    let mut found = Taken::with_room(trial.samples + TURN);
    // The first turn of each thread does not count: the lines may be in no cache yet.
    for own in 0..=trial.samples.div_ceil(TURN) {
        for at in (1..TURN).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut spins = 0u32;
        // Waiting does not sleep, so that the core keeps its clock rate and its cache. Pairs with the
        // Release below.
        while turn.load(Ordering::Acquire) != 2 * own + thread {
            spins += 1;
            if spins.is_multiple_of(SPINS) { std::thread::yield_now() } else { spin_loop() }
        }
        if trial.access.is_prefetched() {
            order[..AHEAD].iter().for_each(|&at| prefetch_write(&lines[at]));
        }
        for (number, &at) in order.iter().enumerate() {
            if trial.access.is_prefetched() && number + AHEAD < TURN {
                prefetch_write(&lines[order[number + AHEAD]]);
            }
            found.take(&lines[at].0, own > 0);
        }
        turn.store(2 * own + thread + 1, Ordering::Release);
    }
    found
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
            // Turns are complete.
            let wanted =
                if access.is_remote() { 2 * 5_000_u64.next_multiple_of(128) } else { 10_000 };
            // `taken` counts failures of the warm-up, too.
            assert!(samples <= wanted && samples + found.taken >= wanted, "{access:?}: {found:?}");
            assert!(found.ticks.p10 <= found.ticks.median && found.ticks.median <= found.ticks.p90);
            assert!(found.overhead > 0.0);
        }
    }
}
