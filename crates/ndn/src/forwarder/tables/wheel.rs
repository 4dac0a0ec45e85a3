//! A timing wheel: schedules entries by their expiry.
//!
//! ```text
//!  slots of a millisecond, in a circle:  … | | 3 ⇄ 8 | | 5 | …   each a doubly linked list
//!                                          └ now
//! ```
//!
//! An entry may be scheduled too early, never too late: the caller checks the real deadline, and
//! schedules the entry again if needed. So the wheel needs no change when a deadline moves to a
//! later time, or when an entry is removed.

use super::NONE;

/// Nanoseconds of a slot.
pub const TICK_NS: u64 = 1_000_000;
const SLOTS: u64 = 8192;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    /// The tick at which it is due; `u64::MAX`: not scheduled.
    tick: u64,
}

/// Entries by the time at which they are due. An entry is a number.
#[derive(Debug)]
pub struct Wheel {
    heads: Vec<u32>,
    links: Vec<Link>,
    /// The next slot to empty.
    tick: u64,
    /// Number of scheduled entries.
    scheduled: usize,
}

impl Wheel {
    /// A wheel for entries below `places`.
    pub fn new(places: usize) -> Self {
        let idle = Link { before: NONE, after: NONE, tick: u64::MAX };
        Self { heads: vec![NONE; SLOTS as usize], links: vec![idle; places], tick: 0, scheduled: 0 }
    }

    /// Prefetches an entry's link.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        ringtap_base::prefetch(&self.links[place as usize]);
    }

    /// Schedules an entry for this time, unless it is already scheduled earlier. The caller must
    /// have called [`Wheel::pop`] with the current time until it returned `None`.
    #[inline]
    pub fn put(&mut self, place: u32, due_ns: u64) {
        let due = due_ns.div_ceil(TICK_NS).clamp(self.tick, self.tick + SLOTS - 1);
        let tick = self.links[place as usize].tick;
        if tick <= due {
            return;
        }
        if tick != u64::MAX {
            self.unlink(place);
        }
        let head = &mut self.heads[(due % SLOTS) as usize];
        let after = std::mem::replace(head, place);
        self.links[place as usize] = Link { before: NONE, after, tick: due };
        if after != NONE {
            self.links[after as usize].before = place;
        }
        self.scheduled += 1;
    }

    /// Removes and returns an entry that may be due.
    #[inline]
    pub fn pop(&mut self, now_ns: u64) -> Option<u32> {
        let now = now_ns / TICK_NS;
        while self.tick <= now {
            let place = self.heads[(self.tick % SLOTS) as usize];
            if place != NONE {
                self.unlink(place);
                return Some(place);
            }
            // Without scheduled entries no slots need to be visited.
            self.tick = if self.scheduled == 0 { now + 1 } else { self.tick + 1 };
        }
        None
    }

    fn unlink(&mut self, place: u32) {
        let Link { before, after, tick } = self.links[place as usize];
        match before {
            NONE => self.heads[(tick % SLOTS) as usize] = after,
            before => self.links[before as usize].after = after,
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
        self.links[place as usize].tick = u64::MAX;
        self.scheduled -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_entry_is_returned_after_its_time(
            steps in prop::collection::vec((0..8u32, 0..30_000u64, 0..3_000u64), 1..100),
        ) {
            let mut wheel = Wheel::new(8);
            let mut due = [None; 8];
            let mut now = 1_700_000_000_000_000_000;
            assert_eq!(wheel.pop(now), None);
            for (place, delay, pause) in steps {
                due[place as usize] = Some(now + delay * TICK_NS);
                wheel.put(place, now + delay * TICK_NS);
                now += pause * TICK_NS;
                while let Some(popped) = wheel.pop(now) {
                    match due[popped as usize] {
                        Some(time) if time > now => wheel.put(popped, time),
                        _ => due[popped as usize] = None,
                    }
                }
                prop_assert!(due.iter().flatten().all(|&time| time > now), "{:?} at {}", due, now);
            }
        }
    }
}
