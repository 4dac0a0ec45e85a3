//! Every skeleton in seeded random orders, with tiny rings and stalled nodes.

mod toy;

use ringtap_ring::Kind;
use ringtap_skeleton::{Skeleton, reference, simulate};
use toy::{List, Toy, every_skeleton_and_ring, options};

/// How many orders are tried of each arrangement.
const SEEDS: u64 = 40;

#[test]
fn no_order_of_steps_changes_the_answer_or_blocks() {
    let app = Toy { chatter: 30, ..Toy::default() };
    let list = || List::new(600, 20, 100, 16);
    let expected = reference::run(&app, list()).unwrap().report;
    for (skeleton, ring) in every_skeleton_and_ring() {
        for workers in [1, 2, 3, 7] {
            for (capacity, batch) in [(1, 1), (2, 1), (3, 7), (8, 4), (40, 4)] {
                let options = options(workers, ring, capacity, batch);
                for seed in 0..SEEDS {
                    let run = simulate::run(skeleton, &app, list(), &options, seed);
                    let case = format!("{skeleton}, {ring} × {workers}, {capacity}, seed {seed}");
                    let run = run.unwrap_or_else(|e| panic!("{case}: {e}"));
                    assert_eq!(run.report, expected, "{case}");
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_failure() {
    let app = Toy { lose: Some(321), ..Toy::default() };
    let list = || List::new(600, 20, 100, 16);
    let options = options(3, Kind::default(), 3, 2);
    for skeleton in Skeleton::ALL {
        let run = || simulate::run(skeleton, &app, list(), &options, 5).unwrap().report;
        assert_eq!(run(), run());
        assert_ne!(run(), reference::run(&Toy::default(), list()).unwrap().report);
    }
}
