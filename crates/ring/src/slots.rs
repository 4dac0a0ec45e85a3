//! The memory of a ring: slots that are vacant or hold an item, and the indices that name them.
//!
//! ```text
//! index  0 1 2 3 4 5 | 6 7 8 9 10 11      capacity 6: indices run through 0..2 × capacity, so
//! slot   0 1 2 3 4 5 | 0 1 2 3  4  5      that full (distance 6) and empty (distance 0) differ
//! ```
//!
//! Wrap-around is a comparison, not a mask: every capacity is exact, no slot is wasted, and an
//! index never overflows. The comparison costs less than a cycle, next to the slot's own cache
//! line.
//!
//! Slots do not check access rights: the flavours ensure them. Under loom each slot has a tracker,
//! and every access is an access of the tracker, so loom sees data races on items.

use crate::sync::{Arc, AtomicUsize, Edge, observe};
use alloc::{boxed::Box, vec::Vec};
use core::{cell::UnsafeCell, error::Error, fmt, mem::MaybeUninit, ptr, slice};

/// A ring cannot have this capacity: it is zero, or its slots do not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCapacity {
    /// The capacity asked for, in items.
    pub capacity: usize,
}

impl fmt::Display for InvalidCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.capacity {
            0 => write!(f, "a ring needs a capacity of at least 1 item"),
            n => write!(f, "a ring of {n} items does not fit in memory"),
        }
    }
}

impl Error for InvalidCapacity {}

/// Allocates `capacity` values, or returns that they do not fit.
pub(crate) fn allocate<S>(
    capacity: usize,
    make: impl FnMut() -> S,
) -> Result<Box<[S]>, InvalidCapacity> {
    let error = InvalidCapacity { capacity };
    // Half of the address space: indices run to twice the capacity, also for items of no size.
    if capacity == 0 || capacity > isize::MAX as usize / 2 {
        return Err(error);
    }
    let mut slots = Vec::new();
    slots.try_reserve_exact(capacity).map_err(|_| error)?;
    slots.resize_with(capacity, make);
    Ok(slots.into_boxed_slice())
}

/// Arithmetic of indices in `0..2 × capacity`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexSpace {
    /// At least 1, at most `isize::MAX / 2`.
    pub(crate) capacity: usize,
}

impl IndexSpace {
    /// The slot that an index names.
    #[inline(always)]
    pub(crate) const fn slot(self, index: usize) -> usize {
        if index >= self.capacity { index - self.capacity } else { index }
    }

    /// The index `n` after `index`; `n` is at most the capacity. The paper's NEXT for `n` = 1.
    #[inline(always)]
    pub(crate) const fn forward(self, index: usize, n: usize) -> usize {
        let sum = index + n;
        if sum >= 2 * self.capacity { sum - 2 * self.capacity } else { sum }
    }

    /// How many slots from `from` on lie before `to`: 0 to capacity.
    #[inline(always)]
    pub(crate) const fn distance(self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + 2 * self.capacity - from }
    }

    /// How many of the `n` slots from `index` on are contiguous before the wrap-around.
    #[inline(always)]
    pub(crate) fn contiguous(self, index: usize, n: usize) -> usize {
        n.min(self.capacity - self.slot(index))
    }
}

/// Slots in contiguous memory. The flavour tracks which slots hold items: dropping `Slots` drops no
/// item.
pub(crate) struct Slots<T> {
    cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    #[cfg(loom)]
    trackers: Box<[loom::cell::UnsafeCell<()>]>,
}

