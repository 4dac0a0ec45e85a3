//! How revisions reach workers, in every order of threads and with every value that loads may see.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringtap-filter --release --test loom
//! ```
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use ringtap_filter::{Board, Limits, Policy, Reader, RuleSet};
use std::sync::Arc;

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(scenario);
}

fn board(workers: usize) -> Arc<Board> {
    Arc::new(Board::new(RuleSet::new(Policy::Deny, Limits::default()), workers))
}

fn change(board: &Board) -> u64 {
    board.transact(|rules| rules.transact("default allow")).expect("it can be made")
}

/// What a worker did by older rules, and who asks for it once they have passed.
struct Sent(UnsafeCell<()>);

// Loom fails if two threads touch the cell without an order between them.
// SAFETY: the cell is never read or written, only tracked.
unsafe impl Sync for Sent {}
// SAFETY: the same.
unsafe impl Send for Sent {}

#[test]
fn once_a_revision_has_passed_nothing_is_sent_by_an_older_one() {
    check(|| {
        let board = board(1);
        let sent = Arc::new(Sent(UnsafeCell::new(())));
        let mut reader = Reader::new(&board, 0);
        let worker = {
            let (board, sent) = (Arc::clone(&board), Arc::clone(&sent));
            thread::spawn(move || {
                let first = reader.rules().revision();
                for _ in 0..2 {
                    if reader.rules().revision() == first {
                        sent.0.with_mut(|_| ());
                    }
                    reader.renew(&board);
                }
                reader.retire(&board);
            })
        };
        let revision = change(&board);
        if board.passed() >= revision {
            sent.0.with_mut(|_| ());
        }
        worker.join().unwrap();
        assert_eq!(board.passed(), u64::MAX);
    });
}

#[test]
fn those_who_change_rules_take_turns() {
    check(|| {
        let board = board(1);
        let first = board.newest().revision();
        let other = {
            let board = Arc::clone(&board);
            thread::spawn(move || change(&board))
        };
        let mut revisions = [change(&board), other.join().unwrap()];
        revisions.sort_unstable();
        assert_eq!(revisions, [first + 1, first + 2]);
        assert_eq!(board.newest().revision(), first + 2);
    });
}
