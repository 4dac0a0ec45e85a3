//! What can be seen of a run from outside while it goes on, and the one thing that can be done.

use std::sync::atomic::{AtomicBool, Ordering};

use ringtap_metrics::Counter;
use ringtap_skeleton::MOST_QUEUES;

/// Progress, written by the feeds alone, and the request to stop.
#[derive(Debug, Default)]
pub struct Watch {
    /// Packets read so far.
    pub packets: Gauge,
    /// Bytes read so far: of files as they lie on disk, of frames as they were captured.
    pub bytes: Gauge,
    /// Packets lost so far before they could be read.
    pub dropped: Gauge,
    /// Packets left out so far because more came than can be worked off.
    pub shed: Gauge,
    /// Packets that came by another queue than what passed between the same addresses before.
    pub split: Gauge,
    stop: AtomicBool,
}

impl Watch {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self {
            packets: Gauge::new(),
            bytes: Gauge::new(),
            dropped: Gauge::new(),
            shed: Gauge::new(),
            split: Gauge::new(),
            stop: AtomicBool::new(false),
        }
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

/// A number that each queue has its own part of.
#[derive(Debug)]
pub struct Gauge([Part; MOST_QUEUES]);

/// A cache line of its own: queues write theirs all the time.
#[derive(Debug)]
#[repr(align(64))]
struct Part(Counter);

impl Gauge {
    const fn new() -> Self {
        Self([const { Part(Counter::new()) }; MOST_QUEUES])
    }

    /// Adds to the part of a queue, whose thread alone does so.
    pub fn add(&self, queue: usize, more: u64) {
        self.0[queue].0.add(more);
    }

    /// Sets the part of a queue, which never falls; its thread alone does so.
    pub fn set(&self, queue: usize, to: u64) {
        let own = &self.0[queue].0;
        own.add(to.saturating_sub(own.get()));
    }

    /// All parts together.
    pub fn get(&self) -> u64 {
        self.0.iter().map(|part| part.0.get()).sum()
    }

    /// The parts of the first queues.
    pub fn parts(&self, queues: usize) -> Vec<u64> {
        self.0.iter().take(queues).map(|part| part.0.get()).collect()
    }
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new()
    }
}
