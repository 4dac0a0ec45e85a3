//! What programs may tell the machine about memory: which blocks are large, and what will be read soon.
//!
//! [`Allocator`] is the program's allocator: the system's, with two additions.
//!
//! - The kernel is asked to back large blocks (flow tables, address maps) with huge pages: random
//!   reads over hundreds of megabytes then miss the TLB far less often. The tables themselves
//!   stay in safe code.
//! - Allocations are counted, so that a test can prove that the data path makes none.
//!
//! [`prefetch`] brings a line near before it is needed, so that the misses of many look-ups overlap;
//! [`prefetch_write`] also takes it away from other cores. [`ticks`] reads the processor's own counter.
//!
//! A crate of its own, so that those who use it need no `unsafe`.

mod ticks;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

pub use ticks::{TICK, ticks};

/// Blocks from this size on hold at least one whole huge page wherever they begin.
const LARGE: usize = 4 << 20;

const PAGE: usize = 4096;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// How many blocks have been allocated or resized since the start, if [`Allocator`] is the
/// program's global allocator; else 0.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

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

/// The global allocator; see the crate's head.
pub struct Allocator;

impl Allocator {
    /// Counts a new block and asks for huge pages if it is large.
    ///
    /// # Safety
    /// `block` is null or a live block of `size` bytes.
    unsafe fn account(block: *mut u8, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        if size >= LARGE && !block.is_null() {
            let before = block.align_offset(PAGE);
            let pages = (size - before) / PAGE * PAGE;
            // SAFETY: the pages lie wholly within the caller's live block, and
            // MADV_HUGEPAGE changes neither their contents nor their access rights.
            // JUSTIFICATION: docs/PERFORMANCE.md, "Huge pages".
            let _ = unsafe {
                rustix::mm::madvise(
                    block.add(before).cast(),
                    pages,
                    rustix::mm::Advice::LinuxHugepage,
                )
            };
        }
        block
    }
}

// SAFETY: every call goes to the system allocator with the caller's own arguments.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligation, passed on; the block is as large as the layout says.
        unsafe { Self::account(System.alloc(layout), layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { Self::account(System.alloc_zeroed(layout), layout.size()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligation, passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { Self::account(System.realloc(block, layout, new_size), new_size) }
    }
}
