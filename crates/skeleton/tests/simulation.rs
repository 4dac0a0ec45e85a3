//! The farm in seeded random orders, with tiny rings and stalled nodes.

mod toy;

use ringtap_ring::Kind;
use ringtap_skeleton::{reference, simulate};
use toy::{List, Toy, options};

/// How many orders are tried of each arrangement.
const SEEDS: u64 = 40;

#[test]
fn no_order_of_steps_changes_the_answer_or_blocks() {
    let app = Toy { chatter: 30, ..Toy::default() };
    let list = || List::new(600, 20, 100, 16);
    let expected = reference::run(&app, list()).unwrap().report;
    for ring in Kind::ALL {
        for workers in [1, 2, 3, 7] {
            for (capacity, batch) in [(1, 1), (2, 1), (3, 7), (8, 4)] {
                let options = options(workers, ring, capacity, batch);
                for seed in 0..SEEDS {
                    let run = simulate::run(&app, list(), &options, seed);
                    let run = run.unwrap_or_else(|e| panic!("{ring} × {workers}, {seed}: {e}"));
                    assert_eq!(run.report, expected, "{ring} × {workers}, seed {seed}");
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
    let runs: Vec<_> =
        (0..2).map(|_| simulate::run(&app, list(), &options, 5).unwrap().report).collect();
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], reference::run(&Toy::default(), list()).unwrap().report);
}
