//! The time, from the system.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock that never goes back.
pub(crate) fn now_ns() -> u64 {
    now(ClockId::Monotonic)
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    now(ClockId::Realtime) / 1_000_000
}

fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64
}
