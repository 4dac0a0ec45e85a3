//! Laws of all sketches: bounds hold, no weight is lost silently, merging equals the definition.

use crate::support::{Tuple, fed, shares, truth, tuple, zipf};
use proptest::prelude::*;
use ringtap_sketch::*;
use std::collections::BTreeMap;

type Stream = Vec<(Tuple, u64)>;

/// Random streams, and difficult ones: few keys, floods of new keys with a heavy key among them, a run of one key.
fn streams() -> impl Strategy<Value = Stream> {
    let weight = prop_oneof![5 => Just(1u64), 3 => 0u64..1500, 1 => 0..=u64::from(u32::MAX)];
    let random = proptest::collection::vec(((0u64..300).prop_map(tuple), weight), 0..1500);
    let flood = (0u64..1000, 1u64..2000).prop_map(|(from, n)| {
        let mut stream: Stream = (from..from + n).map(|i| (tuple(i), 1)).collect();
        let late = stream.clone();
        stream.extend(late.into_iter().step_by(3));
        stream
    });
    // The worst case of Misra–Gries: all counters equal, then new keys one after the other.
    let level = (1u64..40, 1u64..20).prop_map(|(keys, rounds)| {
        (0..rounds).flat_map(|r| (0..keys + r).map(|i| (tuple(i), 1))).collect::<Stream>()
    });
    let sandwich = (1usize..400, 1u64..5).prop_map(|(n, gap)| {
        (0..n as u64)
            .map(|i| (tuple(if i % gap == 0 { 7 } else { i }), 1 + i % 3))
            .collect::<Stream>()
    });
    let runs = proptest::collection::vec((0u64..40, 1usize..60), 0..40).prop_map(|runs| {
        runs.into_iter().flat_map(|(i, n)| vec![(tuple(i), 2); n]).collect::<Stream>()
    });
    prop_oneof![4 => random, 1 => flood, 1 => level, 1 => sandwich, 1 => runs]
}

/// Checks the bounds of all keys in the stream and of some others. Returns the number of wrong lower bounds that are
/// not certain.
fn hold_bounds<S: Sketch<Key = Tuple>>(sketch: &S, truth: &BTreeMap<Tuple, u64>) -> usize {
    assert_eq!(sketch.total(), truth.values().sum::<u64>());
    let strangers = (1 << 20..(1 << 20) + 50).map(|i| (tuple(i), 0));
    let mut failed = 0;
    for (key, count) in truth.iter().map(|(key, count)| (*key, *count)).chain(strangers) {
        let Estimate { lower, value, upper, confidence } = sketch.estimate(&key);
        assert!(count <= upper, "{count} of {key:?} is above {upper}");
        assert!(lower <= value && value <= upper, "{lower} {value} {upper}");
        if confidence == 1.0 {
            assert!(lower <= count, "{count} of {key:?} is below {lower}");
        } else {
            failed += usize::from(lower > count);
        }
    }
    failed
}

fn hold_heavy<S: HeavyKeys<Key = Tuple>>(sketch: &S, threshold: u64) {
    let heavy = sketch.heavy(threshold);
    for pair in heavy.windows(2) {
        let rank = |heavy: &Heavy<Tuple>| (std::cmp::Reverse(heavy.estimate.value), heavy.key);
        assert!(rank(&pair[0]) < rank(&pair[1]));
    }
    for most in [0, 1, heavy.len() / 2, heavy.len(), usize::MAX] {
        assert_eq!(sketch.heaviest(threshold, most), heavy[..most.min(heavy.len())]);
    }
    for Heavy { key, estimate } in heavy {
        assert!(estimate.value >= threshold);
        assert_eq!(estimate, sketch.estimate(&key));
    }
}

/// Bounds hold for the whole, for merged parts, after a clear, and in the image.
fn hold_all<S: Sketch<Key = Tuple> + Clone>(new: impl Fn() -> S, stream: &Stream) {
    let truth = truth(stream);
    hold_bounds(&fed(new(), stream), &truth);
    for by_key in [false, true] {
        let mut merged = new();
        for share in shares(stream, 3, by_key) {
            merged.merge(&fed(new(), &share)).unwrap();
        }
        hold_bounds(&merged, &truth);
        let image = merged.to_bytes();
        let read = S::from_bytes(&image).unwrap();
        hold_bounds(&read, &truth);
        assert_eq!(read.to_bytes(), image);
        merged.clear();
        assert_eq!(merged.to_bytes(), new().to_bytes());
    }
}

