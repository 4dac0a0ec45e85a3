//! Why a run can fail.

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
        /// Which node.
        node: String,
        /// What it said.
        message: String,
    },
    /// A node gave up; the others were stopped.
    #[error("{node} failed: {error}")]
    Failed {
        /// Which node.
        node: String,
        /// Its reason.
        error: Box<dyn StdError + Send + Sync>,
    },
    /// The options cannot be met.
    #[error("from 1 to {most} workers are possible, not {workers}")]
    Workers {
        /// As asked.
        workers: usize,
        /// The largest number possible.
        most: usize,
    },
    /// The skeleton, or the feeds there are, do not fit the queues.
    #[error("from 1 to {most} queues are possible here, a feed each, not {queues}")]
    Queues {
        /// As asked.
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
    /// No node could go on although some were not done: only a simulation can tell.
    #[error("deadlock after {steps} steps: {waiting} wait for ever")]
    Deadlock {
        /// Steps taken until then.
        steps: u64,
        /// The nodes that were not done.
        waiting: String,
    },
    /// A node could go on, but slept: what it waited for came without a step that said so. Only a
    /// simulation can tell.
    #[error("{name} could go on, but nobody had said that anything moved")]
    Overslept {
        /// The node that slept; to blame is one of its neighbours.
        name: String,
    },
}

impl From<InvalidCapacity> for RunError {
    fn from(error: InvalidCapacity) -> Self {
        Self::Ring(error.to_string())
    }
}

impl RunError {
    /// What a caught panic of `node` said.
    pub(crate) fn panicked(node: String, panic: &(dyn Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".into());
        Self::Panicked { node, message }
    }
}