// SAFETY: all access goes through the unsafe methods, whose callers promise that no two threads
// touch a slot at once; items then move from thread to thread, for which `T: Send` is enough.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    pub(crate) fn new(capacity: usize) -> Result<Self, InvalidCapacity> {
        Ok(Self {
            cells: allocate(capacity, || UnsafeCell::new(MaybeUninit::uninit()))?,
            #[cfg(loom)]
            trackers: allocate(capacity, || loom::cell::UnsafeCell::new(()))?,
        })
    }

    #[inline(always)]
    pub(crate) fn space(&self) -> IndexSpace {
        IndexSpace { capacity: self.cells.len() }
    }

    /// Fills a slot.
    ///
    /// # Safety
    /// `slot` < capacity; the slot is vacant and the caller's.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, slot: usize, value: T) {
        self.track_write(slot, 1);
        // SAFETY: in bounds and exclusive to the caller, as promised.
        unsafe { self.at(slot).write(value) }
    }

    /// Fills slots with copies.
    ///
    /// # Safety
    /// `first + values.len()` ≤ capacity; the slots are vacant and the caller's.
    #[inline(always)]
    pub(crate) unsafe fn copy_in(&self, first: usize, values: &[T])
    where
        T: Copy,
    {
        self.track_write(first, values.len());
        // SAFETY: in bounds and exclusive to the caller, as promised; so `values` cannot overlap them.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.at(first), values.len()) }
    }

    /// Fills the `n` slots from `first` on with what `make(0)`, `make(1)`, … return, and adds each to
    /// `filled`, so that the sum is right even if `make` panics.
    ///
    /// # Safety
    /// `first + n` ≤ capacity; the slots are vacant and the caller's.
    #[inline(always)]
    pub(crate) unsafe fn fill(
        &self,
        first: usize,
        n: usize,
        filled: &mut usize,
        mut make: impl FnMut(usize) -> T,
    ) {
        // SAFETY: in bounds, as promised. Computed once: for the compiler a written item could be
        // anywhere, also where this pointer is kept.
        let slots = unsafe { self.at(first) };
        for i in 0..n {
            let value = make(i);
            self.track_write(first + i, 1);
            // SAFETY: in bounds and exclusive to the caller, as promised.
            unsafe { slots.add(i).write(value) };
            *filled += 1;
        }
    }

    /// Empties a slot.
    ///
    /// # Safety
    /// `slot` < capacity; the slot holds an item and is the caller's. It is vacant afterwards.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, slot: usize) -> T {
        self.track_write(slot, 1);
        // SAFETY: in bounds, holds an item and is exclusive to the caller, as promised.
        unsafe { self.at(slot).read() }
    }

    /// The items in some slots.
    ///
    /// # Safety
    /// `first + n` ≤ capacity; the slots hold items and stay the caller's while the slice lives.
    #[inline(always)]
    pub(crate) unsafe fn items(&self, first: usize, n: usize) -> &[T] {
        self.track_read(first, n);
        // SAFETY: in bounds, initialised and not written while borrowed, as promised.
        unsafe { slice::from_raw_parts(self.at(first), n) }
    }

    /// Drops the items in some slots. If one of them panics, the others are still dropped.
    ///
    /// # Safety
    /// `first + n` ≤ capacity; the slots hold items and are the caller's, who counts them as
    /// vacant even if this panics.
    #[inline(always)]
    pub(crate) unsafe fn drop_items(&self, first: usize, n: usize) {
        self.track_write(first, n);
        // SAFETY: in bounds, initialised and exclusive to the caller, as promised.
        unsafe { ptr::slice_from_raw_parts_mut(self.at(first), n).drop_in_place() }
    }

    /// Drops the items between two indices, wrap-around included.
    ///
    /// # Safety
    /// As for [`Self::drop_items`].
    pub(crate) unsafe fn drop_between(&self, from: usize, to: usize) {
        let space = self.space();
        let n = space.distance(from, to);
        let contiguous = space.contiguous(from, n);
        let rest = DropRest { slots: self, n: n - contiguous };
        // SAFETY: the slots of one piece, of those that the caller promised.
        unsafe { self.drop_items(space.slot(from), contiguous) }
        drop(rest);
    }

    /// Prefetches the cache lines of `n` slots from `first` on, up to the wrap-around, for writing
    /// by this core. A hint: it changes nothing.
    #[inline(always)]
    pub(crate) fn prefetch_for_write(&self, first: usize, n: usize) {
        self.each_line(first, n, |_line| {
            #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
            // SAFETY: a prefetch reads and writes nothing and cannot fault. Not the intrinsic:
            // without the target feature, which no baseline has, it prefetches for reading. On
            // processors without the instruction it is a no-op.
            unsafe {
                core::arch::asm!("prefetchw [{}]", in(reg) _line, options(nostack, preserves_flags));
            }
        });
    }

    /// Prefetches the cache lines of `n` slots from `first` on, all at once, so that sequential
    /// reads do not wait for each. A hint: it changes nothing.
    #[inline(always)]
    pub(crate) fn prefetch_for_read(&self, first: usize, n: usize) {
        self.each_line(first, n, |_line| {
            #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
            // SAFETY: a prefetch has no visible effect and cannot fault.
            unsafe {
                core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                    _line.cast(),
                );
            }
        });
    }

    #[inline(always)]
    fn each_line(&self, first: usize, n: usize, hint: impl Fn(*const T)) {
        let end = self.cells.len().min(first + n);
        // SAFETY: `end` ≤ capacity, and `first` is not used if it lies behind `end`.
        let (mut line, end) = unsafe { (self.at(first.min(end)), self.at(end)) };
        while line < end {
            hint(line);
            line = line.wrapping_byte_add(64);
        }
    }

    /// Pointer to a slot, valid for all slots from there to the end.
    ///
    /// # Safety
    /// `slot` ≤ capacity.
    #[inline(always)]
    unsafe fn at(&self, slot: usize) -> *mut T {
        debug_assert!(slot <= self.cells.len());
        // SAFETY: within the allocation or just after it, as promised.
        UnsafeCell::raw_get(unsafe { self.cells.as_ptr().add(slot) }).cast()
    }

    #[inline(always)]
    fn track_read(&self, _first: usize, _n: usize) {
        #[cfg(loom)]
        self.trackers[_first.._first + _n].iter().for_each(|t| t.with(|_| ()));
    }

    #[inline(always)]
    fn track_write(&self, _first: usize, _n: usize) {
        #[cfg(loom)]
        self.trackers[_first.._first + _n].iter().for_each(|t| t.with_mut(|_| ()));
    }
}

