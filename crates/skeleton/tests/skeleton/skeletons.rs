//! Every skeleton gives the reference's answer on real threads, and ends when a node panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::toy::{Item, List, Toy, every_skeleton_and_ring, options, queued};
use ringtap_ring::Kind;
use ringtap_skeleton::{Role, RunError, RunOptions, Seating, ShardMap, Skeleton, reference, run};
use ringtap_stage::{Burst, Fed, Feed};

#[test]
fn every_ring_and_number_of_workers_gives_the_references_answer() {
    let app = Toy { chatter: 20, ..Toy::default() };
    // Through one slot every item waits for its predecessor: few items for the tiny rings.
    for (items, sizes) in [(1_500, [(1, 1), (2, 50)]), (20_000, [(64, 8), (2_048, 50)])] {
        let list = || List::new(items, 500, 300, 100);
        let expected = reference::run(&app, list()).unwrap();
        assert_eq!(expected.handled, [items]);
        for (skeleton, ring) in every_skeleton_and_ring() {
            for (queues, each) in [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 2), (3, 2), (7, 1)] {
                for (capacity, batch) in sizes {
                    let case =
                        format!("{skeleton}, {ring}, {queues} × {each}, {capacity}, {batch}");
                    let options = queued(skeleton, queues, each, ring, capacity, batch);
                    let run = run(skeleton, &app, list().queues(&options), &options);
                    let run = run.unwrap_or_else(|e| panic!("{case}: {e}"));
                    assert_eq!(run.report, expected.report, "{case}");
                    assert_eq!(run.dispatched, items);
                    assert_eq!(run.handled.iter().sum::<u64>(), items);
                }
            }
        }
    }
}

#[test]
fn sharing_seats_changes_nothing() {
    let app = Toy::default();
    let list = || List::new(5_000, 50, 1_000, 100);
    let expected = reference::run(&app, list()).unwrap().report;
    let left_out = Seating { seats: vec![vec![Role::Merger], vec![Role::Worker(1)]], pin: vec![] };
    let no_seats = Seating { seats: vec![], pin: vec![] };
    for (skeleton, ring) in every_skeleton_and_ring() {
        let seatings =
            (1..7).flat_map(|cores| [Seating::apart(4, cores), Seating::beside(4, cores)]);
        for seating in seatings.chain([left_out.clone(), no_seats.clone()]) {
            let mut options = queued(skeleton, 1, 4, ring, 64, 8);
            options.seating = seating;
            let feeds = list().queues(&options);
            assert_eq!(run(skeleton, &app, feeds, &options).unwrap().report, expected);
        }
        for cores in 1..7 {
            let several = [
                Seating::queues(3, cores),
                Seating::side_by_side(3, 2, cores),
                Seating::shared(3, 2, cores),
            ];
            for seating in several {
                let mut options = queued(skeleton, 3, 2, ring, 64, 8);
                options.seating = seating;
                let feeds = list().queues(&options);
                assert_eq!(run(skeleton, &app, feeds, &options).unwrap().report, expected);
            }
        }
    }
}

#[test]
fn a_lost_item_is_seen() {
    let list = || List::new(5_000, 50, 1_000, 100);
    let expected = reference::run(&Toy::default(), list()).unwrap().report;
    let broken = Toy { lose: Some(4_321), ..Toy::default() };
    for skeleton in Skeleton::ALL {
        let options = queued(skeleton, 2, 2, Kind::default(), 64, 8);
        let run = run(skeleton, &broken, list().queues(&options), &options).unwrap();
        assert_ne!(run.report, expected);
    }
}

#[test]
fn a_panic_in_a_worker_ends_the_run_with_an_error() {
    for (skeleton, ring) in every_skeleton_and_ring() {
        let app = Toy { panic_at: Some(7_777), ..Toy::default() };
        let list = List::new(1_000_000, 50, 5_000, 256);
        let options = queued(skeleton, 2, 3, ring, 16, 4);
        match run(skeleton, &app, list.queues(&options), &options) {
            Err(RunError::Panicked { node, message }) => {
                assert!(node.starts_with("worker") || node == "reference", "{node}");
                assert_eq!(message, "panic requested at 7777");
            }
            other => panic!("{skeleton}, {ring}: {:?}", other.map(|r| r.handled)),
        }
    }
}

