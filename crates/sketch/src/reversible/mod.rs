//! Reversible sketches: keys can be told from the counters, by a search.
//!
//! [`Reversible`] is the poster's form, with sets beside each counter, for keys of any length;
//! [`ReversibleModular`] is Schweller's, with counters alone, for keys of 32 bits. Where either search is
//! too dear, [`MvSketch`](crate::MvSketch) finds the same keys by having kept them.

mod modular;
mod sets;

pub use modular::ReversibleModular;
pub use sets::Reversible;
pub(crate) use sets::{SET_WORDS, bit};

/// A search that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no end after {steps} steps: too many keys share counters; take more counters, or an MV-Sketch"
)]
pub struct SearchBudgetExceeded {
    pub steps: u64,
}

/// Counts the steps of a search down to none.
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
