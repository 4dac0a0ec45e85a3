//! Prefetching: a cache line is loaded before it is needed, so that the misses of many look-ups
//! overlap.

/// Prefetches the cache line in which `value` begins. A hint: on processors without the instruction
/// it does nothing.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_line(std::ptr::from_ref(value).cast());
}

/// Prefetches all cache lines of `value`, which must begin at the start of a line.
#[inline(always)]
pub fn prefetch_all<T>(value: &T) {
    for offset in (0..size_of::<T>()).step_by(64) {
        prefetch_line(std::ptr::from_ref(value).cast::<i8>().wrapping_add(offset));
    }
}

#[inline(always)]
fn prefetch_line(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes anything that a program can see.
    // JUSTIFICATION: docs/PERFORMANCE.md, "Prefetching".
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// As [`prefetch`], for a line that will be written: it is removed from the caches of other cores.
#[inline(always)]
pub fn prefetch_write<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch`. Processors without the instruction do nothing.
    // JUSTIFICATION: docs/LAB.md, "Mutual exclusion in an NDN router"; the compiler's hint
    // is a prefetch for reading.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) std::ptr::from_ref(value),
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    prefetch(value);
}
