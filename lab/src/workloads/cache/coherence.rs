//! A model of two cores with coherent caches.
//!
//! The protocol is MESI (M. S. Papamarcos and J. H. Patel, "A Low-Overhead Coherence Solution for
//! Multiprocessors with Private Cache Memories", 1984). The caches never run full: a ring of 2,000
//! items of 8 bytes takes a fraction of a real cache, so after the first access a load misses only
//! because the *other* core wrote the line. Each core has a clock; the core whose clock is behind
//! moves next.

use std::collections::HashMap;

/// Cycles of a cache hit and of a miss.
const HIT: u64 = 4;
const MISS: u64 = 120;

/// One of the two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    Producer,
    Consumer,
}

/// The state of a cache line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// In the cache of one core only, clean or modified.
    Owned(usize),
    /// In both caches, clean.
    Shared,
}

#[derive(Default)]
pub(super) struct Caches {
    lines: HashMap<u64, Line>,
    /// Clock of each core, in cycles.
    clocks: [u64; 2],
    /// Loads that missed the own cache, of both cores.
    pub(super) load_misses: u64,
}

impl Caches {
    pub(super) fn load(&mut self, core: Core, line: u64) {
        let own = core as usize;
        let (next, hit) = match self.lines.get(&line) {
            Some(Line::Owned(owner)) if *owner == own => (Line::Owned(own), true),
            Some(Line::Shared) => (Line::Shared, true),
            Some(Line::Owned(_)) => (Line::Shared, false),
            None => (Line::Owned(own), false),
        };
        self.lines.insert(line, next);
        self.load_misses += u64::from(!hit);
        self.clocks[own] += if hit { HIT } else { MISS };
    }

    /// A store takes as long as a load, but its miss is not counted: the paper counts loads.
    pub(super) fn store(&mut self, core: Core, line: u64) {
        let own = core as usize;
        let hit = self.lines.insert(line, Line::Owned(own)) == Some(Line::Owned(own));
        self.clocks[own] += if hit { HIT } else { MISS };
    }

    /// Advances the clock of a core by work without memory accesses.
    pub(super) fn work(&mut self, core: Core, cycles: u64) {
        self.clocks[core as usize] += cycles;
    }

    /// The core whose clock is behind.
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
        assert_eq!(caches.load_misses, 2, "the writer has the line");
        caches.load(Core::Producer, 1);
        assert_eq!(caches.load_misses, 3, "the other core has not");
        assert_eq!(caches.behind(), Core::Consumer);
    }
}
