//! The sources that one destination accepts: the places where the answer changes.
//!
//! ```text
//! at first: refused       ───────┐          ┌────────────┐          ┌────
//! flips:                         12         40           97        130
//! accepted:                       [12, 40)                [97, 130)
//! ```
//!
//! A source is accepted if the number of flips up to it is odd (or even, where all are accepted at
//! first). Two bytes a flip: at mix 8 some 100 flips a destination, where a bitmap would take 8 KiB.
//!
//! Invariant: flips ascend strictly, so neighbouring ranges of equal answer have become one.

use ringtap_memory::prefetch;

use crate::packet::{Address, Policy};

/// A set of sources, changed range by range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accepting {
    flips: Vec<Address>,
    at_first: bool,
}

impl Accepting {
    /// All sources, or none.
    pub fn new(policy: Policy) -> Self {
        Self { flips: Vec::new(), at_first: policy == Policy::Allow }
    }

    /// Whether a source is accepted.
    #[inline]
    pub fn contains(&self, source: Address) -> bool {
        self.after(self.flips.partition_point(|&flip| flip <= source))
    }

    /// Brings near what the next look-up begins with.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(middle) = self.flips.get(self.flips.len() / 2) {
            prefetch(middle);
        }
    }

    /// Accepts, or refuses, the sources `begin..end` from now on.
    pub fn set(&mut self, begin: Address, end: Address, accepting: bool) {
        if begin >= end {
            return;
        }
        let from = self.flips.partition_point(|&flip| flip < begin);
        let upto = from + self.flips[from..].partition_point(|&flip| flip <= end);
        let first = (self.after(from) != accepting).then_some(begin);
        let last = (self.after(upto) != accepting).then_some(end);
        match (self.flips.get_mut(from..upto), first, last) {
            // As many flips as before: nothing has to move.
            (Some([one]), Some(flip), None) | (Some([one]), None, Some(flip)) => *one = flip,
            (Some([one, two]), Some(first), Some(last)) => (*one, *two) = (first, last),
            _ => drop(self.flips.splice(from..upto, first.into_iter().chain(last))),
        }
    }

    /// The answer behind so many flips.
    #[inline]
    fn after(&self, flips: usize) -> bool {
        (flips % 2 == 1) != self.at_first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_bitmap_in_less_space(
            allow: bool,
            ranges in prop::collection::vec((0..64u16, 0..64u16, any::<bool>()), 0..40),
        ) {
            let mut set = Accepting::new(if allow { Policy::Allow } else { Policy::Deny });
            let mut bitmap = [allow; 64];
            for (begin, end, accepting) in ranges {
                set.set(begin, end, accepting);
                (begin..end).for_each(|source| bitmap[usize::from(source)] = accepting);
                for source in 0..64 {
                    prop_assert_eq!(set.contains(source), bitmap[usize::from(source)]);
                }
                prop_assert!(set.flips.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
