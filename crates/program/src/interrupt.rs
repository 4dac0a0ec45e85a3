//! Interrupts of this process: INT, TERM, and Ctrl-C in a terminal view.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Set by the first interrupt.
static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt came.
pub(crate) fn are_interrupted() -> bool {
    INTERRUPT.load(Ordering::Relaxed)
}

/// Number of interrupts of a run. Only the attendant thread counts.
#[derive(Debug, Default)]
pub struct Interrupts(AtomicU32);

impl Interrupts {
    /// Counts one. True from the second on.
    pub fn is_repeated(&self) -> bool {
        // Relaxed: it carries no data.
        INTERRUPT.store(true, Ordering::Relaxed);
        self.0.fetch_add(1, Ordering::Relaxed) > 0
    }
}
