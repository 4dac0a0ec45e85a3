//! Partial results that wait until all workers have passed their mark.

use std::collections::BTreeMap;

use crate::analyses::Found;

/// Most memory of partial results that wait until all workers have passed their mark, bytes.
pub(crate) const HELD_BYTES: u64 = 1 << 20;

/// Partial results of marks that not all workers have passed. They are merged in the order of marks, so alerts do not
/// depend on which worker is faster. If they have no room, the earliest are merged at once.
#[derive(Default)]
pub(crate) struct Held {
    /// By mark and worker.
    all: BTreeMap<(u64, usize), Found>,
    pub(crate) bytes: usize,
}

impl Held {
    /// Memory of one besides its items.
    const ROW_BYTES: usize = 2 * size_of::<((u64, usize), Found)>();

    fn bytes_of(found: &Found) -> usize {
        Self::ROW_BYTES + found.waiting_bytes()
    }

    pub(crate) fn insert(&mut self, mark: u64, worker: usize, found: Found) {
        self.bytes += Self::bytes_of(&found);
        self.all.insert((mark, worker), found);
    }

    /// Takes the earliest, if its mark is before this one or there is no room for it.
    pub(crate) fn take(&mut self, end: u64) -> Option<Found> {
        let first = self.all.first_entry()?;
        if first.key().0 >= end && self.bytes <= HELD_BYTES as usize {
            return None;
        }
        let found = first.remove();
        self.bytes -= Self::bytes_of(&found);
        Some(found)
    }
}
