//! Sources that may be scanning, shared by all workers.
//!
//! A worker owns pairs of addresses, so the attempts of a source are distributed over workers. If a
//! source has more failed attempts on one port than the threshold, some worker has seen more than
//! its share of the threshold. It marks the source, and from the next mark on all workers hand over
//! their attempts of it.
//!
//! Sources share bits by their hash, so there may be too many suspects, never too few.

use std::ops::Range;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Buckets of sources by their hash.
pub(super) const BUCKETS: usize = 1 << 16;

/// The bucket of a source by its hash, whose upper bits are the number of its part of the table.
#[inline(always)]
pub(super) const fn bucket(source_hash: u32) -> usize {
    (source_hash >> 16) as usize
}

/// A bit for each bucket, never cleared.
pub struct Suspects {
    buckets: Vec<AtomicU64>,
    marks: AtomicU64,
}

impl Default for Suspects {
    fn default() -> Self {
        let buckets = (0..BUCKETS / 64).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, marks: AtomicU64::new(0) }
    }
}

impl Suspects {
    #[cold]
    pub(super) fn mark(&self, bucket: usize) {
        self.buckets[bucket / 64].fetch_or(1 << (bucket % 64), Relaxed);
        self.marks.fetch_add(1, Release);
    }

    /// Number of marks: unless it has grown, no bucket has been marked.
    pub(super) fn marks(&self) -> u64 {
        self.marks.load(Acquire)
    }

    #[inline(always)]
    pub(super) fn has(&self, bucket: usize) -> bool {
        self.buckets[bucket / 64].load(Relaxed) >> (bucket % 64) & 1 != 0
    }

    /// Number of marked buckets in a range; both ends are multiples of 64.
    pub(super) fn count(&self, buckets: Range<usize>) -> u32 {
        let words = &self.buckets[buckets.start / 64..buckets.end / 64];
        words.iter().map(|word| word.load(Relaxed).count_ones()).sum()
    }
}
