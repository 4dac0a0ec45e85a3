//! The schedule: a timing wheel of two levels over the ticks of the whole run.
//!
//! ```text
//! coarse  [ 0 | 1 | … | now | … | 4095 ]    lists of chunks of 9 members, in no order
//!               │        │
//!               ▼        └▶ fine [ | | |…| | ]   lists of members: the ticks of this coarse slot
//!             chunk ▶ chunk
//! ```
//!
//! A waiting member and its tick take an entry in a chunk, which is one cache line. When a coarse slot begins, the
//! entries of its chunks are moved to the ticks, many members at once: enough to prefetch their state together (see
//! [`Wheel::pop`]).
//!
//! Invariant: a member is in at most one list; nothing is allocated after the start.

use std::collections::TryReserveError;

const COARSE_BITS: u32 = 12;
const FINE_BITS_MAX: u32 = 12;
const NONE: u32 = u32::MAX;
const CHUNK: usize = 9;

/// Members 0 ≤ id < capacity, each scheduled for one tick or not scheduled.
pub(crate) struct Wheel {
    /// First chunk of each coarse slot; only the first may have free entries.
    coarse: Vec<u32>,
    /// Enough chunks for every case: full ones for all members, and one with free entries for each slot.
    chunks: Vec<Chunk>,
    free: u32,
    /// First member of each tick of the current coarse slot.
    fine: Vec<u32>,
    /// By member: the next member in its tick.
    behind: Vec<u32>,
    fine_bits: u32,
    now: u32,
}

/// One cache line of members.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    ids: [u32; CHUNK],
    next: u32,
    /// The tick within the coarse slot, for each member.
    ticks: [u16; CHUNK],
    len: u16,
}

const _: () = assert!(size_of::<Chunk>() == 64);

impl Wheel {
    /// A wheel with about one tick for each of `turns`.
    pub(crate) fn new(capacity: usize, turns: u64) -> Result<Self, TryReserveError> {
        let fine_bits = turns.max(1).ilog2().saturating_sub(COARSE_BITS).clamp(1, FINE_BITS_MAX);
        let mut behind = Vec::new();
        behind.try_reserve_exact(capacity)?;
        behind.resize(capacity, NONE);
        let count = capacity / CHUNK + (1 << COARSE_BITS) + 1;
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(count)?;
        // The free chunks form a list, too.
        chunks.extend((1..count as u32).chain([NONE]).map(|next| Chunk {
            next,
            len: 0,
            ids: [NONE; CHUNK],
            ticks: [0; CHUNK],
        }));
        Ok(Self {
            coarse: vec![NONE; 1 << COARSE_BITS],
            chunks,
            free: 0,
            fine: vec![NONE; 1 << fine_bits],
            behind,
            fine_bits,
            now: 0,
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

    /// Schedules a member that is not scheduled for `tick`, or for the current or last tick if `tick` is out of range.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32, tick: u32) {
        let tick = tick.clamp(self.now, self.ticks() - 1);
        let (slot, tick) = (tick >> self.fine_bits, tick as u16 & ((1 << self.fine_bits) - 1));
        if slot == self.now >> self.fine_bits {
            self.insert_fine(id, tick);
            return;
        }
        let head = &mut self.coarse[slot as usize];
        if *head == NONE || self.chunks[*head as usize].len as usize == CHUNK {
            let fresh = self.free;
            let chunk = &mut self.chunks[fresh as usize];
            self.free = chunk.next;
            (chunk.next, chunk.len) = (*head, 0);
            *head = fresh;
        }
        let chunk = &mut self.chunks[*head as usize];
        chunk.ids[chunk.len as usize] = id;
        chunk.ticks[chunk.len as usize] = tick;
        chunk.len += 1;
    }

    /// The next member, which is then not scheduled; `None` if there is none. `warm` is called with members that are
    /// scheduled soon, many at a time.
    #[inline]
    pub(crate) fn pop(&mut self, warm: impl Fn(&[u32])) -> Option<u32> {
        let mask = (1u32 << self.fine_bits) - 1;
        loop {
            let head = &mut self.fine[(self.now & mask) as usize];
            if *head != NONE {
                let id = *head;
                *head = self.behind[id as usize];
                return Some(id);
            }
            if self.now == self.ticks() - 1 {
                return None;
            }
            self.now += 1;
            if self.now & mask == 0 {
                self.begin_slot(&warm);
            }
        }
    }

    #[inline]
    fn insert_fine(&mut self, id: u32, tick: u16) {
        self.behind[id as usize] = self.fine[tick as usize];
        self.fine[tick as usize] = id;
    }

    /// Moves the members of the coarse slot that begins to its ticks.
    fn begin_slot(&mut self, warm: impl Fn(&[u32])) {
        let slot = &mut self.coarse[(self.now >> self.fine_bits) as usize];
        let mut at = std::mem::replace(slot, NONE);
        while at != NONE {
            let chunk = self.chunks[at as usize];
            let ids = &chunk.ids[..chunk.len as usize];
            warm(ids);
            for (&id, &tick) in ids.iter().zip(&chunk.ticks) {
                self.insert_fine(id, tick);
            }
            self.chunks[at as usize].next = self.free;
            self.free = at;
            at = chunk.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_returned_at_its_tick() {
        let mut wheel = Wheel::new(1000, 50_000).unwrap();
        let mut turns = vec![50u32; 1000];
        (0..1000).for_each(|id| wheel.insert(id, id * 31));
        let mut last = 0;
        let mut due: Vec<u32> = (0..1000).map(|id| id * 31).collect();
        while let Some(id) = wheel.pop(|_| ()) {
            assert!(wheel.now() >= last, "time runs forward");
            last = wheel.now();
            let asked = due[id as usize].min(wheel.ticks() - 1);
            assert_eq!(last, asked, "{id}");
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
        assert_eq!(Wheel::new(0, 0).unwrap().pop(|_| ()), None);
    }
}
