//! A piecewise constant function of addresses: the value of the last span that contains an address.
//!
//! ```text
//! spans   0: ├──────────────┤      1:      ├────┤    (later ones lie on top)
//! keys       │0        │1   │0     │none
//! ```
//!
//! Keys are searched sixteen at a time: after the keys come every sixteenth of them, then every
//! sixteenth of those, and so on. A search touches one block of a level: five blocks for a million
//! IPv4 keys, each a cache line, where a binary search would touch twenty lines.

use std::collections::BinaryHeap;

use super::span::Number;

/// Keys of a block.
const BLOCK: usize = 16;
/// Levels above the keys: 16⁹ exceeds the possible number of keys.
const LEVELS: usize = 9;
/// No span.
pub(super) const NONE: u32 = u32::MAX;

/// The position of a function among the keys and values of many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    start: u32,
    /// Keys of the lowest level.
    len: u32,
}

/// Keys and values of many functions, one after the other.
#[derive(Debug)]
pub(super) struct Shelf<A> {
    keys: Vec<A>,
    /// Beside the keys of the lowest levels: the value from there on.
    values: Vec<u32>,
}

impl<A: Number> Shelf<A> {
    pub(super) fn new() -> Self {
        Self { keys: Vec::new(), values: Vec::new() }
    }

    /// Adds the function of some spans (first, last, value); later ones are on top.
    pub(super) fn add(&mut self, spans: &[(A, A, u32)]) -> Steps {
        let start = self.keys.len();
        let mut begins: Vec<usize> = (0..spans.len()).collect();
        begins.sort_unstable_by_key(|&at| spans[at].0);
        let mut begins = begins.into_iter().peekable();
        // The open spans, the topmost first.
        let mut open: BinaryHeap<usize> = BinaryHeap::new();
        let mut from = A::ZERO;
        loop {
            // All spans at `from`, and the end of the piece.
            while let Some(at) = begins.next_if(|&at| spans[at].0 <= from) {
                open.push(at);
            }
            while open.peek().is_some_and(|&at| spans[at].1 < from) {
                open.pop();
            }
            let top = open.peek().map(|&at| &spans[at]);
            self.step(start, from, top.map_or(NONE, |span| span.2));
            let ends = top.and_then(|span| span.1.next());
            let begins = begins.peek().map(|&at| spans[at].0);
            let next = match (top, ends, begins) {
                (Some(_), Some(end), Some(begin)) => end.min(begin),
                (Some(_), Some(end), None) => end,
                (_, None, Some(begin)) => begin,
                _ => break,
            };
            from = next;
        }
        let len = self.keys.len() - start;
        self.index(start, len);
        Steps { start: start as u32, len: len as u32 }
    }

    /// Adds plain positions: the function counts those up to an address.
    pub(super) fn add_places(&mut self, places: &[A]) -> Steps {
        let start = self.keys.len();
        self.keys.extend(places);
        self.index(start, places.len());
        Steps { start: start as u32, len: places.len() as u32 }
    }

    /// The value at an address.
    #[inline]
    pub(super) fn value(&self, steps: Steps, address: A) -> u32 {
        match self.count(steps, address) {
            0 => NONE,
            place => self.values[steps.start as usize + place - 1],
        }
    }

    /// Number of keys up to an address.
    #[inline]
    pub(super) fn count(&self, steps: Steps, address: A) -> usize {
        let keys = &self.keys[steps.start as usize..];
        let mut levels = [(0, 0); LEVELS];
        let (mut offset, mut len, mut top) = (0, steps.len as usize, 0);
        levels[0] = (offset, len);
        while len > BLOCK {
            offset += len;
            len = above(len);
            top += 1;
            levels[top] = (offset, len);
        }
        let mut place = 0;
        for &(offset, len) in levels[..=top].iter().rev() {
            let block = place * BLOCK;
            let keys = &keys[offset + block..offset + len.min(block + BLOCK)];
            place = block + keys.iter().filter(|&&key| key <= address).count();
        }
        place
    }

    /// Size in bytes.
    pub(super) fn memory(&self) -> usize {
        self.keys.capacity() * size_of::<A>() + self.values.capacity() * size_of::<u32>()
    }

    pub(super) fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn step(&mut self, start: usize, from: A, value: u32) {
        let last = if self.keys.len() > start { self.values.last() } else { None };
        if *last.unwrap_or(&NONE) != value {
            self.keys.push(from);
            self.values.push(value);
        }
    }

    /// Appends the upper levels.
    fn index(&mut self, start: usize, len: usize) {
        let (mut level, mut len) = (start, len);
        while len > BLOCK {
            let next = self.keys.len();
            let first = level + BLOCK;
            let above = above(len);
            for separator in 0..above {
                self.keys.push(self.keys[first + separator * BLOCK]);
            }
            (level, len) = (next, above);
        }
        self.values.resize(self.keys.len(), NONE);
    }
}

/// Number of keys of the level above: the first of each block except the first block.
fn above(len: usize) -> usize {
    (len - 1) / BLOCK
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topmost(spans: &[(u32, u32, u32)], address: u32) -> u32 {
        let within = |span: &&(u32, u32, u32)| (span.0..=span.1).contains(&address);
        spans.iter().rev().find(within).map_or(NONE, |span| span.2)
    }

    proptest! {
        #[test]
        fn the_topmost_span_counts(
            ends in prop::collection::vec((0..200u32, 0..200u32), 0..30),
            top in 0..2u32,
        ) {
            // At both ends of the address space.
            let lift = if top == 1 { u32::MAX - 199 } else { 0 };
            let spans: Vec<_> = (0..)
                .zip(ends)
                .map(|(value, (a, b))| (lift + a.min(b), lift + a.max(b), value))
                .collect();
            let mut shelf = Shelf::new();
            shelf.add(&[(5, 9, 1)]);
            let steps = shelf.add(&spans);
            for address in 0..200 {
                let address = lift + address;
                prop_assert_eq!(shelf.value(steps, address), topmost(&spans, address));
            }
        }

        #[test]
        fn a_search_counts_keys_at_any_length(len in 0..6_000usize, seed: u32) {
            let places: Vec<u32> = (0..len as u32).map(|n| 10 + n * 3).collect();
            let mut shelf = Shelf::new();
            let steps = shelf.add_places(&places);
            let addresses = (0..50u32).map(|n| seed.wrapping_mul(n) % (20 + 3 * len as u32));
            for address in addresses.chain([0, 9, 10, u32::MAX]) {
                let expected = places.partition_point(|&key| key <= address);
                prop_assert_eq!(shelf.count(steps, address), expected);
            }
        }
    }
}
