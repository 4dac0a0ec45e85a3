//! The rings of the paper's figures 3 to 5 on simulated caches, access by access.
//!
//! ```text
//!  line 0           read, write, and the constants of rings without padding
//!  lines 1, 2       MCRingBuffer's local variables of consumer and producer (cachePad)
//!  line 3           its constants
//!  lines 16 …       the slots, eight of 8 bytes a line
//! ```
//!
//! FastForward's indices are local to one side each, but lie side by side as the paper's do (section
//! II-D, evaluation 3: "no cache-line protection is used").

use super::coherence::{Caches, Core};
use crate::LabError;

const SHARED: u64 = 0;
const CONSUMER_LOCAL: u64 = 1;
const PRODUCER_LOCAL: u64 = 2;
const CONSTANTS: u64 = 3;
const SLOTS: u64 = 16;
/// Items of 8 bytes in a line.
const A_LINE: usize = 8;

/// Cycles between two operations, besides what the caches cost: from 0 to this, drawn.
const WORK_MOST: u64 = 16;
/// One operation in so many is followed by a pause, as when the kernel has something to do.
const PAUSE_ONCE_IN: u64 = 20_000;
const PAUSE: u64 = 20_000;

/// Load misses of both cores, for `items` handed over.
pub(super) fn misses(
    kind: &str,
    capacity: usize,
    batch: usize,
    items: u64,
    seed: u64,
) -> Result<u64, LabError> {
    // One slot stays empty, as in the paper.
    let slots = capacity + 1;
    // Larger batches wedge, as crates/ring says; it has the same bound.
    let batch = batch.min(capacity.div_ceil(2)).max(1);
    let mut ring: Box<dyn Simulated> = match kind {
        "lamport" => Box::new(Basic { slots, read: 0, write: 0 }),
        "fastforward" => Box::new(FastForward { full: vec![false; slots], read: 0, write: 0 }),
        "mcring" => Box::new(McRing { slots, batch, ..McRing::default() }),
        _ => {
            let there = "lamport, fastforward, mcring";
            return Err(LabError::Trial(format!("kind={kind}: simulated are {there}")));
        }
    };
    let mut caches = Caches::default();
    let mut dice = seed;
    let (mut inserted, mut extracted) = (0, 0);
    while extracted < items {
        let core = caches.behind();
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = dice >> 33;
        let pause = if drawn.is_multiple_of(PAUSE_ONCE_IN) { PAUSE } else { 0 };
        caches.work(core, 1 + drawn % WORK_MOST + pause);
        match core {
            Core::Producer if inserted < items => inserted += u64::from(ring.insert(&mut caches)),
            // Nothing more to say: what is held back is published, as at the end of a stream.
            Core::Producer => ring.flush(&mut caches),
            Core::Consumer => extracted += u64::from(ring.extract(&mut caches)),
        }
    }
    Ok(caches.load_misses)
}

/// A ring's operations; whether one went through.
trait Simulated {
    fn insert(&mut self, caches: &mut Caches) -> bool;
    fn extract(&mut self, caches: &mut Caches) -> bool;
    fn flush(&mut self, _: &mut Caches) {}
}

fn slot(index: usize) -> u64 {
    SLOTS + (index / A_LINE) as u64
}

/// Figure 3.
struct Basic {
    slots: usize,
    read: usize,
    write: usize,
}

impl Simulated for Basic {
    fn insert(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Producer;
        caches.load(me, SHARED);
        let next = (self.write + 1) % self.slots;
        if next == self.read {
            return false;
        }
        caches.store(me, slot(self.write));
        caches.store(me, SHARED);
        self.write = next;
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Consumer;
        caches.load(me, SHARED);
        if self.read == self.write {
            return false;
        }
        caches.load(me, slot(self.read));
        caches.store(me, SHARED);
        self.read = (self.read + 1) % self.slots;
        true
    }
}

/// Figure 4.
struct FastForward {
    full: Vec<bool>,
    read: usize,
    write: usize,
}

impl Simulated for FastForward {
    fn insert(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Producer;
        caches.load(me, SHARED);
        caches.load(me, slot(self.write));
        if self.full[self.write] {
            return false;
        }
        caches.store(me, slot(self.write));
        caches.store(me, SHARED);
        self.full[self.write] = true;
        self.write = (self.write + 1) % self.full.len();
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Consumer;
        caches.load(me, SHARED);
        caches.load(me, slot(self.read));
        if !self.full[self.read] {
            return false;
        }
        caches.store(me, slot(self.read));
        caches.store(me, SHARED);
        self.full[self.read] = false;
        self.read = (self.read + 1) % self.full.len();
        true
    }
}

/// Figure 5. Names as there.
#[derive(Default)]
struct McRing {
    slots: usize,
    batch: usize,
    read: usize,
    write: usize,
    local_read: usize,
    next_write: usize,
    w_batch: usize,
    local_write: usize,
    next_read: usize,
    r_batch: usize,
}

impl Simulated for McRing {
    fn insert(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Producer;
        caches.load(me, PRODUCER_LOCAL);
        caches.load(me, CONSTANTS);
        let after = (self.next_write + 1) % self.slots;
        if after == self.local_read {
            caches.load(me, SHARED);
            if after == self.read {
                return false;
            }
            self.local_read = self.read;
        }
        caches.store(me, slot(self.next_write));
        caches.store(me, PRODUCER_LOCAL);
        self.next_write = after;
        self.w_batch += 1;
        if self.w_batch >= self.batch {
            self.flush(caches);
        }
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let me = Core::Consumer;
        caches.load(me, CONSUMER_LOCAL);
        caches.load(me, CONSTANTS);
        if self.next_read == self.local_write {
            caches.load(me, SHARED);
            if self.next_read == self.write {
                return false;
            }
            self.local_write = self.write;
        }
        caches.load(me, slot(self.next_read));
        caches.store(me, CONSUMER_LOCAL);
        self.next_read = (self.next_read + 1) % self.slots;
        self.r_batch += 1;
        if self.r_batch >= self.batch {
            caches.store(me, SHARED);
            self.read = self.next_read;
            self.r_batch = 0;
        }
        true
    }

    fn flush(&mut self, caches: &mut Caches) {
        if self.w_batch > 0 {
            caches.store(Core::Producer, SHARED);
            self.write = self.next_write;
            self.w_batch = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_save_the_most_and_single_updates_the_least() {
        let of = |kind, batch| misses(kind, 2_000, batch, 100_000, 1).unwrap();
        let (basic, one, fifty) = (of("lamport", 1), of("mcring", 1), of("mcring", 50));
        // A line of items must be fetched once a round at least: 100,000 / 8.
        assert!(fifty >= 12_500 && fifty < one && fifty < basic / 2, "{fifty} {one} {basic}");
        assert_eq!(basic, of("lamport", 1), "the same seed, the same run");
        assert!(misses("rope", 8, 1, 1, 1).is_err());
    }

    #[test]
    fn small_rings_end_too() {
        for kind in ["lamport", "fastforward", "mcring"] {
            for (capacity, batch) in [(1, 1), (2, 1), (3, 2), (100, 50)] {
                assert!(misses(kind, capacity, batch, 1_000, 3).unwrap() > 0, "{kind} {capacity}");
            }
        }
    }
}
