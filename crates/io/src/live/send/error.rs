//! Why nothing can be sent.

use std::io;

use thiserror::Error;

use crate::live::interface::State;

/// Refusals that pass are no errors: sending goes on at the next call.
#[derive(Debug, Error)]
pub enum SendError {
    /// The interface takes no such frame.
    #[error("a frame of {len} bytes: the interface takes {least} to {most}")]
    Length {
        /// Bytes of the frame.
        len: usize,
        /// The shortest.
        least: usize,
        /// The longest.
        most: usize,
    },
    /// The interface is down or gone.
    #[error("the interface is {}", if *.0 == State::Gone { "gone" } else { "down" })]
    Interface(State),
    /// Anything else.
    #[error("sending: {0}")]
    System(#[from] io::Error),
}