/// Drops the items from slot 0 on, also when those before the wrap-around panicked.
struct DropRest<'a, T> {
    slots: &'a Slots<T>,
    n: usize,
}

impl<T> Drop for DropRest<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the second piece of what the caller of `drop_between` promised.
        unsafe { self.slots.drop_items(0, self.n) }
    }
}

/// A single slot, for rings that keep something beside each item. Dropping it drops no item.
pub(crate) struct Slot<T> {
    cell: UnsafeCell<MaybeUninit<T>>,
    #[cfg(loom)]
    tracker: loom::cell::UnsafeCell<()>,
}

// SAFETY: as for `Slots`.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    pub(crate) fn new() -> Self {
        Self {
            cell: UnsafeCell::new(MaybeUninit::uninit()),
            #[cfg(loom)]
            tracker: loom::cell::UnsafeCell::new(()),
        }
    }

    /// Fills the slot.
    ///
    /// # Safety
    /// The slot is vacant and the caller's.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, value: T) {
        #[cfg(loom)]
        self.tracker.with_mut(|_| ());
        // SAFETY: exclusive to the caller, as promised.
        unsafe { self.cell.get().cast::<T>().write(value) }
    }

    /// Empties the slot.
    ///
    /// # Safety
    /// The slot holds an item and is the caller's. It is vacant afterwards.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> T {
        #[cfg(loom)]
        self.tracker.with_mut(|_| ());
        // SAFETY: holds an item and is exclusive to the caller, as promised.
        unsafe { self.cell.get().cast::<T>().read() }
    }

    /// The item in the slot.
    ///
    /// # Safety
    /// The slot holds an item and stays the caller's while the reference lives.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> &T {
        #[cfg(loom)]
        self.tracker.with(|_| ());
        // SAFETY: holds an item that is not written while borrowed, as promised.
        unsafe { &*self.cell.get().cast::<T>() }
    }
}

/// Slots with two shared indices: the common part of Lamport's ring and MCRingBuffer. `L` is the
/// layout of the indices.
///
/// Invariant: the slots from `read` up to `write` hold items; when both handles are gone, no others.
pub(crate) struct Indexed<T, L: Layout> {
    pub(crate) index: L,
    pub(crate) slots: Slots<T>,
}

/// The layout of the shared indices.
pub(crate) trait Layout: Default {
    /// Next slot to empty; written by the consumer only.
    fn read(&self) -> &AtomicUsize;
    /// Next slot to fill; written by the producer only.
    fn write(&self) -> &AtomicUsize;
}

impl<T, L: Layout> Indexed<T, L> {
    pub(crate) fn new(capacity: usize) -> Result<Arc<Self>, InvalidCapacity> {
        Ok(Arc::new(Self { index: L::default(), slots: Slots::new(capacity)? }))
    }
}

impl<T, L: Layout> Drop for Indexed<T, L> {
    fn drop(&mut self) {
        let read = observe(Edge::Slots, self.index.read());
        let write = observe(Edge::Items, self.index.write());
        // SAFETY: the handles are gone and published their indices, so these slots hold items
        // and no other reference exists.
        unsafe { self.slots.drop_between(read, write) }
    }
}
