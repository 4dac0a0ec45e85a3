//! Hits of watched entries: packets from or to their addresses, and messages.
//!
//! They are counted by second, and a second is reported when all packets before its end have arrived. So the hits before
//! a time are the same at any marks. Cells are bounded; hits without room are not counted, and the owner says so.

use std::collections::BTreeMap;
use std::time::Duration;

/// Most cells.
pub(super) const CELLS: usize = 1 << 15;
/// Memory of a cell in a worker, on its way, and in the merger.
pub(super) const CELL_BYTES: u64 = 160;

const SECOND_NS: u64 = Duration::from_secs(1).as_nanos() as u64;

/// A second since 1970, an entry, and its hits.
pub(super) type Cell = ((u64, u32), u64);

/// The second of a time.
#[inline(always)]
pub(super) const fn second(time_ns: u64) -> u64 {
    time_ns / SECOND_NS
}

/// The end of a second.
pub(super) const fn end_ns(second: u64) -> u64 {
    (second + 1).saturating_mul(SECOND_NS)
}

#[derive(Default)]
pub(super) struct Hits(BTreeMap<(u64, u32), u64>);

impl Hits {
    /// Adds hits; false if there is no room for them.
    pub(super) fn add(&mut self, second: u64, entry: u32, hits: u64) -> bool {
        let has_room = self.0.len() < CELLS;
        match self.0.get_mut(&(second, entry)) {
            Some(own) => *own += hits,
            None if has_room => {
                self.0.insert((second, entry), hits);
            }
            None => return false,
        }
        true
    }

    /// All hits, in order of time.
    pub(super) fn take(&mut self) -> Vec<Cell> {
        std::mem::take(&mut self.0).into_iter().collect()
    }

    /// The hits of seconds that have ended at this time, in order of time.
    pub(super) fn take_before(&mut self, time_ns: u64) -> Vec<Cell> {
        let rest = self.0.split_off(&(second(time_ns), 0));
        std::mem::replace(&mut self.0, rest).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_wait_for_the_end_of_their_second_and_have_bounded_memory() {
        let mut hits = Hits::default();
        for (at_ns, entry) in [(5, 1), (SECOND_NS - 1, 1), (SECOND_NS, 1), (3, 0)] {
            assert!(hits.add(second(at_ns), entry, 2));
        }
        assert_eq!(hits.take_before(SECOND_NS - 1), []);
        assert_eq!(hits.take_before(SECOND_NS), [((0, 0), 2), ((0, 1), 4)]);
        assert_eq!((end_ns(0), hits.take()), (SECOND_NS, vec![((1, 1), 2)]));
        assert!((0..CELLS as u32).all(|entry| hits.add(0, entry, 1)));
        assert!(!hits.add(1, 0, 1) && hits.add(0, 7, 1));
        assert_eq!(hits.take().len(), CELLS);
    }
}
