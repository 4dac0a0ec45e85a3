//! Prefixes: bounds hold, no weight is lost silently, and with enough room the heavy prefixes equal the definition.

use std::collections::BTreeMap;

use crate::support::Random;
use proptest::prelude::*;
use ringtap_sketch::{HeavyPrefix, Hierarchy, Parent};

type Address = [u8; 4];

const PARENTS: [Parent<Address>; 4] =
    [|&[a, b, c, _]| [a, b, c, 0], |&[a, b, ..]| [a, b, 0, 0], |&[a, ..]| [a, 0, 0, 0], |_| [0; 4]];

fn prefix(address: &Address, level: usize) -> Address {
    PARENTS[..level].iter().fold(*address, |key, up| up(&key))
}

/// Some networks with many hosts, some heavy hosts, and many other hosts.
fn stream(packets: usize, seed: u64) -> Vec<(Address, u64)> {
    let mut random = Random(seed);
    (0..packets)
        .map(|_| {
            let [a, b, c, d, dice, weight, ..] = random.number().to_le_bytes();
            let address = match dice {
                0..30 => [10, 0, 0, 1],
                30..60 => [10, 1, c % 4, d],
                60..100 => [172, 16, 3, d],
                _ => [a, b, c, d],
            };
            (address, u64::from(weight))
        })
        .collect()
}

fn fed(keys: usize, stream: &[(Address, u64)]) -> Hierarchy<Address> {
    let mut hierarchy = Hierarchy::new(keys, &PARENTS, 7).unwrap();
    stream.chunks(100).for_each(|burst| hierarchy.update_burst(burst));
    hierarchy
}

/// The sums of all prefixes, by level.
fn sums(stream: &[(Address, u64)]) -> Vec<BTreeMap<Address, u64>> {
    (0..=PARENTS.len())
        .map(|level| {
            let mut sums = BTreeMap::new();
            for (address, weight) in stream {
                *sums.entry(prefix(address, level)).or_insert(0) += weight;
            }
            sums
        })
        .collect()
}

/// Heavy prefixes by the definition: from the longest up, each without the weight below other heavy ones.
fn heavy(stream: &[(Address, u64)], threshold: u64) -> Vec<(usize, Address, u64)> {
    let mut left: BTreeMap<Address, u64> = sums(stream).swap_remove(0);
    let mut heavy = Vec::new();
    for level in 0..=PARENTS.len() {
        let mut above = BTreeMap::new();
        for (key, weight) in left {
            if weight >= threshold {
                heavy.push((level, key, weight));
            } else if let Some(up) = PARENTS.get(level) {
                *above.entry(up(&key)).or_insert(0) += weight;
            }
        }
        left = above;
    }
    heavy.sort_unstable();
    heavy
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn bounds_of_every_prefix_hold_without_room(
        packets in 1usize..1500, seed: u64, keys in 2usize..300, parts in 1usize..4,
    ) {
        let stream = stream(packets, seed);
        let mut hierarchy = fed(keys, &[]);
        for part in stream.chunks(packets.div_ceil(parts)) {
            hierarchy.merge(&fed(keys, part)).unwrap();
        }
        let total: u64 = stream.iter().map(|(_, weight)| weight).sum();
        prop_assert_eq!(hierarchy.total(), total);
        for (level, sums) in sums(&stream).iter().enumerate() {
            for (key, sum) in sums.iter().step_by(1 + sums.len() / 40) {
                let (lower, upper) = hierarchy.bounds(level, key);
                prop_assert!((lower..=upper).contains(sum), "{lower} {sum} {upper} of {key:?} on {level}");
            }
        }
        // The last level has only one prefix, so nothing is lost there, and everything is below it.
        prop_assert_eq!((hierarchy.lost(), hierarchy.bounds(4, &[0; 4])), (0, (total, total)));
        let threshold = total / 20 + 1;
        let heavy = hierarchy.heavy(threshold);
        let mut beyond = 0;
        for HeavyPrefix { level, key, lower, upper, beyond: own } in heavy {
            prop_assert_eq!((lower, upper), hierarchy.bounds(level, &key));
            prop_assert!(own >= threshold && own <= lower);
            beyond += own;
        }
        prop_assert!(beyond <= total && beyond + threshold > total, "{beyond} of {total}");
    }

    #[test]
    fn with_room_for_all_the_heavy_prefixes_are_those_of_the_definition(
        packets in 1usize..1500, seed: u64, share in 2u64..50,
    ) {
        let stream = stream(packets, seed);
        let hierarchy = fed(2_000, &stream);
        let threshold = hierarchy.total() / share + 1;
        let mut found: Vec<_> = hierarchy
            .heavy(threshold)
            .into_iter()
            .map(|heavy| (heavy.level, heavy.key, heavy.beyond))
            .collect();
        found.sort_unstable();
        prop_assert_eq!(found, heavy(&stream, threshold));
    }
}

#[test]
fn a_network_whose_hosts_are_all_light_is_found_in_little_memory() {
    let stream = stream(200_000, 3);
    let hierarchy = fed(256, &stream);
    let truth = sums(&stream);
    let heavy = hierarchy.heavy(hierarchy.total() / 12);
    let found = |level, key| heavy.iter().find(|heavy| (heavy.level, heavy.key) == (level, key));
    for (level, key) in [(0, [10, 0, 0, 1]), (1, [172, 16, 3, 0]), (2, [10, 1, 0, 0])] {
        let found = found(level, key).unwrap();
        let sum = truth[level][&key];
        assert!(found.lower as f64 > 0.9 * sum as f64, "{found:?}, {sum}");
    }
    assert!(hierarchy.memory_bytes() < 5 * 512 * 24);
}

#[test]
fn weight_without_room_on_the_last_level_is_reported() {
    let mut hierarchy: Hierarchy<Address> = Hierarchy::new(2, &[], 1).unwrap();
    hierarchy.update_burst(&[([1; 4], 5), ([2; 4], 3), ([3; 4], 9)]);
    assert_eq!((hierarchy.total(), hierarchy.lost()), (17, 8));
    assert_eq!(hierarchy.bounds(0, &[1; 4]), (0, 8));
    assert_eq!(hierarchy.bounds(0, &[3; 4]), (9, 17));
}
