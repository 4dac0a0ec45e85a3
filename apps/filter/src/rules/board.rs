//! How the next revision gets to the workers: at one place of the stream, for all of them.
//!
//! ```text
//! control     publish(revision 8) ─▶ board
//! dispatcher  … packet, packet, Tick 8, packet …      asks the board between packets
//! worker 0    … packet, packet, Tick 8: takes revision 8 off the board, says so
//! worker 1    … packet, Tick 8: the same
//! control     passed() = 8 once all have said so
//! ```
//!
//! A mark reaches every worker at the same place of the stream, so each packet before it is judged by
//! the old rules and each behind it by the new ones, whichever worker has it. Ticks are numbered by
//! revisions, from that of the first rules. The lock is taken at changes only, never for a packet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ringtap_stage::Mark;

use super::ruleset::RuleSet;

/// Where control puts the next revision and workers take it.
#[derive(Debug)]
pub struct Board {
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

    /// Makes a transaction and publishes its revision. Control threads take turns.
    pub fn transact<E>(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, E>,
    ) -> Result<u64, E> {
        let mut sets = self.sets();
        let newest = sets.back().unwrap_or_else(|| unreachable!("the newest always stands"));
        let set = change(newest)?;
        let revision = newest.revision() + 1;
        assert_eq!(set.revision(), revision, "a change makes the next revision");
        let passed = self.passed();
        while sets.len() > 1 && sets[0].revision() < passed {
            sets.pop_front();
        }
        sets.push_back(Arc::new(set));
        // Pairs with the Acquire load in `Announced::next`. Workers learn of it by a mark.
        self.newest.store(revision, Ordering::Release);
        Ok(revision)
    }

    /// Every worker judges by this revision, or a later one.
    pub fn passed(&self) -> u64 {
        // Pairs with the Release store in `Reader::on_mark`: who reads it sees what the worker did by
        // the revisions before.
        let passed = self.passed.iter().map(|revision| revision.load(Ordering::Acquire));
        passed.min().unwrap_or(u64::MAX)
    }

    fn sets(&self) -> MutexGuard<'_, VecDeque<Arc<RuleSet>>> {
        // A transaction that panicked has put nothing on the board.
        self.sets.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The dispatcher's part: which revisions are announced.
#[derive(Debug)]
pub struct Announced {
    revision: u64,
}

impl Announced {
    /// Nothing is, but what stands on the board.
    pub fn new(board: &Board) -> Self {
        Self { revision: board.newest.load(Ordering::Acquire) }
    }

    /// A mark to put into the stream now, if there is a revision to be announced. To be asked until
    /// there is none, at a place of the dispatcher's choice.
    pub fn next(&mut self, board: &Board, time_ns: u64) -> Option<Mark> {
        // Pairs with the Release store in `Board::transact`.
        if board.newest.load(Ordering::Acquire) == self.revision {
            return None;
        }
        self.revision += 1;
        Some(Mark::Tick { number: self.revision, time_ns })
    }
}

/// A worker's part: the rules that it judges by.
#[derive(Debug)]
pub struct Reader {
    worker: usize,
    set: Arc<RuleSet>,
}

impl Reader {
    /// With the rules that all begin with; before anything is announced.
    pub fn new(board: &Board, worker: usize) -> Self {
        Self { worker, set: board.newest() }
    }

    /// The rules in use.
    #[inline]
    pub fn rules(&self) -> &RuleSet {
        &self.set
    }

    /// Takes the revision that a tick announces; the one before it, if there is a change.
    pub fn on_mark(&mut self, board: &Board, mark: &Mark) -> Option<Arc<RuleSet>> {
        let Mark::Tick { number, .. } = *mark else { return None };
        let sets = board.sets();
        let set = sets.iter().find(|set| set.revision() == number).map(Arc::clone)?;
        drop(sets);
        let before = std::mem::replace(&mut self.set, set);
        // Pairs with the Acquire load in `Board::passed`.
        board.passed[self.worker].store(number, Ordering::Release);
        Some(before)
    }
}
