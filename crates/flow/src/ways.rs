//! The paths of flows, by number, and which one is the mirror of another.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use ringtap_wire::{Path, Paths};

use crate::record::reverse_of;

/// The paths. They keep their numbers, so the latest pair needs no other look.
pub(crate) struct Ways {
    paths: Arc<Paths>,
    /// The latest pair of which a record has the first alone: most flows have it.
    one_way: Cell<[u16; 2]>,
}

impl Ways {
    pub(crate) fn new(paths: Arc<Paths>) -> Self {
        // Number 0 is the unknown path.
        Self { paths, one_way: Cell::new([0, 0]) }
    }

    /// The second path as a record has it: only if it is known and not the mirror of the first.
    #[inline(always)]
    pub(crate) fn reverse(&self, path: u16, back: u16) -> Option<Box<Path>> {
        if self.one_way.get() == [path, back] {
            return None;
        }
        self.compare(path, back)
    }

    #[cold]
    fn compare(&self, path: u16, back: u16) -> Option<Box<Path>> {
        let reverse = reverse_of(self.paths.get(path), self.paths.get(back));
        if reverse.is_none() {
            self.one_way.set([path, back]);
        }
        reverse
    }
}

impl Deref for Ways {
    type Target = Paths;

    fn deref(&self) -> &Paths {
        &self.paths
    }
}
