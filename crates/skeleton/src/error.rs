//! Errors of runs.

use std::any::Any;
use std::error::Error as StdError;

use ringtap_ring::InvalidCapacity;
use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum RunError {
    /// A node panicked; the others were stopped.
    #[error("{node} panicked: {message}")]
    Panicked {
        /// The node.
        node: String,
        /// The panic message.
        message: String,
    },
    /// A node returned an error; the others were stopped.
    #[error("{node} failed: {error}")]
    Failed {
        /// The node.
        node: String,
        /// Its error.
        error: Box<dyn StdError + Send + Sync>,
    },
    /// The number of workers is out of range.
    #[error("invalid number of workers {workers}: use 1 to {most}")]
    Workers {
        /// The number as given.
        workers: usize,
        /// The largest number possible.
        most: usize,
    },
    /// The number of queues does not fit the skeleton or the feeds.
    #[error("invalid number of queues {queues}: use 1 to {most}, with a feed for each")]
    Queues {
        /// The number as given.
        queues: usize,
        /// The largest number possible.
        most: usize,
    },
    /// The ring refused its capacity or batch.
    #[error("ring: {0}")]
    Ring(String),
    /// The operating system refused a thread.
    #[error("starting a thread: {0}")]
    Thread(String),
    /// No node could proceed although some were not done; found by simulations only.
    #[error("deadlock after {steps} steps: {waiting} wait for ever")]
    Deadlock {
        /// Steps taken until then.
        steps: u64,
        /// The nodes that were not done.
        waiting: String,
    },
    /// A node could proceed, but slept: a step of another node moved something and did not report
    /// it. Found by simulations only.
    #[error("{name} could continue, but no other node had reported progress")]
    Overslept {
        /// The node that slept; one of its neighbours is at fault.
        name: String,
    },
}

impl From<InvalidCapacity> for RunError {
    fn from(error: InvalidCapacity) -> Self {
        Self::Ring(error.to_string())
    }
}

impl RunError {
    /// The error for a caught panic of `node`.
    pub(crate) fn panicked(node: String, panic: &(dyn Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".into());
        Self::Panicked { node, message }
    }
}
