//! Lists of values of a flow in blocks of a pool: memory for what is there, without an allocation for each list.

use std::cell::Cell;

use ringtap_base::prefetch;

use crate::pool::Pool;

/// Memory that all lists of a flow table may take. Blocks that a flow gave back are used again for lists of the same kind, and
/// keep their memory.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    used: Cell<usize>,
}

impl Room {
    pub(crate) const fn new(bytes: usize) -> Self {
        Self { bytes, used: Cell::new(0) }
    }

    fn take(&self, bytes: usize) -> bool {
        let used = self.used.get() + bytes;
        let fits = used <= self.bytes;
        if fits {
            self.used.set(used);
        }
        fits
    }

    /// Bytes that blocks have.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }
}

/// A block of a list, which begins a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Block<T, const N: usize> {
    values: [T; N],
    /// The position of the next block, or 0.
    next: u32,
}

/// The lists. `N`: values of a block.
#[derive(Debug)]
pub(super) struct Chains<T, const N: usize>(Pool<Block<T, N>>);

/// A list: the positions of its first and last block, and the number of its values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

impl Chain {
    /// An empty list.
    pub(super) const NONE: Self = Self { first: 0, last: 0, len: 0 };

    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }
}

impl<T, const N: usize> Default for Chains<T, N> {
    fn default() -> Self {
        Self(Pool::default())
    }
}

impl<T: Copy, const N: usize> Chains<T, N> {
    const BYTES: usize = Pool::<Block<T, N>>::BYTES as usize;

    /// Reserves address space for this number of lists of this length, as far as they have room.
    pub(super) fn reserve(&mut self, lists: usize, len: usize, room: &Room) {
        let blocks = lists.saturating_mul(len.div_ceil(N));
        self.0.reserve(blocks.min(room.bytes / Self::BYTES));
    }

    /// Prefetches the first block of a list.
    #[inline(always)]
    pub(super) fn prefetch_first(&self, chain: &Chain) {
        self.0.get(chain.first).into_iter().for_each(prefetch);
    }

    /// Prefetches the block that gets the next value, unless that will be a new one.
    #[inline(always)]
    pub(super) fn prefetch_last(&self, chain: &Chain) {
        self.0.get(chain.last).into_iter().for_each(prefetch);
    }

    /// Adds a value to a list; false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, value: T, room: &Room) -> bool {
        let at = chain.len() % N;
        if at > 0 {
            self.0[chain.last].values[at] = value;
        } else {
            if !self.0.has_free() && !room.take(Self::BYTES) {
                return false;
            }
            let place = self.0.add(Block { values: [value; N], next: 0 });
            match chain.len {
                0 => chain.first = place,
                _ => self.0[chain.last].next = place,
            }
            chain.last = place;
        }
        chain.len += 1;
        true
    }

    /// The values of a list, by block.
    pub(super) fn slices(&self, chain: &Chain) -> impl Iterator<Item = &[T]> {
        let (mut place, mut left) = (chain.first, chain.len());
        std::iter::from_fn(move || {
            let block = self.0.get(place)?;
            let own = &block.values[..N.min(left)];
            left -= own.len();
            place = block.next;
            Some(own)
        })
    }

    /// Appends the values of a list to `values`.
    pub(super) fn append(&self, chain: &Chain, values: &mut Vec<T>) {
        values.reserve(chain.len());
        self.slices(chain).for_each(|own| values.extend_from_slice(own));
    }

    /// The values of a list.
    pub(super) fn list(&self, chain: &Chain) -> Vec<T> {
        let mut values = Vec::new();
        self.append(chain, &mut values);
        values
    }

    /// Removes all values of a list.
    pub(super) fn clear(&mut self, chain: &mut Chain) {
        let mut place = std::mem::take(chain).first;
        while let Some(block) = self.0.get(place) {
            let next = block.next;
            self.0.release(&mut place);
            place = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_blocks_one_after_another() {
        let (mut chains, room) =
            (Chains::<u32, 3>::default(), Room::new(7 * Chains::<u32, 3>::BYTES));
        let (mut one, mut other) = (Chain::default(), Chain::default());
        for round in 0..3 {
            assert!((0..10).all(|n| chains.push(&mut one, n, &room)));
            assert!((0..9).all(|n| chains.push(&mut other, 100 + n, &room)));
            // All seven blocks are in use.
            assert!(!chains.push(&mut other, 0, &room), "{round}");
            assert!(chains.push(&mut one, 10, &room));
            assert_eq!(chains.list(&one), (0..11).collect::<Vec<_>>());
            assert_eq!(chains.list(&other), (100..109).collect::<Vec<_>>());
            chains.clear(&mut one);
            assert_eq!((chains.list(&one), one.len()), (vec![], 0));
            chains.clear(&mut other);
            assert_eq!(chains.0.counts(), (7, 7));
            assert_eq!(room.used(), 7 * Chains::<u32, 3>::BYTES);
        }
    }
}
