//! Two cores with caches that are kept coherent, as a model.
//!
//! MESI by M. S. Papamarcos and J. H. Patel, "A Low-Overhead Coherence Solution for Multiprocessors
//! with Private Cache Memories" (1984), with caches that never run full: a ring of 2,000 items of 8
//! bytes is a fraction of a real one, so what misses, misses because the *other* core wrote the line.
//! Each core has a clock; whoever is behind moves next.

use std::collections::HashMap;

/// Cycles of an access that the own cache answers, and of one that it does not.
const HIT: u64 = 4;
const MISS: u64 = 120;

/// One of the two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    Producer,
    Consumer,
}

/// Who has a line, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// One core alone, clean or written to.
    Owned(usize),
    /// Both, unchanged.
    Shared,
}

#[derive(Default)]
pub(super) struct Caches {
    lines: HashMap<u64, Line>,
    /// In cycles, a core each.
    clocks: [u64; 2],
    /// Reads that the own cache could not answer, of both cores.
    pub(super) load_misses: u64,
}

impl Caches {
    pub(super) fn load(&mut self, core: Core, line: u64) {
        let me = core as usize;
        let (next, hit) = match self.lines.get(&line) {
            Some(Line::Owned(owner)) if *owner == me => (Line::Owned(me), true),
            Some(Line::Shared) => (Line::Shared, true),
            Some(Line::Owned(_)) => (Line::Shared, false),
            None => (Line::Owned(me), false),
        };
        self.lines.insert(line, next);
        self.load_misses += u64::from(!hit);
        self.clocks[me] += if hit { HIT } else { MISS };
    }

    /// A store waits as long, but the paper's counter counts loads.
    pub(super) fn store(&mut self, core: Core, line: u64) {
        let me = core as usize;
        let hit = self.lines.insert(line, Line::Owned(me)) == Some(Line::Owned(me));
        self.clocks[me] += if hit { HIT } else { MISS };
    }

    /// Work that no other core notices.
    pub(super) fn work(&mut self, core: Core, cycles: u64) {
        self.clocks[core as usize] += cycles;
    }

    /// Whose turn it is.
    pub(super) fn behind(&self) -> Core {
        if self.clocks[0] <= self.clocks[1] { Core::Producer } else { Core::Consumer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_misses_once_the_other_core_wrote_it() {
        let mut caches = Caches::default();
        caches.load(Core::Producer, 1);
        caches.load(Core::Producer, 1);
        assert_eq!(caches.load_misses, 1, "cold, then warm");
        caches.load(Core::Consumer, 1);
        caches.load(Core::Producer, 1);
        assert_eq!(caches.load_misses, 2, "both may read");
        caches.store(Core::Consumer, 1);
        caches.load(Core::Consumer, 1);
        assert_eq!(caches.load_misses, 2, "who wrote it has it");
        caches.load(Core::Producer, 1);
        assert_eq!(caches.load_misses, 3, "the other has not");
        assert_eq!(caches.behind(), Core::Consumer);
    }
}
