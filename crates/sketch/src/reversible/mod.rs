//! Reversible sketches: a search recovers the keys from the counters.
//!
//! [`Reversible`] is the poster's form, with sets beside each counter, for keys of any length; [`ReversibleModular`] is
//! Schweller's, with counters only, for keys of 32 bits. If the search takes too long, [`MvSketch`](crate::MvSketch)
//! lists the same keys, because it stores them.

mod modular;
mod sets;

pub use modular::ReversibleModular;
pub use sets::Reversible;
pub(crate) use sets::{SET_WORDS, bit};

/// The search was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no end after {steps} steps: too many keys share counters; take more counters, or an MV-Sketch"
)]
pub struct SearchBudgetExceeded {
    /// Steps made.
    pub steps: u64,
}

/// The remaining steps of a search.
struct Budget {
    steps: u64,
    left: u64,
}

impl Budget {
    fn new(steps: u64) -> Self {
        Self { steps, left: steps }
    }

    fn step(&mut self) -> Result<(), SearchBudgetExceeded> {
        self.left = self.left.checked_sub(1).ok_or(SearchBudgetExceeded { steps: self.steps })?;
        Ok(())
    }
}
