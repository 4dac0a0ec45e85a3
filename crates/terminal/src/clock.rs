//! A clock, for commands that live in real time: sending, receiving, and how long it took.

use std::time::Instant;

/// A clock that does not go back; 0 is when it was made.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[expect(clippy::disallowed_methods, reason = "sending and waiting are done in real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since it was made.
    pub fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// The same in seconds.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
