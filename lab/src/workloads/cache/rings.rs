//! The rings of the paper's figures 3 to 5 on simulated caches, access by access.
//!
//! ```text
//!  line 0           read, write, and the constants of rings without padding
//!  lines 1, 2       MCRingBuffer's local variables of consumer and producer (cachePad)
//!  line 3           MCRingBuffer's constants
//!  lines 16 …       the slots, eight slots of 8 bytes per line
//! ```
//!
//! FastForward's indices are each used by one side only, but share a line as in the paper (section
//! II-D, evaluation 3: "no cache-line protection is used").

use super::coherence::{Caches, Core};
use crate::LabError;

const SHARED: u64 = 0;
const CONSUMER_LOCAL: u64 = 1;
const PRODUCER_LOCAL: u64 = 2;
const CONSTANTS: u64 = 3;
const SLOTS: u64 = 16;
/// Items of 8 bytes in a cache line.
const ITEMS_PER_LINE: usize = 8;

/// Random cycles between two operations, besides the cost of cache accesses: 1 to this.
const WORK_MAX: u64 = 16;
/// One operation in this many, on average, is followed by a pause, like an interruption by the
/// kernel.
const PAUSE_ONCE_IN: u64 = 20_000;
/// Cycles of a pause.
const PAUSE: u64 = 20_000;

/// Load misses of both cores for `items` transferred items.
pub(super) fn misses(
    kind: &str,
    capacity: usize,
    batch: usize,
    items: u64,
    seed: u64,
) -> Result<u64, LabError> {
    // One slot stays empty, as in the paper.
    let slots = capacity + 1;
    // Larger batches can deadlock; crates/ring has the same bound.
    let batch = batch.min(capacity.div_ceil(2)).max(1);
    let mut ring: Box<dyn Simulated> = match kind {
        "lamport" => Box::new(Basic { slots, read: 0, write: 0 }),
        "fastforward" => Box::new(FastForward { full: vec![false; slots], read: 0, write: 0 }),
        "mcring" => Box::new(McRing { slots, batch, ..McRing::default() }),
        _ => {
            return Err(LabError::Trial(format!(
                "invalid kind={kind}: use lamport, fastforward or mcring with by=simulation"
            )));
        }
    };
    let mut caches = Caches::default();
    let mut random = seed;
    let (mut inserted, mut extracted) = (0, 0);
    while extracted < items {
        let core = caches.behind();
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = random >> 33;
        let pause = if drawn.is_multiple_of(PAUSE_ONCE_IN) { PAUSE } else { 0 };
        caches.work(core, 1 + drawn % WORK_MAX + pause);
        match core {
            Core::Producer if inserted < items => inserted += u64::from(ring.insert(&mut caches)),
            // All items are inserted: publish the unpublished ones, as at the end of a stream.
            Core::Producer => ring.flush(&mut caches),
            Core::Consumer => extracted += u64::from(ring.extract(&mut caches)),
        }
    }
    Ok(caches.load_misses)
}

/// The operations of a ring. `insert` and `extract` return whether they succeeded.
trait Simulated {
    fn insert(&mut self, caches: &mut Caches) -> bool;
    fn extract(&mut self, caches: &mut Caches) -> bool;
    fn flush(&mut self, _: &mut Caches) {}
}

fn slot(index: usize) -> u64 {
    SLOTS + (index / ITEMS_PER_LINE) as u64
}

/// BasicRingBuffer, the paper's figure 3.
struct Basic {
    slots: usize,
    read: usize,
    write: usize,
}

impl Simulated for Basic {
    fn insert(&mut self, caches: &mut Caches) -> bool {
        let core = Core::Producer;
        caches.load(core, SHARED);
        let next = (self.write + 1) % self.slots;
        if next == self.read {
            return false;
        }
        caches.store(core, slot(self.write));
        caches.store(core, SHARED);
        self.write = next;
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let core = Core::Consumer;
        caches.load(core, SHARED);
        if self.read == self.write {
            return false;
        }
        caches.load(core, slot(self.read));
        caches.store(core, SHARED);
        self.read = (self.read + 1) % self.slots;
        true
    }
}

/// FastForward, the paper's figure 4.
struct FastForward {
    full: Vec<bool>,
    read: usize,
    write: usize,
}

impl Simulated for FastForward {
    fn insert(&mut self, caches: &mut Caches) -> bool {
        let core = Core::Producer;
        caches.load(core, SHARED);
        caches.load(core, slot(self.write));
        if self.full[self.write] {
            return false;
        }
        caches.store(core, slot(self.write));
        caches.store(core, SHARED);
        self.full[self.write] = true;
        self.write = (self.write + 1) % self.full.len();
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let core = Core::Consumer;
        caches.load(core, SHARED);
        caches.load(core, slot(self.read));
        if !self.full[self.read] {
            return false;
        }
        caches.store(core, slot(self.read));
        caches.store(core, SHARED);
        self.full[self.read] = false;
        self.read = (self.read + 1) % self.full.len();
        true
    }
}

/// MCRingBuffer, the paper's figure 5, with the paper's names.
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
        let core = Core::Producer;
        caches.load(core, PRODUCER_LOCAL);
        caches.load(core, CONSTANTS);
        let after = (self.next_write + 1) % self.slots;
        if after == self.local_read {
            caches.load(core, SHARED);
            if after == self.read {
                return false;
            }
            self.local_read = self.read;
        }
        caches.store(core, slot(self.next_write));
        caches.store(core, PRODUCER_LOCAL);
        self.next_write = after;
        self.w_batch += 1;
        if self.w_batch >= self.batch {
            self.flush(caches);
        }
        true
    }

    fn extract(&mut self, caches: &mut Caches) -> bool {
        let core = Core::Consumer;
        caches.load(core, CONSUMER_LOCAL);
        caches.load(core, CONSTANTS);
        if self.next_read == self.local_write {
            caches.load(core, SHARED);
            if self.next_read == self.write {
                return false;
            }
            self.local_write = self.write;
        }
        caches.load(core, slot(self.next_read));
        caches.store(core, CONSUMER_LOCAL);
        self.next_read = (self.next_read + 1) % self.slots;
        self.r_batch += 1;
        if self.r_batch >= self.batch {
            caches.store(core, SHARED);
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
        // Each line of items must be fetched at least once per round: 100,000 / 8.
        assert!(fifty >= 12_500 && fifty < one && fifty < basic / 2, "{fifty} {one} {basic}");
        assert_eq!(basic, of("lamport", 1), "the same seed, the same run");
        assert!(misses("rope", 8, 1, 1, 1).is_err());
    }

    #[test]
    fn small_rings_complete() {
        for kind in ["lamport", "fastforward", "mcring"] {
            for (capacity, batch) in [(1, 1), (2, 1), (3, 2), (100, 50)] {
                assert!(misses(kind, capacity, batch, 1_000, 3).unwrap() > 0, "{kind} {capacity}");
            }
        }
    }
}
