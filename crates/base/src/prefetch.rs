//! What will be read soon: a line is brought near before it is needed, so that the misses of many look-ups overlap.

/// Brings the cache line in which `value` begins near, without waiting for it. A hint: where the processor has no such
/// instruction nothing happens.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes anything that a program can see.
    // JUSTIFICATION: docs/PERFORMANCE.md, "Prefetching".
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// As [`prefetch`], for a line that will be written: other cores lose it.
#[inline(always)]
pub fn prefetch_write<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch`. Processors that do not know the instruction do nothing.
    // JUSTIFICATION: docs/NDN.md, "A compare-and-swap"; the compiler's own hint becomes one for reading.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) std::ptr::from_ref(value),
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    prefetch(value);
}
