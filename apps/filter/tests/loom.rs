//! How revisions reach workers, in every thread order and with every value that loads may return.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringtap-filter --release --test loom
//! ```
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use ringtap_filter::{Limits, Policy, Reader, RulePublisher, RuleSet};
use std::sync::Arc;

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(scenario);
}

fn publisher(workers: usize) -> Arc<RulePublisher> {
    Arc::new(RulePublisher::new(RuleSet::new(Policy::Deny, Limits::default()), workers))
}

fn change(publisher: &RulePublisher) -> u64 {
    publisher.transact(|rules| rules.transact("default allow")).expect("a valid transaction")
}

/// A worker's output by older rules, and the thread that checks it after they have passed.
struct Sent(UnsafeCell<()>);

// Loom fails if two threads touch the cell without an order between them.
// SAFETY: the cell is never read or written, only tracked.
unsafe impl Sync for Sent {}
// SAFETY: the same.
unsafe impl Send for Sent {}

#[test]
fn after_a_revision_has_passed_nothing_is_sent_by_an_older_one() {
    check(|| {
        let publisher = publisher(1);
        let sent = Arc::new(Sent(UnsafeCell::new(())));
        let mut reader = Reader::new(&publisher, 0);
        let worker = {
            let (publisher, sent) = (Arc::clone(&publisher), Arc::clone(&sent));
            thread::spawn(move || {
                let first = reader.rules().revision();
                for _ in 0..2 {
                    if reader.rules().revision() == first {
                        sent.0.with_mut(|_| ());
                    }
                    reader.renew(&publisher);
                }
                reader.retire(&publisher);
            })
        };
        let revision = change(&publisher);
        if publisher.passed() >= revision {
            sent.0.with_mut(|_| ());
        }
        worker.join().unwrap();
        assert_eq!(publisher.passed(), u64::MAX);
    });
}

#[test]
fn transactions_are_serialized() {
    check(|| {
        let publisher = publisher(1);
        let first = publisher.newest().revision();
        let other = {
            let publisher = Arc::clone(&publisher);
            thread::spawn(move || change(&publisher))
        };
        let mut revisions = [change(&publisher), other.join().unwrap()];
        revisions.sort_unstable();
        assert_eq!(revisions, [first + 1, first + 2]);
        assert_eq!(publisher.newest().revision(), first + 2);
    });
}
