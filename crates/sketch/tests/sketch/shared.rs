//! Shared forms lose nothing with any number of threads.

use crate::support::{Tuple, fed, shares, zipf};
use ringtap_sketch::*;
use std::thread;

const SEED: u64 = 17;

fn shape() -> Shape {
    Shape::new(4, 256).unwrap()
}

/// Few keys, so that threads often update the same counters.
fn stream() -> Vec<(Tuple, u64)> {
    zipf(200_000, 300, 1.1, true, 8)
}

fn by_threads<S: SharedSketch<Separate: Sketch<Key = Tuple>>>(
    sketch: S,
    threads: usize,
    by_key: bool,
) -> S::Separate {
    thread::scope(|scope| {
        for share in shares(&stream(), threads, by_key) {
            let sketch = &sketch;
            scope.spawn(move || share.chunks(32).for_each(|burst| sketch.update_burst(burst)));
        }
    });
    sketch.into_separate()
}

#[test]
fn a_shared_count_min_is_that_of_one_owner() {
    let alone = fed(CountMin::<Tuple, u64>::new(shape(), SEED), &stream()).to_bytes();
    for threads in 1..=4 {
        for by_key in [false, true] {
            let shared = by_threads(SharedCountMin::<Tuple>::new(shape(), SEED), threads, by_key);
            assert_eq!(shared.to_bytes(), alone);
        }
    }
}

#[test]
fn a_shared_reversible_sketch_is_that_of_one_owner() {
    let alone = fed(Reversible::<Tuple>::new(shape(), SEED), &stream()).to_bytes();
    for threads in 1..=4 {
        let shared = by_threads(SharedReversible::<Tuple>::new(shape(), SEED), threads, false);
        assert_eq!(shared.to_bytes(), alone);
    }
}

#[test]
fn a_shared_hash_table_keeps_the_total_and_its_bounds() {
    let stream = stream();
    let truth = crate::support::truth(&stream);
    for collision in Collision::ALL {
        for threads in 1..=4 {
            let new = SharedHashTable::<Tuple>::new(100, collision, SEED).unwrap();
            let table = by_threads(new, threads, false);
            assert_eq!(table.total(), truth.values().sum::<u64>());
            let kept: u64 = table.heavy(0).iter().map(|heavy| heavy.estimate.value).sum();
            assert_eq!(kept + table.lost(), table.total());
            for (key, count) in &truth {
                let Estimate { lower, upper, .. } = table.estimate(key);
                assert!((lower..=upper).contains(count));
            }
            if threads == 1 {
                let alone = fed(HashTable::<Tuple>::new(100, collision, SEED).unwrap(), &stream);
                assert_eq!(table.to_bytes(), alone.to_bytes());
            }
        }
        // No two keys share a slot: then the order has no effect.
        let roomy = SharedHashTable::<Tuple>::new(1 << 20, collision, SEED).unwrap();
        let alone = fed(HashTable::<Tuple>::new(1 << 20, collision, SEED).unwrap(), &stream);
        assert_eq!(alone.lost(), 0);
        assert_eq!(by_threads(roomy, 4, false).to_bytes(), alone.to_bytes());
    }
}
