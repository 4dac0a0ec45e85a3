//! What can be seen of a run from outside while it goes on, and the one thing that can be done.

use std::sync::atomic::{AtomicBool, Ordering};

use ringtap_metrics::Counter;

/// Progress, written by the feed alone, and the request to stop.
#[derive(Debug, Default)]
pub struct Watch {
    /// Packets read so far.
    pub packets: Counter,
    /// Bytes read so far of the files as they lie on disk.
    pub bytes: Counter,
    stop: AtomicBool,
}

impl Watch {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self { packets: Counter::new(), bytes: Counter::new(), stop: AtomicBool::new(false) }
    }

    /// Asks the run to read no further: all flows are flushed and the report is made.
    pub fn stop(&self) {
        // Relaxed: it carries no data; the feed looks once a burst.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop. A source that waits for bytes should look now and then.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
