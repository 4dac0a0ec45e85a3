//! Reversible sketches recover the keys, or report that the search was stopped.

use crate::support::{Tuple, fed, shares, truth, tuple, zipf};
use proptest::prelude::*;
use ringtap_sketch::*;

fn shape(rows: usize, width: usize) -> Shape {
    Shape::new(rows, width).unwrap()
}

/// Addresses with a few heavy ones.
fn addresses(n: u32, seed: u64) -> Vec<([u8; 4], u64)> {
    let mut random = crate::support::Random(seed);
    (0..n)
        .map(|i| {
            let host = if i % 4 == 0 { i / 4 % 20 } else { random.number() as u32 };
            (host.wrapping_mul(77).to_be_bytes(), 1)
        })
        .collect()
}

#[test]
fn sets_recover_exactly_the_heavy_keys_with_enough_room() {
    let stream = zipf(50_000, 3000, 1.0, false, 3);
    let truth = truth(&stream);
    let sketch = fed(Reversible::<Tuple>::new(shape(4, 1024), 9), &stream);
    for threshold in [200, 1000] {
        let found = sketch.recover(threshold, 2_000_000).unwrap();
        for (key, count) in &truth {
            if *count >= threshold {
                assert!(found.iter().any(|heavy| heavy.key == *key), "{key:?} is missing");
            }
        }
        for heavy in &found {
            assert!(heavy.estimate.value >= threshold);
            assert!(truth.get(&heavy.key).is_some_and(|count| *count <= heavy.estimate.upper));
        }
        assert!(!found.is_empty());
    }
}

#[test]
fn an_endless_search_is_stopped() {
    let stream = zipf(50_000, 20_000, 0.8, false, 3);
    let sketch = fed(Reversible::<Tuple>::new(shape(2, 16), 9), &stream);
    assert_eq!(sketch.recover(100, 10_000), Err(SearchBudgetExceeded { steps: 10_000 }));
    let stream = addresses(200_000, 4);
    let sketch = fed(ReversibleModular::new(shape(4, 1024), 9), &stream);
    assert_eq!(sketch.recover(1, 10_000), Err(SearchBudgetExceeded { steps: 10_000 }));
}

#[test]
fn modular_hashing_recovers_every_heavy_address() {
    let stream = addresses(200_000, 4);
    let truth = truth(&stream);
    let threshold = 2000;
    for seed in 0..5 {
        let mut parts = ReversibleModular::new(shape(4, 8192), seed);
        for share in shares(&stream, 3, false) {
            parts.merge(&fed(ReversibleModular::new(shape(4, 8192), seed), &share)).unwrap();
        }
        let whole = fed(ReversibleModular::new(shape(4, 8192), seed), &stream);
        assert_eq!(parts.to_bytes(), whole.to_bytes());
        let found = whole.recover(threshold, 50_000_000).unwrap();
        let mut keys: Vec<[u8; 4]> = found.iter().map(|heavy| heavy.key).collect();
        keys.sort_unstable();
        let right = truth.iter().filter(|(_, count)| **count >= threshold).map(|(key, _)| *key);
        assert_eq!(keys, right.collect::<Vec<_>>());
        assert_eq!(keys.len(), 20);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn merged_parts_are_the_whole(
        stream in proptest::collection::vec((0u64..200, 0u64..100), 0..500), seed: u64, rows in 1usize..=8,
    ) {
        let stream: Vec<(Tuple, u64)> = stream.into_iter().map(|(i, w)| (tuple(i), w)).collect();
        let new = || Reversible::<Tuple>::new(shape(rows, 32), seed);
        let whole = fed(new(), &stream);
        for workers in [1, 2, 7] {
            let mut parts = new();
            for share in shares(&stream, workers, true) {
                parts.merge(&fed(new(), &share)).unwrap();
            }
            prop_assert_eq!(parts.to_bytes(), whole.to_bytes());
        }
        let truth = truth(&stream);
        for i in 0..250 {
            let estimate = whole.estimate(&tuple(i));
            prop_assert!(truth.get(&tuple(i)).copied().unwrap_or(0) <= estimate.upper);
        }
        prop_assert_eq!(Reversible::<Tuple>::from_bytes(&whole.to_bytes()).unwrap().to_bytes(), whole.to_bytes());
    }

    #[test]
    fn modular_sketches_are_linear(n in 0u32..2000, cut in 0usize..2000, seed: u64) {
        let stream = addresses(n, seed);
        let new = || ReversibleModular::new(shape(2, 256), seed);
        let (early, late) = stream.split_at(cut.min(stream.len()));
        let mut rest = fed(new(), &stream);
        rest.subtract(&fed(new(), early)).unwrap();
        prop_assert_eq!(rest.to_bytes(), fed(new(), late).to_bytes());
        let whole = fed(new(), &stream);
        for (key, count) in truth(&stream) {
            prop_assert!(count <= whole.estimate(&key).upper);
        }
        let read = ReversibleModular::from_bytes(&rest.to_bytes()).unwrap();
        prop_assert_eq!(read.to_bytes(), rest.to_bytes());
    }
}
