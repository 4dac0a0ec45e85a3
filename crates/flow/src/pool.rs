//! Values that few flows have: a flow has the position of its value, and gives it back for another flow.

use std::ops::{Index, IndexMut};

/// The values. A position is one more than an index, so that a flow without a value has 0.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    all: Vec<T>,
    /// Positions that no flow has.
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Memory of a value with its place among the free ones, bytes.
    pub(crate) const BYTES: u64 = (size_of::<T>() + size_of::<u32>()) as u64;

    /// Reserves address space for this number of values.
    pub(crate) fn reserve(&mut self, values: usize) {
        // If the system does not reserve that much, the pool grows when needed.
        let _ = self.all.try_reserve_exact(values);
    }

    /// Number of values that flows have.
    pub(crate) const fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Adds a value; returns its position.
    pub(crate) fn add(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self[place] = value;
            return place;
        }
        self.all.push(value);
        self.all.len() as u32
    }

    /// Whether the next value takes no more memory.
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes a position back, unless it is 0, which it is then.
    #[inline(always)]
    pub(crate) fn release(&mut self, place: &mut u32) {
        if *place > 0 {
            self.free.push(std::mem::take(place));
        }
    }

    /// The value at a position; `None` at 0.
    #[inline(always)]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.all.get((place as usize).wrapping_sub(1))
    }

    /// As [`Pool::get`].
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.all.get_mut((place as usize).wrapping_sub(1))
    }

    /// Values that are kept, and those of them that no flow has.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.all.len(), self.free.len())
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.all[(place as usize).wrapping_sub(1)]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.all[(place as usize).wrapping_sub(1)]
    }
}
