//! The program's allocator: the system's, with two additions.
//!
//! - Huge pages are requested for large blocks (flow tables, address maps), because random reads over hundreds of
//!   megabytes then miss the TLB far less often. Done here, it needs no unsafe code in the tables.
//! - Allocations are counted, so that a test can check that the data path makes none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of this many bytes or more contain a whole huge page (2 MiB) at any alignment.
const LARGE: usize = 4 << 20;

/// Bytes of an ordinary page.
const PAGE: usize = 4096;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// How many blocks have been allocated or resized since the start, if [`Allocator`] is the
/// program's global allocator; else 0.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// The system's allocator, with huge pages for large blocks and a count of allocations.
pub struct Allocator;

impl Allocator {
    /// Counts a new block and requests huge pages if it is large.
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
        // SAFETY: the caller ensures what `System.alloc` requires; the block is as large as the layout says.
        unsafe { Self::account(System.alloc(layout), layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { Self::account(System.alloc_zeroed(layout), layout.size()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller ensures what `System.dealloc` requires.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { Self::account(System.realloc(block, layout, new_size), new_size) }
    }
}
