//! A timing wheel: which places are due.
//!
//! ```text
//!  slots of a millisecond, in a circle:  … | | 3 ⇄ 8 | | 5 | …      each a doubly linked list of places
//!                                          └ now
//! ```
//!
//! A place may be put down too early, never too late: whoever is told looks at the true time and puts it down again.
//! So nothing has to be done when a time moves back, or when a place is given up.

use super::NONE;

const TICK_NS: u64 = 1_000_000;
const SLOTS: u64 = 8192;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    /// When it is due; `u64::MAX`: it is not put down.
    tick: u64,
}

#[derive(Debug)]
pub(super) struct Wheel {
    heads: Vec<u32>,
    links: Vec<Link>,
    /// The slot that is emptied next.
    tick: u64,
    down: usize,
}

impl Wheel {
    pub(super) fn new(places: usize) -> Self {
        let idle = Link { before: NONE, after: NONE, tick: u64::MAX };
        Self { heads: vec![NONE; SLOTS as usize], links: vec![idle; places], tick: 0, down: 0 }
    }

    /// Brings a place's link near.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        ringtap_base::prefetch(&self.links[place as usize]);
    }

    /// Puts a place down for this time, unless it is down for an earlier one. All that was due is taken up before, so
    /// that the wheel stands at the present.
    #[inline]
    pub(super) fn put(&mut self, place: u32, due_ns: u64) {
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
        self.down += 1;
    }

    /// Takes up a place that may be due.
    #[inline]
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<u32> {
        let now = now_ns / TICK_NS;
        while self.tick <= now {
            let place = self.heads[(self.tick % SLOTS) as usize];
            if place != NONE {
                self.unlink(place);
                return Some(place);
            }
            // With nothing put down there is nothing to pass by.
            self.tick = if self.down == 0 { now + 1 } else { self.tick + 1 };
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
        self.down -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_comes_up_at_its_time_or_before_but_never_later(
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
                while let Some(up) = wheel.pop(now) {
                    match due[up as usize] {
                        Some(time) if time > now => wheel.put(up, time),
                        _ => due[up as usize] = None,
                    }
                }
                prop_assert!(due.iter().flatten().all(|&time| time > now), "{:?} at {}", due, now);
            }
        }
    }
}
