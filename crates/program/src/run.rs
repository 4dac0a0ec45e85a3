//! What the attendant thread needs of a run: its stop request and its progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A run that can be stopped from outside.
pub trait Run: Sync {
    /// Requests the end.
    fn stop(&self);

    /// Whether the end was requested.
    fn is_stopped(&self) -> bool;

    /// Rounds of each of its threads. They grow while the thread makes progress; 0 is a thread that has not begun.
    fn rounds(&self) -> Vec<u64>;
}

/// A run with one loop.
#[derive(Debug, Default)]
pub struct Loop {
    stop: AtomicBool,
    rounds: AtomicU64,
}

impl Loop {
    /// A run that has not begun.
    pub const fn new() -> Self {
        Self { stop: AtomicBool::new(false), rounds: AtomicU64::new(0) }
    }

    /// Counts a round; returns whether the end was requested.
    pub fn ends(&self) -> bool {
        // Relaxed: neither carries data.
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.is_stopped()
    }
}

impl Run for Loop {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn rounds(&self) -> Vec<u64> {
        vec![self.rounds.load(Ordering::Relaxed)]
    }
}
