//! What workers have counted so far, for who asks while they run.
//!
//! ```text
//! asker    asked += 1 ─────────────────▶ sees that all have told it, adds them up
//! worker   … burst, looks: asked? ─▶ leaves a copy of its tally, between two bursts
//! ```
//!
//! Invariant: a worker that nobody asks pays one load a burst.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::report::Standing;
use super::tally::{Changes, Tally};

/// Counters of a running filter, collected from its workers.
#[derive(Debug)]
pub struct Census {
    asked: AtomicU64,
    told: Box<[Mutex<Told>]>,
}

#[derive(Debug, Default)]
struct Told {
    /// The question that this answers.
    asked: u64,
    answer: Option<(Tally, Changes)>,
}

impl Census {
    /// Of so many workers.
    pub fn new(workers: usize) -> Self {
        let told = (0..workers).map(|_| Mutex::default()).collect();
        Self { asked: AtomicU64::new(0), told }
    }

    /// Asks all workers; the number of the question.
    pub fn ask(&self) -> u64 {
        // Relaxed: nothing else is said with it.
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What all have counted, once all have answered.
    pub fn answer(&self, question: u64) -> Option<Standing> {
        let mut all: Option<(Tally, Changes)> = None;
        for told in &self.told {
            let told = told.lock().unwrap_or_else(PoisonError::into_inner);
            let (tally, changes) = told.answer.clone().filter(|_| told.asked >= question)?;
            match &mut all {
                None => all = Some((tally, changes)),
                Some((sum, more)) => {
                    sum.add(tally);
                    more.add(changes);
                }
            }
        }
        all.map(|(tally, changes)| Standing::new(&tally, changes))
    }

    /// The question that a worker has not answered.
    #[inline]
    pub(super) fn open(&self, answered: u64) -> Option<u64> {
        Some(self.asked.load(Ordering::Relaxed)).filter(|&asked| asked != answered)
    }

    /// A worker's answer. That of its end answers all questions.
    pub(super) fn tell(&self, worker: usize, question: u64, tally: &Tally, changes: &Changes) {
        let mut told = self.told[worker].lock().unwrap_or_else(PoisonError::into_inner);
        *told = Told { asked: question, answer: Some((tally.clone(), changes.clone())) };
    }
}
