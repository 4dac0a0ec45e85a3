//! MCRingBuffer exactly as in the paper (figure 5), batch 50; the baseline of a claim.
//!
//! It never publishes an incomplete batch, so the number of items must be a multiple of the batch.

use crate::{
    ends::{Pair, pair},
    item::Item,
};
use ringtap_ring::published::{McRingBuffer, ends};

const BATCH: u32 = 50;

pub fn single<T: Item>(capacity: usize, burst: usize) -> Pair {
    let max = u32::try_from(capacity).expect("a small ring");
    let (mut producer, mut consumer) = ends(McRingBuffer::new(max, BATCH).expect("a small ring"));
    pair(
        burst,
        move |next, _| usize::from(producer.insert(T::new(next))),
        move |next, _, wrong| match consumer.extract() {
            Some(item) => {
                *wrong |= item.differs(next);
                1
            }
            None => 0,
        },
    )
}
