//! Every skeleton of streams gives what plain iterators give, on threads.

use crate::networks::{all, options};
use proptest::prelude::*;
use ringtap_ring::Kind;
use ringtap_skeleton::stream::{Divided, Options, Policy, Stream, divide_and_conquer};
use ringtap_skeleton::{RunError, Wait};

fn check(n: u64, workers: usize, options: &Options<'static>) {
    for case in all(n, workers) {
        let run = case.network.run(options);
        let run = run.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(run.result == case.expected, "{} of {n} × {workers}, {options:?}", case.name);
    }
}

#[test]
fn every_ring_capacity_and_number_of_workers_gives_the_iterators_answer() {
    for ring in Kind::ALL {
        for workers in [1, 2, 3, 7] {
            for (capacity, batch) in [(1, 1), (2, 50), (64, 8)] {
                check(120, workers, &options(ring, capacity, batch));
            }
        }
    }
}

#[test]
fn long_streams_and_large_bursts_change_nothing() {
    for wait in [Wait::Yield, Wait::Park] {
        check(20_000, 3, &Options { wait, ..Options::default() });
    }
}

#[test]
fn nothing_and_one_item_come_through() {
    for n in [0, 1, 2] {
        for workers in [1, 4] {
            check(n, workers, &Options::default());
        }
    }
}

#[test]
fn the_number_of_cores_and_their_pins_change_nothing() {
    for cores in [0, 1, 2, 3, 5, 100] {
        check(300, 2, &Options { cores, ..Options::default() });
    }
    for pin in [vec![0], vec![1, 0], vec![0, 1_023, 70_000]] {
        check(300, 2, &Options { pin, ..Options::default() });
    }
}

#[test]
fn items_may_be_borrowed_and_not_copy() {
    let words: Vec<String> = (0..500).map(|n| format!("word {n}")).collect();
    let count = std::sync::Mutex::new(0);
    let mut longest = String::new();
    Stream::from_iter(&words)
        .farm_ordered(2, Policy::OnDemand, |_| |word: &String| word.to_uppercase())
        .map(Box::new)
        .for_each(|word| {
            *count.lock().unwrap() += 1;
            if word.len() > longest.len() {
                longest = *word;
            }
        })
        .run(&Options::default())
        .unwrap();
    assert_eq!((count.into_inner().unwrap(), longest.as_str()), (500, "WORD 100"));
}

#[test]
fn disjoint_parts_of_a_slice_may_be_sorted_in_place() {
    let mut numbers: Vec<u64> = (0..50_000).map(crate::networks::f).collect();
    let mut expected = numbers.clone();
    expected.sort_unstable();
    fn divide(part: &mut [u64]) -> Divided<(), [&mut [u64]; 2]> {
        if part.len() < 100 {
            part.sort_unstable();
            return Divided::Solved(());
        }
        let (less, _, more) = part.select_nth_unstable(part.len() / 3);
        Divided::Split([less, more])
    }
    for workers in [1, 2, 5] {
        let mut numbers = numbers.clone();
        divide_and_conquer(&mut numbers[..], workers, divide, |_| (), &Options::default()).unwrap();
        assert!(numbers == expected, "{workers} workers");
    }
    numbers.truncate(0);
    divide_and_conquer(&mut numbers[..], 2, divide, |_| (), &Options::default()).unwrap();
}

#[test]
fn solutions_are_combined_in_order() {
    // Merge sort of text: a wrong order of the parts would show.
    let text: Vec<u8> = (0..5_000u32).map(|n| (crate::networks::f(n.into()) % 251) as u8).collect();
    let divide = |(from, to): (usize, usize)| match to - from {
        0..20 => Divided::Solved(text[from..to].to_vec()),
        n => Divided::Split((0..3).map(move |i| (from + i * n / 3, from + (i + 1) * n / 3))),
    };
    for workers in [1, 3] {
        let run = divide_and_conquer(
            (0, text.len()),
            workers,
            divide,
            |parts| parts.flatten().collect(),
            &Options { capacity: 2, ..Options::default() },
        );
        assert!(run.unwrap().result == text);
    }
}

