//! Errors of plans.

use thiserror::Error;

/// Why options cannot become a plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// A number out of its range.
    #[error("invalid {what} {given}: use {least} to {most}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
        /// The number as given.
        given: u64,
    },
    /// The program itself needs more memory than the limit.
    #[error(
        "invalid memory limit {}: use at least {}M for this arrangement, or fewer queues and workers",
        size(*given),
        least.div_ceil(1 << 20)
    )]
    TooLittleMemory {
        /// The limit as given, bytes.
        given: u64,
        /// The memory needed, bytes.
        least: u64,
    },
    /// The memory of the latest frames is too small for the queues, or too large for the run.
    #[error(
        "invalid memory of recent packets {}: use {} to {} (a megabyte for each queue, and half of all memory)",
        size(*given), size(*least), size(*most)
    )]
    RecentMemory {
        /// The memory as given, bytes.
        given: u64,
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
    },
    /// A core to which threads of this process cannot be pinned.
    #[error("core {core} is not available to this process: use {allowed}")]
    NoCore {
        /// The core as given.
        core: usize,
        /// All available cores, in the syntax of `--cores`.
        allowed: String,
    },
    /// Workers or queues were given for the single-threaded reference.
    #[error("the reference runs on one thread: omit workers and queues, or use another --skeleton")]
    WorkersOfReference,
    /// Workers were given for a skeleton with one worker a queue.
    #[error("multi-queue has one worker a queue: omit the workers, or use another --skeleton")]
    WorkersOfQueues,
}

/// A number of bytes in the syntax of `--memory`.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{}M", bytes >> 20) } else { bytes.to_string() }
}

/// Returns `given` if it is in its range.
///
/// # Errors
/// If it is not; `what` names the number.
pub fn within(what: &'static str, given: u64, least: u64, most: u64) -> Result<u64, PlanError> {
    if (least..=most).contains(&given) {
        Ok(given)
    } else {
        Err(PlanError::OutOfRange { what, least, most, given })
    }
}
