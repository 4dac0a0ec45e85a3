//! Rows at fixed positions, for state that few flows need.

/// Rows, and the positions of those that are free.
#[derive(Debug)]
pub(super) struct Slab<T> {
    rows: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// Reserves address space for this number of rows. If the system does not reserve that much, the slab grows when
    /// needed.
    pub(super) fn reserve(&mut self, rows: usize) {
        let _ = self.rows.try_reserve_exact(rows);
    }

    /// Adds a row; returns its position.
    #[inline]
    pub(super) fn add(&mut self, row: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.rows[at as usize] = row;
                at
            }
            None => {
                self.rows.push(row);
                self.rows.len() as u32 - 1
            }
        }
    }

    /// Frees the position of a row.
    #[inline]
    pub(super) fn remove(&mut self, at: u32) {
        self.free.push(at);
        if self.free.len() == self.rows.len() {
            self.rows.clear();
            self.free.clear();
        }
    }

    /// A row, if there is one at this position.
    #[inline(always)]
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.rows.get(at as usize)
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, at: u32) -> &mut T {
        &mut self.rows[at as usize]
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), free: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_used_again() {
        let mut slab = Slab::default();
        let places = [10, 11, 12].map(|row| slab.add(row));
        assert_eq!(places, [0, 1, 2]);
        slab.remove(1);
        assert_eq!((slab.add(13), slab.get(1).copied(), slab.add(14)), (1, Some(13), 3));
        (0..4).for_each(|at| slab.remove(at));
        assert_eq!((slab.get(0).copied(), slab.add(15)), (None, 0));
    }
}
