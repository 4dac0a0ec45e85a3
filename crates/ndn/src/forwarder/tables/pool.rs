//! A pool of values in numbered slots, with a fixed capacity. The slot freed last is reused first,
//! because it is probably cached.

#[derive(Debug)]
pub(super) struct Pool<T> {
    values: Vec<T>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Pool<T> {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(super::NONE as usize);
        Self { values: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), capacity }
    }

    /// Number of values that still fit.
    pub(super) fn room(&self) -> usize {
        self.capacity - self.values.len() + self.free.len()
    }

    /// Stores a value; returns its slot, or `None` if the pool is full.
    #[inline]
    pub(super) fn put(&mut self, value: T) -> Option<u32> {
        if let Some(at) = self.free.pop() {
            self.values[at as usize] = value;
            return Some(at);
        }
        self.put_new(value)
    }

    /// Takes a slot into use, with its old value, or a new one if it was never used; `None` if the
    /// pool is full.
    #[inline]
    pub(super) fn take(&mut self, new: impl FnOnce() -> T) -> Option<u32> {
        self.free.pop().or_else(|| self.put_new(new()))
    }

    #[cold]
    fn put_new(&mut self, value: T) -> Option<u32> {
        if self.values.len() == self.capacity {
            return None;
        }
        self.values.push(value);
        Some(self.values.len() as u32 - 1)
    }

    /// Prefetches the cache lines of a value.
    #[inline]
    pub(super) fn prefetch(&self, at: u32) {
        if let Some(value) = self.values.get(at as usize) {
            ringtap_base::prefetch_all(value);
        }
    }

    /// Prefetches the freed slot that will be reused after `others` other slots; returns its
    /// number.
    #[inline]
    pub(super) fn prefetch_free(&self, others: usize) -> Option<u32> {
        let at = *self.free.get(self.free.len().checked_sub(1 + others)?)?;
        self.prefetch(at);
        Some(at)
    }

    /// Frees a slot; its value stays readable until the slot is reused.
    pub(super) fn free(&mut self, at: u32) {
        self.free.push(at);
    }

    /// Number of slots ever used.
    pub(super) fn used(&self) -> u32 {
        self.values.len() as u32
    }

    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.values.get(at as usize)
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.values[at as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.values[at as usize]
    }
}