#[test]
fn a_problem_of_no_parts_is_combined_from_nothing() {
    let divide = |n: u32| Divided::<u32, Vec<u32>>::Split((0..n).collect());
    let combine = |parts: &mut dyn Iterator<Item = u32>| 1 + parts.sum::<u32>();
    let run = divide_and_conquer(10, 2, divide, combine, &Options::default());
    // Each number counts itself and all trees below: 2 to its power.
    assert_eq!(run.unwrap().result, 1 << 10);
}

#[test]
fn options_out_of_range_are_refused() {
    let stream = || Stream::from_iter(0..10u64);
    for workers in [0, 5_000] {
        let farm = stream().farm(workers, Policy::RoundRobin, |_| crate::networks::f).collect();
        assert!(matches!(farm.run(&Options::default()), Err(RunError::Workers { .. })));
        let tree = stream().divide_and_conquer(
            workers,
            |n| if n < 5 { Divided::Solved(n) } else { Divided::Split([n - 1]) },
            |parts| parts.sum(),
        );
        assert!(matches!(tree.collect().run(&Options::default()), Err(RunError::Workers { .. })));
    }
    let empty = Options { capacity: 0, ..Options::default() };
    assert!(matches!(stream().collect().run(&empty), Err(RunError::Ring(_))));
    let endless = Options { capacity: usize::MAX, ..Options::default() };
    assert!(matches!(stream().collect().run(&endless), Err(RunError::Ring(_))));
}

#[test]
fn counts_add_up() {
    let run = Stream::from_iter(0..10_000u64)
        .stage(|x, out| {
            if x % 2 == 0 {
                out.send(x)
            }
        })
        .farm_ordered(3, Policy::OnDemand, |_| crate::networks::f)
        .fold(0u64, |n, _| n + 1)
        .run(&Options { capacity: 16, ..Options::default() })
        .unwrap();
    let names: Vec<_> = run.nodes.iter().map(|n| n.name.as_str()).collect();
    let worker = |n| format!("farm 2 worker {n}: map 1");
    assert_eq!(names[..3], ["source", "stage 1", "farm 2 emitter"]);
    assert_eq!(names[3..6], [worker(0), worker(1), worker(2)]);
    assert_eq!(names[6..], ["farm 2 collector", "fold 3"]);
    let (items_in, items_out): (Vec<_>, Vec<_>) =
        run.nodes.iter().map(|n| (n.items_in, n.items_out)).unzip();
    assert_eq!(items_in[..3], [10_000, 10_000, 5_000]);
    assert_eq!(items_out[..3], [10_000, 5_000, 5_000]);
    assert_eq!(items_in[3..6].iter().sum::<u64>(), 5_000);
    assert_eq!((items_in[6], items_out[6], items_in[7], items_out[7]), (5_000, 5_000, 5_000, 0));
    assert_eq!(run.result, 5_000);
    for node in &run.nodes {
        assert!(node.steps > node.idle_steps, "{node:?}");
        assert!(node.busy <= run.elapsed && (0.0..=1.0).contains(&node.idle_share), "{node:?}");
    }
    assert!(run.nodes[0].full > 0, "160 rings full went through a ring of 16");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any depth, width and grain of a tree, any number of workers, ring and capacity.
    #[test]
    fn any_tree_is_conquered(
        size in 0u64..3_000,
        cut in 1u64..200,
        width in 2u64..6,
        workers in 1usize..6,
        ring in 0usize..Kind::ALL.len(),
        capacity in 1usize..20,
        seed: u64,
    ) {
        let divide = move |(from, to): (u64, u64)| {
            let n = to - from;
            if n <= cut {
                return Divided::Solved((from..to).map(crate::networks::f).fold(0, u64::wrapping_add));
            }
            // Halves, thirds, … and one that is as large as the problem less one item.
            let part = move |i| if i == 0 { from } else { from + 1 + i * (n - 1) / width };
            Divided::Split((0..width).map(move |i| (part(i), part(i + 1))).collect::<Vec<_>>())
        };
        let network = || Stream::from_iter([(0, size), (size, 2 * size)])
            .divide_and_conquer(workers, divide, |parts| parts.fold(0, u64::wrapping_add))
            .fold(0, u64::wrapping_add);
        let expected = (0..2 * size).map(crate::networks::f).fold(0, u64::wrapping_add);
        let options = options(Kind::ALL[ring], capacity, 1 + capacity / 2);
        prop_assert_eq!(network().run(&options).unwrap().result, expected);
        prop_assert_eq!(network().simulate(&options, seed).unwrap().result, expected);
    }
}
