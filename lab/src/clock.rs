//! The current date, and the processor time of a thread.

use rustix::time::{ClockId, clock_gettime};

/// Today in UTC, as 2026-11-22.
pub(crate) fn today() -> String {
    let (year, month, day) = ringtap_base::civil(ringtap_base::now_ns() / 86_400_000_000_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Nanoseconds that the calling thread has run so far.
pub(crate) fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
