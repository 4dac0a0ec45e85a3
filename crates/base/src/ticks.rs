//! The processor's time stamp counter: the only clock that is fine enough for single instructions.
//!
//! Invariant: a reading waits for all earlier instructions, and no later one starts before it. It
//! measures experiments and reaches no analysis.

/// The unit of [`ticks`] on this machine.
pub const TICK: &str = if cfg!(target_arch = "x86_64") { "cycles" } else { "nanoseconds" };

/// Cycles of the time stamp counter, which has a constant rate; on other architectures nanoseconds
/// of the monotonic clock.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: x86-64 has these instructions; they only read a counter and keep instructions in order.
    // JUSTIFICATION: a system call takes longer than the measured instructions.
    unsafe {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let before = ticks();
        let sum: u64 = std::hint::black_box((0..100_000u64).map(|n| n * n % 7).sum());
        assert!(sum > 0 && ticks() > before);
    }
}