/// A source without further items until all earlier ones have been handled.
struct Dialogue {
    list: List,
    said: u64,
    handled: Arc<AtomicU64>,
}

impl Feed for Dialogue {
    type Item = Item;

    fn next(&mut self, burst: &mut Burst<Item>) -> Fed {
        let mut polls_left = 20_000;
        while self.handled.load(Relaxed) < self.said {
            polls_left -= 1;
            assert!(polls_left > 0, "{} items, {:?} handled", self.said, self.handled);
            std::thread::sleep(Duration::from_millis(1));
        }
        let fed = self.list.next(burst);
        self.said += burst.len() as u64;
        fed
    }
}

#[test]
fn items_are_handled_while_the_source_waits() {
    for (skeleton, ring) in every_skeleton_and_ring() {
        for chunk in [1, 40, 256] {
            let app = Toy::default();
            let list = List::new(2 * chunk as u64 + 2, 50, 1_000, chunk);
            let feed = Dialogue { list, said: 0, handled: Arc::clone(&app.handled) };
            let mut options = queued(skeleton, 1, 3, ring, 4_096, 50);
            // The source must not delay other nodes.
            let others = vec![Role::Worker(0), Role::Worker(1), Role::Worker(2), Role::Merger];
            options.seating.seats = vec![vec![Role::Dispatcher(0)], others];
            run(skeleton, &app, vec![feed], &options)
                .unwrap_or_else(|e| panic!("{skeleton}, {ring}: {e}"));
        }
    }
}

#[test]
fn a_core_that_is_not_there_does_not_stop_the_run() {
    let app = Toy::default();
    for skeleton in Skeleton::ALL {
        let mut options = queued(skeleton, 2, 1, Kind::default(), 16, 4);
        options.seating.pin = vec![0, 1023, 70_000];
        let feeds = List::new(1_000, 50, 500, 256).queues(&options);
        let run = run(skeleton, &app, feeds, &options).unwrap();
        assert_eq!(run.handled.iter().sum::<u64>(), 1_000);
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let app = Toy::default();
    for skeleton in Skeleton::ALL {
        for workers in [0, 5_000] {
            let options = options(workers, Kind::Lock, 8, 1);
            let run = run(skeleton, &app, vec![List::new(10, 1, 10, 1)], &options);
            assert!(matches!(run, Err(RunError::Workers { .. })));
        }
        for (capacity, report_capacity) in [(0, 1), (1, 0)] {
            let options = queued(skeleton, 1, 2, Kind::Lock, capacity, 1);
            let options = RunOptions { report_capacity, ..options };
            let run = run(skeleton, &app, vec![List::new(10, 1, 10, 1)], &options);
            // The reference has no rings, and multi-queue has no rings for items.
            let refused = matches!(run, Err(RunError::Ring(_)));
            let rings = match skeleton {
                Skeleton::Reference => false,
                Skeleton::MultiQueue => report_capacity == 0,
                _ => true,
            };
            assert_eq!(refused, rings, "{skeleton}");
        }
        // A queue without a worker, without a feed, or too many queues.
        for (queues, workers, feeds) in [(2, 3, 2), (2, 2, 1), (0, 1, 0), (65, 65, 65)] {
            let shards = ShardMap::queued(queues, &vec![1; workers]);
            let options = RunOptions { shards, ..options(1, Kind::Lock, 8, 1) };
            let feeds = (0..feeds).map(|_| List::new(10, 1, 10, 1)).collect();
            let run = run(skeleton, &app, feeds, &options);
            assert!(matches!(run, Err(RunError::Queues { .. })), "{skeleton}, {queues}");
        }
        let one_each = RunOptions { shards: ShardMap::even(2), ..options(1, Kind::Lock, 8, 1) };
        let run = run(skeleton, &app, vec![List::new(10, 1, 10, 1)], &one_each);
        assert_eq!(run.is_err(), skeleton == Skeleton::MultiQueue);
    }
    assert_eq!(
        "fram".parse::<Skeleton>().unwrap_err().to_string(),
        "unknown skeleton \"fram\": use reference, farm, pipeline, shared-pipeline, \
         multi-queue or sync"
    );
    for skeleton in Skeleton::ALL {
        assert_eq!(skeleton.to_string().parse(), Ok(skeleton));
    }
}
