//! The farm gives the reference's answer, and ends when a node panics.

mod toy;

use ringtap_ring::Kind;
use ringtap_skeleton::{RunError, Seating, farm, reference};
use toy::{List, Toy, options};

#[test]
fn every_ring_and_number_of_workers_gives_the_references_answer() {
    let app = Toy { chatter: 20, ..Toy::default() };
    let list = || List::new(20_000, 500, 3_000, 100);
    let expected = reference::run(&app, list()).unwrap();
    assert_eq!(expected.handled, [20_000]);
    for ring in Kind::ALL {
        for workers in [1, 2, 3, 7] {
            for (capacity, batch) in [(1, 1), (2, 50), (64, 8), (2_048, 50)] {
                let run = farm::run(&app, list(), &options(workers, ring, capacity, batch));
                let run = run.unwrap_or_else(|e| panic!("{ring} × {workers}: {e}"));
                assert_eq!(run.report, expected.report, "{ring} × {workers}, {capacity}, {batch}");
                assert_eq!(run.dispatched, 20_000);
                assert_eq!(run.handled.iter().sum::<u64>(), 20_000);
            }
        }
    }
}

#[test]
fn who_shares_a_seat_changes_nothing() {
    let app = Toy::default();
    let list = || List::new(20_000, 500, 3_000, 256);
    let expected = reference::run(&app, list()).unwrap().report;
    for cores in 1..6 {
        for seating in [Seating::apart(3, cores), Seating::beside(3, cores)] {
            for pin in [vec![], vec![0], vec![1, 0]] {
                let mut options = options(3, Kind::default(), 128, 16);
                options.seating = Seating { pin, ..seating.clone() };
                assert_eq!(farm::run(&app, list(), &options).unwrap().report, expected);
            }
        }
    }
}

#[test]
fn a_lost_item_is_seen() {
    let list = || List::new(5_000, 50, 1_000, 100);
    let expected = reference::run(&Toy::default(), list()).unwrap().report;
    let broken = Toy { lose: Some(4_321), ..Toy::default() };
    let run = farm::run(&broken, list(), &options(2, Kind::default(), 64, 8)).unwrap();
    assert_ne!(run.report, expected);
}

#[test]
fn a_panic_in_a_worker_ends_the_run_with_an_error() {
    for ring in Kind::ALL {
        let app = Toy { panic_at: Some(7_777), ..Toy::default() };
        let run = farm::run(&app, List::new(1_000_000, 50, 5_000, 256), &options(3, ring, 16, 4));
        match run {
            Err(RunError::Panicked { node, message }) => {
                assert!(node.starts_with("worker"), "{node}");
                assert_eq!(message, "told to panic at 7777");
            }
            other => panic!("{ring}: {:?}", other.map(|r| r.handled)),
        }
    }
}

#[test]
fn a_panic_in_the_reference_is_an_error_too() {
    let app = Toy { panic_at: Some(77), ..Toy::default() };
    let run = reference::run(&app, List::new(1_000, 50, 5_000, 256));
    assert!(matches!(run, Err(RunError::Panicked { .. })));
}

#[test]
fn a_core_that_is_not_there_does_not_stop_the_run() {
    let app = Toy::default();
    let mut options = options(2, Kind::default(), 16, 4);
    options.seating.pin = vec![0, 1023, 70_000];
    let run = farm::run(&app, List::new(1_000, 50, 500, 256), &options).unwrap();
    assert_eq!(run.handled.iter().sum::<u64>(), 1_000);
}

#[test]
fn absurd_options_are_refused() {
    let app = Toy::default();
    for workers in [0, 5_000] {
        let run = farm::run(&app, List::new(10, 1, 10, 1), &options(workers, Kind::Lock, 8, 1));
        assert!(matches!(run, Err(RunError::Workers { .. })));
    }
}
