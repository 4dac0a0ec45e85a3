//! Every skeleton in seeded random orders, with tiny rings and stalled nodes.

use crate::toy::{List, Toy, every_skeleton_and_ring, queued};
use ringtap_ring::Kind;
use ringtap_skeleton::{Skeleton, reference, simulate};

/// Orders tried of each arrangement.
const SEEDS: u64 = 25;

#[test]
fn no_order_of_steps_changes_the_answer_or_blocks() {
    let app = Toy { chatter: 30, ..Toy::default() };
    let list = || List::new(600, 20, 100, 16);
    let expected = reference::run(&app, list()).unwrap().report;
    for (skeleton, ring) in every_skeleton_and_ring() {
        for (queues, each) in [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 2), (3, 2), (7, 1)] {
            for (capacity, batch) in [(1, 1), (2, 1), (3, 7), (8, 4), (40, 4)] {
                let options = queued(skeleton, queues, each, ring, capacity, batch);
                for seed in 0..SEEDS {
                    let feeds = list().queues(&options);
                    let run = simulate::run(skeleton, &app, feeds, &options, seed);
                    let case =
                        format!("{skeleton}, {ring}, {queues} × {each}, {capacity}, seed {seed}");
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
    for (skeleton, queues) in Skeleton::ALL.into_iter().flat_map(|s| [(s, 1), (s, 2)]) {
        let options = queued(skeleton, queues, 3, Kind::default(), 3, 2);
        let feeds = || list().queues(&options);
        let run = || simulate::run(skeleton, &app, feeds(), &options, 5).unwrap().report;
        assert_eq!(run(), run());
        assert_ne!(run(), reference::run(&Toy::default(), list()).unwrap().report);
    }
}
