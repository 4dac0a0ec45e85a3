//! The system clocks, for real-time work: receiving, sending, waiting. Analyses use packet time
//! only.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since 1970-01-01 UTC, by the clock that the kernel stamps frames with; 0 before 1970.
#[inline]
pub fn now_ns() -> u64 {
    read(ClockId::Realtime)
}

/// Nanoseconds of a monotonic clock that stops while the machine sleeps.
#[inline]
pub fn steady_ns() -> u64 {
    read(ClockId::Monotonic)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64
}

/// A stopwatch on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts a stopwatch.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads this clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// The time since the start, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.elapsed().as_nanos() as u64
    }

    /// The time since the start, seconds.
    pub fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
