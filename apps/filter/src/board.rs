//! How the next revision gets to the workers.
//!
//! ```text
//! control    transact ─▶ revision 8 on the board ─▶ passed() = 8 once all have taken it
//! worker 0   burst, burst, asks: takes 8, says so; burst …
//! worker 1   burst, asks: takes 8, says so; burst, burst …
//! ```
//!
//! Workers have no stream in common. They ask the board between two bursts ([`Reader::renew`]), when all they judged
//! before has left; so nothing that was judged by older rules leaves once [`Board::passed`] says so. Locks are taken at
//! changes only, never for a packet, and a worker never waits while rules are built: those who make changes take turns
//! by a lock of their own, and hold the workers' only to put the result on the board. `tests/loom.rs` explores every
//! order of threads.

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

/// Where control puts the next revision and workers take it.
#[derive(Debug)]
pub struct Board {
    /// Whoever makes a change holds it meanwhile; no worker ever does.
    turn: Mutex<()>,
    /// The newest one, and those that some worker has not taken yet, ascending.
    sets: Mutex<VecDeque<Arc<RuleSet>>>,
    /// The revision of the newest one.
    newest: AtomicU64,
    /// By worker, written by it alone: the revision it judges by.
    passed: Box<[AtomicU64]>,
}

impl Board {
    /// With the first rules, for so many workers.
    pub fn new(first: RuleSet, workers: usize) -> Self {
        let revision = first.revision();
        Self {
            turn: Mutex::new(()),
            sets: Mutex::new(VecDeque::from([Arc::new(first)])),
            newest: AtomicU64::new(revision),
            passed: (0..workers).map(|_| AtomicU64::new(revision)).collect(),
        }
    }

    /// The newest rules: what a transaction starts from.
    pub fn newest(&self) -> Arc<RuleSet> {
        let sets = self.sets();
        Arc::clone(sets.back().unwrap_or_else(|| unreachable!("the newest always stands")))
    }

    /// Makes a transaction and publishes its revision. Those who make one take turns; workers go on meanwhile.
    pub fn transact<E>(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, E>,
    ) -> Result<u64, E> {
        // Who panicked while it was his turn has put nothing on the board.
        let turn = self.turn.lock().unwrap_or_else(|poison| poison.into_inner());
        let newest = self.newest();
        let set = Arc::new(change(&newest)?);
        let revision = newest.revision() + 1;
        assert_eq!(set.revision(), revision, "a change makes the next revision");
        let mut sets = self.sets();
        let passed = self.passed();
        // The newest stays, whatever has passed.
        let older = sets.iter().take(sets.len() - 1);
        let done = older.take_while(|set| set.revision() < passed).count();
        let done: Vec<Arc<RuleSet>> = sets.drain(..done).collect();
        sets.push_back(set);
        // Pairs with the Acquire load in `Reader::is_behind`.
        self.newest.store(revision, Ordering::Release);
        drop(sets);
        // Freeing a million rules takes its time: not while workers may want the board.
        drop(done);
        drop(turn);
        Ok(revision)
    }

    /// Every worker judges by this revision, or a later one.
    pub fn passed(&self) -> u64 {
        // Pairs with the Release store in `Reader::take`: who reads it sees what the worker did by
        // the revisions before.
        let passed = self.passed.iter().map(|revision| revision.load(Ordering::Acquire));
        passed.min().unwrap_or(u64::MAX)
    }

    fn sets(&self) -> MutexGuard<'_, VecDeque<Arc<RuleSet>>> {
        // A transaction that panicked has put nothing on the board.
        self.sets.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// A worker's part: the rules that it judges by.
#[derive(Debug)]
pub struct Reader {
    worker: usize,
    set: Arc<RuleSet>,
}

impl Reader {
    /// With the newest rules; it has judged nothing by older ones.
    pub fn new(board: &Board, worker: usize) -> Self {
        let set = board.newest();
        // Pairs with the Acquire load in `Board::passed`.
        board.passed[worker].store(set.revision(), Ordering::Release);
        Self { worker, set }
    }

    /// The rules in use.
    #[inline]
    pub fn rules(&self) -> &RuleSet {
        &self.set
    }

    /// The same, to be kept.
    pub fn shared(&self) -> &Arc<RuleSet> {
        &self.set
    }

    /// Whether there are newer rules; one load.
    #[inline]
    pub fn is_behind(&self, board: &Board) -> bool {
        // Pairs with the Release store in `Board::transact`.
        board.newest.load(Ordering::Acquire) != self.set.revision()
    }

    /// Takes the newest rules; those before, if there is a change. Nothing that was judged by the rules
    /// in use may still be on its way.
    pub fn renew(&mut self, board: &Board) -> Option<Arc<RuleSet>> {
        if !self.is_behind(board) {
            return None;
        }
        Some(self.take(board, board.newest()))
    }

    /// A worker that ends keeps nobody waiting: whatever comes is passed by it.
    pub fn retire(&self, board: &Board) {
        // Pairs with the Acquire load in `Board::passed`.
        board.passed[self.worker].store(u64::MAX, Ordering::Release);
    }

    fn take(&mut self, board: &Board, set: Arc<RuleSet>) -> Arc<RuleSet> {
        let revision = set.revision();
        let before = std::mem::replace(&mut self.set, set);
        // Pairs with the Acquire load in `Board::passed`.
        board.passed[self.worker].store(revision, Ordering::Release);
        before
    }
}