/// Merged parts equal the whole, bit for bit, for any number of workers and in any order.
fn hold_exactly<S: Sketch<Key = Tuple>>(new: impl Fn() -> S, stream: &Stream) {
    let whole = fed(new(), stream).to_bytes();
    for workers in [1, 2, 3, 7] {
        for by_key in [false, true] {
            let parts: Vec<S> =
                shares(stream, workers, by_key).iter().map(|s| fed(new(), s)).collect();
            let (mut forth, mut back) = (new(), new());
            for (a, b) in parts.iter().zip(parts.iter().rev()) {
                forth.merge(a).unwrap();
                back.merge(b).unwrap();
            }
            assert_eq!(forth.to_bytes(), whole);
            assert_eq!(back.to_bytes(), whole);
        }
    }
}

fn shape(rows: usize, width: usize) -> Shape {
    Shape::new(rows, width).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn count_min_is_linear_and_never_too_low(stream in streams(), rows in 1usize..=8, seed: u64) {
        let new = || CountMin::<Tuple, u32>::new(shape(rows, 64), seed);
        hold_all(new, &stream);
        hold_exactly(new, &stream);
        hold_exactly(|| CountMin::<Tuple, u64>::new(shape(rows, 64), seed), &stream);
        let (early, late) = stream.split_at(stream.len() / 2);
        let mut rest = fed(CountMin::<Tuple, u64>::new(shape(rows, 64), seed), &stream);
        rest.subtract(&fed(CountMin::new(shape(rows, 64), seed), early)).unwrap();
        let alone = fed(CountMin::<Tuple, u64>::new(shape(rows, 64), seed), late);
        prop_assert_eq!(rest.to_bytes(), alone.to_bytes());
    }

    #[test]
    fn conservative_update_lies_between_the_truth_and_count_min(
        stream in streams(), rows in 1usize..=8, seed: u64,
    ) {
        let new = || ConservativeCountMin::<Tuple, u32>::new(shape(rows, 64), seed);
        hold_all(new, &stream);
        let plain = fed(CountMin::<Tuple, u32>::new(shape(rows, 64), seed), &stream);
        let conservative = fed(new(), &stream);
        for key in truth(&stream).keys() {
            prop_assert!(conservative.estimate(key).upper <= plain.estimate(key).upper);
        }
    }

    #[test]
    fn candidates_keep_the_bounds_and_list_what_they_estimate(stream in streams(), seed: u64) {
        let new = || CandidateCountMin::<Tuple>::new(shape(4, 64), 64, seed).unwrap();
        hold_all(new, &stream);
        let sketch = fed(new(), &stream);
        hold_heavy(&sketch, 5);
        // Its counters are those of conservative update.
        let plain = fed(ConservativeCountMin::<Tuple, u64>::new(shape(4, 64), seed), &stream);
        for key in truth(&stream).keys() {
            prop_assert_eq!(sketch.estimate(key), plain.estimate(key));
        }
    }

    #[test]
    fn misra_gries_stays_within_its_error(
        stream in streams(), counters in 1usize..100, seed: u64,
    ) {
        let new = || MisraGries::<Tuple>::new(counters, seed).unwrap();
        hold_all(new, &stream);
        let mut parts = new();
        for share in shares(&stream, 3, false) {
            parts.merge(&fed(new(), &share)).unwrap();
        }
        for sketch in [fed(new(), &stream), parts] {
            hold_heavy(&sketch, 5);
            let kept: u64 = sketch.heavy(0).iter().map(|heavy| heavy.estimate.lower).sum();
            // offset × (counters + 1) / 2 was subtracted from the counters.
            let taken = u128::from(sketch.total() - kept) * 2;
            prop_assert!(u128::from(sketch.error()) * (counters as u128 + 1) <= taken);
            prop_assert!(sketch.keys() <= counters);
            // No key above the error is missing.
            let heavy = sketch.heavy(sketch.error() + 1);
            for (key, count) in truth(&stream) {
                prop_assert!(count <= sketch.error() || heavy.iter().any(|heavy| heavy.key == key));
            }
        }
    }

    #[test]
    fn misra_gries_with_room_for_all_is_exact(stream in streams(), seed: u64) {
        hold_exactly(|| MisraGries::<Tuple>::new(4000, seed).unwrap(), &stream);
    }

    #[test]
    fn space_saving_bounds_are_certain(
        stream in streams(), keys in 1usize..100, seed: u64,
    ) {
        let new = || SpaceSaving::<Tuple>::new(keys, seed).unwrap();
        hold_all(new, &stream);
        let whole = fed(new(), &stream);
        let uppers: u64 = whole.heavy(0).iter().map(|heavy| heavy.estimate.upper).sum();
        prop_assert_eq!(uppers, whole.total());
        let mut parts = new();
        for share in shares(&stream, 3, false) {
            parts.merge(&fed(new(), &share)).unwrap();
        }
        for sketch in [whole, parts] {
            hold_heavy(&sketch, 5);
            prop_assert!(sketch.heavy(0).len() <= keys.next_multiple_of(8));
            let kept = sketch.heavy(0);
            for (key, count) in truth(&stream) {
                prop_assert!(count <= sketch.error() || kept.iter().any(|heavy| heavy.key == key));
            }
        }
    }

    #[test]
    fn mv_sketch_bounds_are_certain_and_majorities_are_found(
        stream in streams(), rows in 1usize..=8, seed: u64,
    ) {
        let new = || MvSketch::<Tuple>::new(shape(rows, 16), seed);
        hold_all(new, &stream);
        let sketch = fed(new(), &stream);
        hold_heavy(&sketch, 5);
        let total = sketch.total();
        let heavy = sketch.heavy(1);
        for (key, count) in truth(&stream) {
            prop_assert!(count * 2 <= total || heavy.iter().any(|heavy| heavy.key == key));
        }
    }

    #[test]
    fn hash_tables_count_what_they_lose(stream in streams(), slots in 1usize..200, seed: u64) {
        for collision in Collision::ALL {
            let new = || HashTable::<Tuple>::new(slots, collision, seed).unwrap();
            hold_all(new, &stream);
            let mut parts = new();
            for share in shares(&stream, 3, false) {
                parts.merge(&fed(new(), &share)).unwrap();
            }
            for table in [fed(new(), &stream), parts] {
                hold_heavy(&table, 5);
                let kept: u64 = table.heavy(0).iter().map(|heavy| heavy.estimate.value).sum();
                prop_assert_eq!(kept + table.lost(), table.total());
            }
        }
        let kept = fed(HashTable::<Tuple>::new(slots, Collision::KeepFirst, seed).unwrap(), &stream);
        let truth = truth(&stream);
        for Heavy { key, estimate } in kept.heavy(1) {
            prop_assert!(estimate.is_exact());
            prop_assert_eq!(estimate.value, truth[&key]);
        }
    }

    #[test]
    fn the_exact_table_is_exact_until_it_is_full(
        stream in streams(), room in 1usize..400, seed: u64,
    ) {
        hold_exactly(|| Exact::<Tuple>::new(4000, seed).unwrap(), &stream);
        let new = || Exact::<Tuple>::new(room, seed).unwrap();
        hold_all(new, &stream);
        let table = fed(new(), &stream);
        hold_heavy(&table, 5);
        prop_assert!(table.keys() <= room);
        let truth = truth(&stream);
        for (key, count) in table.iter() {
            prop_assert_eq!(count, truth[&key]);
        }
        prop_assert_eq!(table.iter().map(|(_, count)| count).sum::<u64>() + table.missed(), table.total());
    }
}

