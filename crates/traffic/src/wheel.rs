//! Who sends next: a timer wheel of two levels over the ticks of the whole run.
//!
//! ```text
//! coarse  [ 0 | 1 | … | now | … | 4095 ]    lists of members, in no order within a slot
//! fine                    └▶[ | | |…| | ]   the ticks of the current coarse slot
//! ```
//!
//! The lists run through one array, `next`, so a member is in one list at most and nothing is
//! allocated after the start. Where in its coarse slot a member gets its turn is drawn when the
//! slot begins, so that moving it touches nothing but `next`.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const COARSE_BITS: u32 = 12;
const FINE_BITS_MAX: u32 = 12;
const NOBODY: u32 = u32::MAX;

/// Members 0 ≤ id < capacity, each waiting for one tick or for none.
pub(crate) struct Wheel {
    next: Vec<u32>,
    coarse: Vec<u32>,
    fine: Vec<u32>,
    fine_bits: u32,
    now: u32,
    order: SplitMix64,
}

impl Wheel {
    /// A wheel with about two ticks for each of `turns`.
    pub(crate) fn new(
        capacity: usize,
        turns: u64,
        seed: u64,
    ) -> Result<Self, std::collections::TryReserveError> {
        let fine_bits =
            (turns.max(1).ilog2() + 2).saturating_sub(COARSE_BITS).clamp(1, FINE_BITS_MAX);
        let mut next = Vec::new();
        next.try_reserve_exact(capacity)?;
        next.resize(capacity, NOBODY);
        Ok(Self {
            next,
            coarse: vec![NOBODY; 1 << COARSE_BITS],
            fine: vec![NOBODY; 1 << fine_bits],
            fine_bits,
            now: 0,
            order: SplitMix64::seed_from_u64(seed),
        })
    }

    /// Ticks of the whole run, at most 2^24.
    pub(crate) fn ticks(&self) -> u32 {
        1 << (COARSE_BITS + self.fine_bits)
    }

    /// The current tick.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Lets a member that waits for nothing wait for `tick`, or for the current tick or the last
    /// one where that is out of range.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32, tick: u32) {
        let tick = tick.clamp(self.now, self.ticks() - 1);
        let slot = tick >> self.fine_bits;
        let head = if slot == self.now >> self.fine_bits {
            &mut self.fine[tick as usize & ((1 << self.fine_bits) - 1)]
        } else {
            &mut self.coarse[slot as usize]
        };
        self.next[id as usize] = *head;
        *head = id;
    }

    /// The member whose turn comes next, which then waits for nothing; `None` when nobody waits.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let mask = (1u32 << self.fine_bits) - 1;
        loop {
            let head = &mut self.fine[(self.now & mask) as usize];
            if *head != NOBODY {
                let id = *head;
                *head = self.next[id as usize];
                return Some(id);
            }
            if self.now == self.ticks() - 1 {
                return None;
            }
            self.now += 1;
            if self.now & mask == 0 {
                self.begin_slot();
            }
        }
    }

    /// Spreads the members of the coarse slot that begins over its ticks.
    fn begin_slot(&mut self) {
        let slot = &mut self.coarse[(self.now >> self.fine_bits) as usize];
        let mut id = std::mem::replace(slot, NOBODY);
        while id != NOBODY {
            let following = self.next[id as usize];
            let tick = (self.order.next_u64() >> (64 - self.fine_bits)) as usize;
            self.next[id as usize] = self.fine[tick];
            self.fine[tick] = id;
            id = following;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_the_turns_that_were_asked_for_in_time() {
        let mut wheel = Wheel::new(1000, 50_000, 3).unwrap();
        let mut turns = vec![50u32; 1000];
        (0..1000).for_each(|id| wheel.insert(id, id * 31));
        let (mut last, slot) = (0, 1 << wheel.fine_bits);
        let mut due: Vec<u32> = (0..1000).map(|id| id * 31).collect();
        while let Some(id) = wheel.pop() {
            assert!(wheel.now() >= last, "time runs forward");
            last = wheel.now();
            let asked = due[id as usize].min(wheel.ticks() - 1);
            assert!(last.abs_diff(asked) <= slot, "{id} at {last}, asked for {asked}");
            turns[id as usize] -= 1;
            if turns[id as usize] > 0 {
                due[id as usize] = last + 1 + id % 900;
                wheel.insert(id, due[id as usize]);
            }
        }
        assert!(turns.iter().all(|&left| left == 0));
    }

    #[test]
    fn an_empty_wheel_ends() {
        assert_eq!(Wheel::new(0, 0, 1).unwrap().pop(), None);
    }
}
