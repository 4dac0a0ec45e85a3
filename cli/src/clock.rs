//! Clocks, for what lives in real time: sending, receiving, and how long it took.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A clock that does not go back; 0 is when it was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "sending and waiting are done in real time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Nanoseconds since 1970-01-01 UTC, by the clock that received frames are stamped with.
#[expect(clippy::disallowed_methods, reason = "the time that a frame is sent at")]
pub(crate) fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
