//! The sources that one destination accepts: the places where the answer changes.
//!
//! ```text
//! at first: refused       ───────┐          ┌────────────┐          ┌────
//! flips:                         12         40           97        130
//! accepted:                       [12, 40)                [97, 130)
//! ```
//!
//! A source is accepted if the number of flips up to it is odd (or even, where all are accepted at
//! first). Two bytes a flip: at mix 8 some 100 flips a destination, where a bitmap would take 8 KiB. To count them,
//! all are compared, eight or more in an instruction: for 100 flips that is sooner done than a bisection, whose
//! steps wait for each other.
//!
//! Invariant: flips ascend strictly, so neighbouring ranges of equal answer have become one.

use ringtap_base::prefetch;

use ringtap_filter::Policy;

use crate::filter::packet::Address;

/// Flips that are compared at once.
const BLOCK: usize = 32;
/// More blocks than these are bisected first.
const SCANNED: usize = 8;

/// A set of sources, changed range by range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accepting {
    /// Whole blocks; behind the flips the largest address stands as often as it takes.
    blocks: Vec<Address>,
    flips: usize,
    at_first: bool,
}

impl Accepting {
    /// All sources, or none.
    pub fn new(policy: Policy) -> Self {
        Self { blocks: Vec::new(), flips: 0, at_first: policy == Policy::Allow }
    }

    /// Whether a source is accepted.
    #[inline]
    pub fn contains(&self, source: Address) -> bool {
        self.after(self.upto(source))
    }

    /// How many flips lie before a source or at it.
    #[inline]
    fn upto(&self, source: Address) -> usize {
        let (blocks, _) = self.blocks.as_chunks::<BLOCK>();
        let (before, scanned) =
            if blocks.len() <= SCANNED { (0, blocks) } else { bisect(blocks, source) };
        // A sum for each place in a block, so that blocks add up without their places doing so.
        let mut sums = [0_u16; BLOCK];
        for block in scanned {
            for (sum, &flip) in sums.iter_mut().zip(block) {
                *sum += u16::from(flip <= source);
            }
        }
        let within: u16 = sums.iter().sum();
        (BLOCK * before + usize::from(within)).min(self.flips)
    }

    /// Brings near what a look-up reads.
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

    /// Puts other flips in the place of some.
    fn splice(&mut self, from: usize, upto: usize, others: impl Iterator<Item = Address> + Clone) {
        let behind = from + others.clone().count();
        let flips = behind + (self.flips - upto);
        if flips > self.blocks.len() {
            self.blocks.resize(flips.next_multiple_of(BLOCK), Address::MAX);
        }
        self.blocks.copy_within(upto..self.flips, behind);
        self.blocks[from..behind].iter_mut().zip(others).for_each(|(place, flip)| *place = flip);
        if flips < self.flips {
            self.blocks[flips..self.flips].fill(Address::MAX);
            self.blocks.truncate(flips.next_multiple_of(BLOCK));
        }
        self.flips = flips;
    }

    /// The answer behind so many flips.
    #[inline]
    fn after(&self, flips: usize) -> bool {
        (flips % 2 == 1) != self.at_first
    }
}

/// The blocks that lie wholly up to a source, and the one behind them.
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
        fn it_is_a_bitmap_in_less_space(
            allow: bool,
            step in prop_oneof![Just(1_u16), Just(128)],
            ranges in prop::collection::vec((0..512_u16, 0..512_u16, any::<bool>()), 0..60),
            combs in 0..3_u16,
        ) {
            let mut set = Accepting::new(if allow { Policy::Allow } else { Policy::Deny });
            let mut bitmap = [allow; 512];
            // Hundreds of flips first: every other source.
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
