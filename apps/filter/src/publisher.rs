//! Publishes rule set revisions to the workers.
//!
//! ```text
//! control    transact ─▶ revision 8 published ─▶ passed() = 8 once all workers use it
//! worker 0   burst, burst, check: use 8, acknowledge; burst …
//! worker 1   burst, check: use 8, acknowledge; burst, burst …
//! ```
//!
//! A worker checks for a new revision between two bursts ([`Reader::renew`]), after every packet judged by the old one
//! has left. So no packet judged by older rules leaves once [`RulePublisher::passed`] returns the new revision. Locks are
//! taken for changes only, never for a packet. A worker never waits while rules are built: writers serialize on a lock
//! of their own and take the workers' lock only to publish the result. `tests/loom.rs` explores every thread order.

use std::collections::VecDeque;
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use super::ruleset::RuleSet;

/// The published revisions, and the revision that each worker uses.
#[derive(Debug)]
pub struct RulePublisher {
    /// Held for the whole of a transaction; never taken by a worker.
    turn: Mutex<()>,
    /// The newest revision and the older ones that some worker still uses, ascending.
    sets: Mutex<VecDeque<Arc<RuleSet>>>,
    /// Number of the newest revision.
    newest: AtomicU64,
    /// By worker: the revision in use. Each entry is written by its worker only.
    passed: Box<[AtomicU64]>,
}

impl RulePublisher {
    /// Creates a publisher with a first revision for `workers` workers.
    pub fn new(first: RuleSet, workers: usize) -> Self {
        let revision = first.revision();
        Self {
            turn: Mutex::new(()),
            sets: Mutex::new(VecDeque::from([Arc::new(first)])),
            newest: AtomicU64::new(revision),
            passed: (0..workers).map(|_| AtomicU64::new(revision)).collect(),
        }
    }

    /// The newest rules; a transaction starts from these.
    pub fn newest(&self) -> Arc<RuleSet> {
        let sets = self.sets();
        Arc::clone(
            sets.back().unwrap_or_else(|| unreachable!("the newest revision is never removed")),
        )
    }

    /// Runs a transaction and publishes its revision. Transactions are serialized; workers continue meanwhile.
    pub fn transact<E>(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, E>,
    ) -> Result<u64, E> {
        // A transaction that panicked has published nothing.
        let turn = self.turn.lock().unwrap_or_else(|poison| poison.into_inner());
        let newest = self.newest();
        let set = Arc::new(change(&newest)?);
        let revision = newest.revision() + 1;
        assert_eq!(set.revision(), revision, "a change makes the next revision");
        let mut sets = self.sets();
        let passed = self.passed();
        // The newest always stays.
        let older = sets.iter().take(sets.len() - 1);
        let done = older.take_while(|set| set.revision() < passed).count();
        let done: Vec<Arc<RuleSet>> = sets.drain(..done).collect();
        sets.push_back(set);
        // Pairs with the Acquire load in `Reader::is_behind`.
        self.newest.store(revision, Ordering::Release);
        drop(sets);
        // Freeing a million rules takes time, so it happens without the workers' lock.
        drop(done);
        drop(turn);
        Ok(revision)
    }

    /// The oldest revision in use: every worker uses this one or a later one.
    pub fn passed(&self) -> u64 {
        // Pairs with the Release store in `Reader::take`: a thread that reads it sees everything
        // that the worker did with earlier revisions.
        let passed = self.passed.iter().map(|revision| revision.load(Ordering::Acquire));
        passed.min().unwrap_or(u64::MAX)
    }

    fn sets(&self) -> MutexGuard<'_, VecDeque<Arc<RuleSet>>> {
        // A transaction that panicked has published nothing.
        self.sets.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The rules that one worker uses.
#[derive(Debug)]
pub struct Reader {
    worker: usize,
    set: Arc<RuleSet>,
}

impl Reader {
    /// Creates a reader of the newest rules.
    pub fn new(publisher: &RulePublisher, worker: usize) -> Self {
        let set = publisher.newest();
        // Pairs with the Acquire load in `RulePublisher::passed`.
        publisher.passed[worker].store(set.revision(), Ordering::Release);
        Self { worker, set }
    }

    /// The rules in use.
    #[inline]
    pub fn rules(&self) -> &RuleSet {
        &self.set
    }

    /// The rules in use, as a shared reference that can be kept.
    pub fn shared(&self) -> &Arc<RuleSet> {
        &self.set
    }

    /// Whether newer rules are published. Costs one load.
    #[inline]
    pub fn is_behind(&self, publisher: &RulePublisher) -> bool {
        // Pairs with the Release store in `RulePublisher::transact`.
        publisher.newest.load(Ordering::Acquire) != self.set.revision()
    }

    /// Switches to the newest rules and returns the old ones, or `None` if nothing changed. Every packet judged by the
    /// rules in use must have left before.
    pub fn renew(&mut self, publisher: &RulePublisher) -> Option<Arc<RuleSet>> {
        if !self.is_behind(publisher) {
            return None;
        }
        Some(self.take(publisher, publisher.newest()))
    }

    /// Marks the worker as ended: it counts as using every later revision.
    pub fn retire(&self, publisher: &RulePublisher) {
        // Pairs with the Acquire load in `RulePublisher::passed`.
        publisher.passed[self.worker].store(u64::MAX, Ordering::Release);
    }

    fn take(&mut self, publisher: &RulePublisher, set: Arc<RuleSet>) -> Arc<RuleSet> {
        let revision = set.revision();
        let before = std::mem::replace(&mut self.set, set);
        // Pairs with the Acquire load in `RulePublisher::passed`.
        publisher.passed[self.worker].store(revision, Ordering::Release);
        before
    }
}
