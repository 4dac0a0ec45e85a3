//! Why there is no plan.

use thiserror::Error;

/// Why options cannot become a plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// A number out of its range.
    #[error("{what} must be from {least} to {most}, not {given}")]
    OutOfRange {
        /// The flag's meaning.
        what: &'static str,
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
        /// As given.
        given: u64,
    },
    /// The program itself takes more memory than it may.
    #[error(
        "{given} bytes of memory are too few: this arrangement takes {least} before it keeps a flow"
    )]
    TooLittleMemory {
        /// As given.
        given: u64,
        /// Smallest allowed.
        least: u64,
    },
    /// A core was named that threads of this process cannot be pinned to.
    #[error("core {core} is not available to this process; --cores takes some of {allowed}")]
    NoCore {
        /// As given.
        core: usize,
        /// All that are available, as a list for `--cores`.
        allowed: String,
    },
    /// Workers were asked of a skeleton that has none to choose.
    #[error(
        "the reference runs on one thread; leave out workers and queues or take another --skeleton"
    )]
    WorkersOfReference,
    /// Workers were asked of a skeleton that has one a queue.
    #[error("multi-queue has one worker a queue; leave out the workers or take another --skeleton")]
    WorkersOfQueues,
}

/// `given`, if it is in its range.
///
/// # Errors
/// If it is not; `what` says what it is the number of.
pub fn within(what: &'static str, given: u64, least: u64, most: u64) -> Result<u64, PlanError> {
    if (least..=most).contains(&given) {
        Ok(given)
    } else {
        Err(PlanError::OutOfRange { what, least, most, given })
    }
}
