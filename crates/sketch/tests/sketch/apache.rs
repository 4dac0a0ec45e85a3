//! Images of Apache DataSketches are read here, and images written here are read by it.

use crate::support::{fed, zipf};
use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use proptest::prelude::*;
use ringtap_sketch::*;

type Address = [u8; 4];

fn text(key: &Address) -> String {
    std::net::Ipv4Addr::from(*key).to_string()
}

fn parse(text: &str) -> Option<Address> {
    text.parse().ok().map(|address: std::net::Ipv4Addr| address.octets())
}

fn stream() -> Vec<(Address, u64)> {
    let hosts = zipf(50_000, 5000, 1.0, true, 6);
    hosts.into_iter().map(|(key, weight)| ([key[0], key[3], key[9], key[7]], weight)).collect()
}

#[test]
fn written_frequent_items_are_read_by_the_library() {
    for counters in [3, 100, 768, 1 << 14] {
        let ours = fed(MisraGries::<Address>::new(counters, 1).unwrap(), &stream());
        let bytes = ours.to_apache(text);
        let theirs = FrequentItemsSketch::<String>::deserialize(&bytes).unwrap();
        assert_eq!(theirs.total_weight(), ours.total());
        assert_eq!(theirs.maximum_error(), ours.error());
        for Heavy { key, estimate } in ours.heavy(0) {
            assert_eq!(theirs.lower_bound(&text(&key)), estimate.lower);
            assert_eq!(theirs.upper_bound(&text(&key)), estimate.upper);
        }
        assert_eq!(theirs.num_active_items(), ours.keys());
        let back = MisraGries::<Address>::from_apache(&theirs.serialize(), 2, parse).unwrap();
        assert_eq!(back.heavy(0), ours.heavy(0));
        assert_eq!((back.total(), back.error()), (ours.total(), ours.error()));
    }
    let empty = MisraGries::<Address>::new(12, 1).unwrap().to_apache(text);
    assert!(FrequentItemsSketch::<String>::deserialize(&empty).unwrap().is_empty());
    assert_eq!(MisraGries::<Address>::from_apache(&empty, 1, parse).unwrap().total(), 0);
}

#[test]
fn frequent_items_of_the_library_are_read_and_merged() {
    let mut theirs = FrequentItemsSketch::<String>::new(1024).unwrap();
    for (key, weight) in stream() {
        theirs.update_with_count(text(&key), weight);
    }
    let mut ours = MisraGries::<Address>::from_apache(&theirs.serialize(), 3, parse).unwrap();
    let rows = theirs.frequent_items_with_threshold(ErrorType::NoFalseNegatives, 0);
    assert_eq!(ours.keys(), theirs.num_active_items());
    for row in rows {
        let estimate = ours.estimate(&parse(row.item()).unwrap());
        assert_eq!((estimate.lower, estimate.upper), (row.lower_bound(), row.upper_bound()));
    }
    let more = fed(MisraGries::<Address>::new(768, 9).unwrap(), &stream());
    ours.merge(&more).unwrap();
    let truth = crate::support::truth(&stream());
    for (key, count) in truth {
        let Estimate { lower, upper, .. } = ours.estimate(&key);
        assert!((lower..=upper).contains(&(2 * count)));
    }
}

proptest! {
    #[test]
    fn damaged_items_are_errors_or_valid(
        edits in proptest::collection::vec((0usize..200, any::<u8>()), 1..5), cut in 0usize..400,
    ) {
        let sketch = fed(MisraGries::<Address>::new(20, 1).unwrap(), &stream()[..200]);
        let mut bytes = sketch.to_apache(text);
        let whole = bytes.len();
        bytes.truncate(whole - cut.min(whole));
        prop_assert_eq!(MisraGries::<Address>::from_apache(&bytes, 1, parse).is_ok(), cut == 0);
        for (at, value) in edits {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(sketch) = MisraGries::<Address>::from_apache(&bytes, 1, parse) {
            prop_assert!(sketch.memory_bytes() < 1 << 12);
            prop_assert!(sketch.heavy(0).len() <= bytes.len() / 8);
        }
    }
}

#[cfg(feature = "distinct")]
mod distinct {
    use super::*;
    use datasketches::hll::{HllSketch, HllType};

    #[test]
    fn counts_of_parts_merge_to_that_of_the_whole_in_both_directions() {
        let mut whole = Distinct::<Address>::new(12).unwrap();
        let mut parts = [0; 3].map(|_| Distinct::<Address>::new(12).unwrap());
        for i in 0..100_000u32 {
            whole.update(&i.to_be_bytes());
            parts[i as usize % 3].update(&i.to_be_bytes());
            parts[0].update(&(i / 2).to_be_bytes());
        }
        let [mut merged, second, third] = parts;
        merged.merge(&second).unwrap();
        merged.merge(&third).unwrap();
        for sketch in [&whole, &merged] {
            let DistinctEstimate { lower, value, upper } = sketch.estimate();
            assert!(lower <= 100_000.0 && 100_000.0 <= upper);
            assert!((value - 100_000.0).abs() < 5000.0);
            let there = HllSketch::deserialize(&sketch.to_apache()).unwrap();
            assert_eq!(there.estimate(), value);
            let back = Distinct::<Address>::from_apache(&there.serialize()).unwrap();
            assert_eq!(back.estimate(), sketch.estimate());
        }
        let mut theirs = HllSketch::new(12, HllType::Hll8).unwrap();
        theirs.update(datasketches::hash::value::raw_bytes::from_slice(&[1, 2, 3, 4]));
        let mut ours = Distinct::<Address>::from_apache(&theirs.serialize()).unwrap();
        ours.update(&[1, 2, 3, 4]);
        assert_eq!(ours.estimate().value.round(), 1.0);
        assert!(Distinct::<Address>::new(40).is_err());
    }

    proptest! {
        #[test]
        fn invalid_bytes_are_errors(
            n in 0u32..5000, cut in 1usize..300, edits in proptest::collection::vec((0usize..300, any::<u8>()), 0..4),
        ) {
            let mut sketch = Distinct::<Address>::new(8).unwrap();
            (0..n).for_each(|i| sketch.update(&i.to_be_bytes()));
            let mut bytes = sketch.to_apache();
            prop_assert!(Distinct::<Address>::from_apache(&bytes[..bytes.len().saturating_sub(cut)]).is_err());
            for (at, value) in edits {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            if let Ok(sketch) = Distinct::<Address>::from_apache(&bytes) {
                prop_assert!(sketch.memory_bytes() < 1 << 22);
                let _ = sketch.estimate();
            }
        }
    }
}
