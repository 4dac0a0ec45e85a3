//! The set of sources that one destination accepts, stored as the addresses where acceptance
//! changes (flips).
//!
//! ```text
//! initially refused       ───────┐          ┌────────────┐          ┌────
//! flips:                         12         40           97        130
//! accepted:                       [12, 40)                [97, 130)
//! ```
//!
//! A source is accepted if the number of flips up to it is odd (or even, if all are accepted
//! initially). A flip takes two bytes: at mix 8 a destination has about 100 flips, where a bitmap
//! would take 8 KiB. A look-up compares all flips, eight or more per instruction. For 100 flips
//! that is faster than a binary search, whose steps depend on each other.
//!
//! Invariant: flips ascend strictly, so adjacent ranges with the same result are merged.

use ringtap_base::prefetch;

use ringtap_filter::Policy;

use crate::filter::packet::Address;

/// Flips of a block; the flips of a block are compared together.
const BLOCK: usize = 32;
/// With more blocks than this, a binary search selects one first.
const SCANNED: usize = 8;

/// A set of sources, changed range by range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accepting {
    /// The flips, padded with the largest address to whole blocks.
    blocks: Vec<Address>,
    flips: usize,
    initially: bool,
}

impl Accepting {
    /// The set of all sources (`Allow`) or of none (`Deny`).
    pub fn new(policy: Policy) -> Self {
        Self { blocks: Vec::new(), flips: 0, initially: policy == Policy::Allow }
    }

    /// Whether a source is accepted.
    #[inline]
    pub fn contains(&self, source: Address) -> bool {
        self.after(self.upto(source))
    }

    /// Number of flips less than or equal to a source.
    #[inline]
    fn upto(&self, source: Address) -> usize {
        let (blocks, _) = self.blocks.as_chunks::<BLOCK>();
        let (before, scanned) =
            if blocks.len() <= SCANNED { (0, blocks) } else { bisect(blocks, source) };
        // One sum per position in a block, so that the loop over blocks vectorises.
        let mut sums = [0_u16; BLOCK];
        for block in scanned {
            for (sum, &flip) in sums.iter_mut().zip(block) {
                *sum += u16::from(flip <= source);
            }
        }
        let within: u16 = sums.iter().sum();
        (BLOCK * before + usize::from(within)).min(self.flips)
    }

    /// Prefetches the memory that a look-up reads.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.blocks.chunks_exact(BLOCK).take(SCANNED).for_each(|block| prefetch(&block[0]));
    }

    /// Accepts, or refuses, the sources `begin..end` from now on.
    pub fn set(&mut self, begin: Address, end: Address, accepting: bool) {
        if begin >= end {
            return;
        }
        let from = begin.checked_sub(1).map_or(0, |before| self.upto(before));
        let upto = self.upto(end);
        let first = (self.after(from) != accepting).then_some(begin);
        let last = (self.after(upto) != accepting).then_some(end);
        self.splice(from, upto, first.into_iter().chain(last));
    }

    /// Replaces the flips `from..upto` by `others`.
    fn splice(&mut self, from: usize, upto: usize, others: impl Iterator<Item = Address> + Clone) {
        let end = from + others.clone().count();
        let flips = end + (self.flips - upto);
        if flips > self.blocks.len() {
            self.blocks.resize(flips.next_multiple_of(BLOCK), Address::MAX);
        }
        self.blocks.copy_within(upto..self.flips, end);
        self.blocks[from..end].iter_mut().zip(others).for_each(|(place, flip)| *place = flip);
        if flips < self.flips {
            self.blocks[flips..self.flips].fill(Address::MAX);
            self.blocks.truncate(flips.next_multiple_of(BLOCK));
        }
        self.flips = flips;
    }

    /// Whether sources after the first `flips` flips are accepted.
    #[inline]
    fn after(&self, flips: usize) -> bool {
        (flips % 2 == 1) != self.initially
    }
}

/// The number of blocks whose flips are all less than or equal to a source, and the block after
/// them.
#[cold]
fn bisect(blocks: &[[Address; BLOCK]], source: Address) -> (usize, &[[Address; BLOCK]]) {
    let before = blocks.partition_point(|block| block[BLOCK - 1] <= source);
    (before, &blocks[before..blocks.len().min(before + 1)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_bitmap(
            allow: bool,
            step in prop_oneof![Just(1_u16), Just(128)],
            ranges in prop::collection::vec((0..512_u16, 0..512_u16, any::<bool>()), 0..60),
            combs in 0..3_u16,
        ) {
            let mut set = Accepting::new(if allow { Policy::Allow } else { Policy::Deny });
            let mut bitmap = [allow; 512];
            // First hundreds of flips: every other source.
            let comb = (0..combs * 170).map(|source| (source, source + 1, source % 2 == u16::from(allow)));
            for (begin, end, accepting) in comb.chain(ranges) {
                set.set(begin * step, end * step, accepting);
                (begin..end).for_each(|source| bitmap[usize::from(source)] = accepting);
            }
            for source in 0..512 {
                prop_assert_eq!(set.contains(source * step), bitmap[usize::from(source)]);
                prop_assert_eq!(set.contains(source * step + (step - 1)), bitmap[usize::from(source)]);
            }
            prop_assert!(set.blocks[..set.flips].windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(set.blocks[set.flips..].iter().all(|&rest| rest == Address::MAX));
            prop_assert_eq!(set.blocks.len(), set.flips.next_multiple_of(BLOCK));
        }
    }
}