#[test]
fn zipf_streams_keep_the_probable_bounds_as_often_as_promised() {
    for (s, octets) in [(0.8, false), (0.9, true), (1.0, false), (1.1, true)] {
        let stream = zipf(60_000, 20_000, s, octets, 11);
        let truth = truth(&stream);
        let keys = truth.len() + 50;
        for seed in 0..3 {
            for rows in [1, 2, 4] {
                let shape = shape(rows, 512);
                let allowed = (shape.delta() * keys as f64) as usize;
                let plain = fed(CountMin::<Tuple, u64>::new(shape, seed), &stream);
                assert!(hold_bounds(&plain, &truth) <= allowed);
                let conservative =
                    fed(ConservativeCountMin::<Tuple, u64>::new(shape, seed), &stream);
                assert!(hold_bounds(&conservative, &truth) <= allowed);
                hold_bounds(&fed(MvSketch::<Tuple>::new(shape, seed), &stream), &truth);
            }
            hold_bounds(&fed(MisraGries::<Tuple>::new(384, seed).unwrap(), &stream), &truth);
            hold_bounds(&fed(SpaceSaving::<Tuple>::new(384, seed).unwrap(), &stream), &truth);
            hold_bounds(&fed(Exact::<Tuple>::new(3000, seed).unwrap(), &stream), &truth);
            for collision in Collision::ALL {
                hold_bounds(
                    &fed(HashTable::<Tuple>::new(999, collision, seed).unwrap(), &stream),
                    &truth,
                );
            }
        }
    }
}

