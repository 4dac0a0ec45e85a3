//! A snapshot of the workers' counters while they run.
//!
//! ```text
//! requester   requested += 1 ─────────────────────▶ all replied: sum of the copies
//! worker      … burst, checks `requested` ─▶ stores a copy of its counters, between two bursts
//! ```
//!
//! Invariant: without a request a worker pays one load per burst.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::counters::{Changes, PacketCounters};
use super::report::FilterStats;

/// Counters of a running filter, collected from its workers.
#[derive(Debug)]
pub struct StatsSnapshot {
    /// Number of the latest request.
    requested: AtomicU64,
    /// One per worker.
    replies: Box<[Mutex<Reply>]>,
}

#[derive(Debug, Default)]
struct Reply {
    /// The request that this answers.
    request: u64,
    counters: Option<(PacketCounters, Changes)>,
}

impl StatsSnapshot {
    /// Creates a snapshot of `workers` workers.
    pub fn new(workers: usize) -> Self {
        let replies = (0..workers).map(|_| Mutex::default()).collect();
        Self { requested: AtomicU64::new(0), replies }
    }

    /// Requests the counters of all workers and returns the number of the request.
    pub fn request(&self) -> u64 {
        // Relaxed: no other memory is published with it.
        self.requested.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The sum over all workers, or `None` until all have replied to this request.
    pub fn reply(&self, request: u64) -> Option<FilterStats> {
        let mut all: Option<(PacketCounters, Changes)> = None;
        for reply in &self.replies {
            let reply = reply.lock().unwrap_or_else(PoisonError::into_inner);
            let (counters, changes) =
                reply.counters.clone().filter(|_| reply.request >= request)?;
            match &mut all {
                None => all = Some((counters, changes)),
                Some((sum, more)) => {
                    sum.add(counters);
                    more.add(changes);
                }
            }
        }
        all.map(|(counters, changes)| FilterStats::new(&counters, changes))
    }

    /// The latest request, unless it is `replied`, the one that a worker has replied to.
    #[inline]
    pub(super) fn pending(&self, replied: u64) -> Option<u64> {
        Some(self.requested.load(Ordering::Relaxed)).filter(|&request| request != replied)
    }

    /// Stores a worker's reply. With `u64::MAX`, at its end, it answers every later request.
    pub(super) fn store(
        &self,
        worker: usize,
        request: u64,
        counters: &PacketCounters,
        changes: &Changes,
    ) {
        let mut reply = self.replies[worker].lock().unwrap_or_else(PoisonError::into_inner);
        *reply = Reply { request, counters: Some((counters.clone(), changes.clone())) };
    }
}