#[test]
fn heavy_keys_of_a_zipf_stream_are_found() {
    let stream = zipf(400_000, 50_000, 1.0, false, 5);
    let truth = truth(&stream);
    let threshold = 400;
    let right: Vec<Tuple> =
        truth.iter().filter(|(_, c)| **c >= threshold).map(|(k, _)| *k).collect();
    assert!(right.len() > 50);
    let f1 = |heavy: Vec<Heavy<Tuple>>| {
        let hits = heavy.iter().filter(|heavy| truth[&heavy.key] >= threshold).count();
        2.0 * hits as f64 / (heavy.len() + right.len()) as f64
    };
    assert_eq!(f1(fed(Exact::<Tuple>::new(1 << 17, 1).unwrap(), &stream).heavy(threshold)), 1.0);
    assert!(f1(fed(MisraGries::<Tuple>::new(6144, 1).unwrap(), &stream).heavy(threshold)) >= 0.99);
    assert!(f1(fed(SpaceSaving::<Tuple>::new(6144, 1).unwrap(), &stream).heavy(threshold)) >= 0.99);
    assert!(
        f1(fed(MvSketch::<Tuple>::new(shape(2, 1 << 13), 1), &stream).heavy(threshold)) >= 0.98
    );
    let candidates = CandidateCountMin::<Tuple>::new(shape(4, 1 << 13), 1024, 1).unwrap();
    assert!(f1(fed(candidates, &stream).heavy(threshold)) >= 0.98);
}

#[test]
fn saturated_counters_have_wide_bounds() {
    let key = tuple(1);
    let mut full = CountMin::<Tuple, u32>::new(shape(2, 4), 1);
    full.update(&key, u64::from(u32::MAX) - 1);
    assert_eq!(full.estimate(&key).upper, u64::from(u32::MAX) - 1);
    full.update(&key, 10);
    full.update(&key, 1 << 40);
    assert_eq!(full.estimate(&key).upper, full.total());
    assert_eq!(full.total(), u64::from(u32::MAX) + 9 + (1 << 40));
    let part = CountMin::<Tuple, u32>::new(shape(2, 4), 1);
    assert_eq!(full.subtract(&part), Err(SubtractError::Saturated));
    let mut conservative = ConservativeCountMin::<Tuple, u32>::new(shape(2, 4), 1);
    conservative.update(&key, 1 << 40);
    assert_eq!(conservative.estimate(&key).upper, 1 << 40);
}

#[test]
fn totals_saturate() {
    fn full<S: Sketch<Key = Tuple>>(mut sketch: S) {
        for i in 0..40 {
            sketch.update(&tuple(i), u64::MAX / 2);
        }
        sketch.update(&tuple(1), u64::MAX);
        assert_eq!(sketch.total(), u64::MAX);
        assert_eq!(sketch.estimate(&tuple(1)).upper, u64::MAX);
    }
    full(CountMin::<_, u64>::new(shape(2, 4), 1));
    full(CountMin::<_, u32>::new(shape(2, 4), 1));
    full(ConservativeCountMin::<_, u64>::new(shape(2, 4), 1));
    full(MvSketch::new(shape(2, 4), 1));
    full(MisraGries::new(4, 1).unwrap());
    full(SpaceSaving::new(4, 1).unwrap());
    full(Exact::new(4, 1).unwrap());
    for collision in Collision::ALL {
        full(HashTable::new(3, collision, 1).unwrap());
    }
}

#[test]
fn sketches_of_other_sizes_or_seeds_do_not_merge() {
    let mut a = CountMin::<Tuple, u32>::new(shape(2, 64), 1);
    a.update(&tuple(1), 5);
    let before = a.to_bytes();
    assert_eq!(a.merge(&CountMin::new(shape(2, 64), 2)), Err(Mismatch::Seed));
    assert_eq!(a.merge(&CountMin::new(shape(3, 64), 1)), Err(Mismatch::Parameters));
    let mut stranger = CountMin::new(shape(2, 64), 1);
    stranger.update(&tuple(2), 1);
    assert_eq!(a.subtract(&stranger), Err(SubtractError::NotContained));
    assert_eq!(a.to_bytes(), before);
    let mut mv = MvSketch::<Tuple>::new(shape(2, 64), 1);
    assert_eq!(mv.merge(&MvSketch::new(shape(2, 64), 2)), Err(Mismatch::Seed));
    let mut saving = SpaceSaving::<Tuple>::new(9, 1).unwrap();
    assert_eq!(saving.merge(&SpaceSaving::new(9, 2).unwrap()), Err(Mismatch::Seed));
    assert_eq!(saving.merge(&SpaceSaving::new(17, 1).unwrap()), Err(Mismatch::Parameters));
    let mut table = HashTable::<Tuple>::new(9, Collision::Vote, 1).unwrap();
    let other = HashTable::new(9, Collision::Overwrite, 1).unwrap();
    assert_eq!(table.merge(&other), Err(Mismatch::Parameters));
    let mut exact = Exact::<Tuple>::new(9, 1).unwrap();
    assert_eq!(exact.merge(&Exact::new(10, 1).unwrap()), Err(Mismatch::Parameters));
    // Tables of keys hash them again, so their seeds may differ.
    let mut other = Exact::new(9, 2).unwrap();
    other.update(&tuple(3), 4);
    exact.merge(&other).unwrap();
    assert!(exact.estimate(&tuple(3)).is_exact());
}

#[test]
fn invalid_sizes_are_errors() {
    assert_eq!(Shape::new(0, 64), Err(InvalidSize::Rows(0)));
    assert_eq!(Shape::new(9, 64), Err(InvalidSize::Rows(9)));
    assert_eq!(Shape::new(2, 0), Err(InvalidSize::Width(0)));
    assert_eq!(Shape::new(2, 65), Err(InvalidSize::Width(65)));
    assert_eq!(Shape::new(2, 1 << 32), Err(InvalidSize::Width(1 << 32)));
    assert_eq!(Shape::for_error(0.0, 0.1), Err(InvalidSize::Error));
    assert_eq!(Shape::for_error(f64::NAN, 0.1), Err(InvalidSize::Error));
    assert!(Shape::for_error(1e-300, 0.1).is_err());
    let fit = Shape::for_error(0.001, 0.02).unwrap();
    assert_eq!((fit.rows(), fit.width()), (4, 4096));
    assert!(fit.epsilon() <= 0.001 && fit.delta() <= 0.02);
    assert!(Exact::<Tuple>::new(0, 1).is_err() && MisraGries::<Tuple>::new(0, 1).is_err());
    assert!(SpaceSaving::<Tuple>::new(0, 1).is_err());
    assert!(Hierarchy::<Tuple>::new(1, &[], 1).is_err());
    assert!(HashTable::<Tuple>::new(0, Collision::Vote, 1).is_err());
    assert!(CandidateCountMin::<Tuple>::new(fit, 48, 1).is_err());
}

#[test]
fn keys_of_any_length_count() {
    fn counts<const N: usize>() {
        let key = |i: u8| std::array::from_fn::<u8, N, _>(|at| if at == N / 2 { i } else { 3 });
        let stream: Vec<([u8; N], u64)> = (0..200).map(|i| (key(i), u64::from(i) + 1)).collect();
        let exact = fed(Exact::new(4096, 1).unwrap(), &stream);
        let sketch = fed(MisraGries::new(300, 1).unwrap(), &stream);
        let cms = fed(CountMin::<_, u32>::new(shape(4, 4096), 1), &stream);
        for (key, count) in truth(&stream) {
            assert_eq!(exact.estimate(&key), sketch.estimate(&key));
            assert_eq!(exact.estimate(&key).value, count);
            assert_eq!(cms.estimate(&key).value, count, "length {N}");
        }
        assert_eq!(Exact::from_bytes(&exact.to_bytes()).unwrap().heavy(0), exact.heavy(0));
    }
    counts::<1>();
    counts::<4>();
    counts::<8>();
    counts::<13>();
    counts::<16>();
    counts::<32>();
    counts::<37>();
    counts::<64>();
}
