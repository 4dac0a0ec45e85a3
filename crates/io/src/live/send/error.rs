//! Errors of sending frames.

use std::io;

use thiserror::Error;

use crate::live::state::State;

/// Why frames cannot be sent. A temporary refusal by the kernel is not an error: the caller sends
/// the rest with the next call.
#[derive(Debug, Error)]
pub enum SendError {
    /// The interface does not accept frames of this length.
    #[error("invalid frame length {len}: the interface accepts {least} to {most} bytes")]
    Length {
        /// Length of the frame, in bytes.
        len: usize,
        /// Shortest frame that the interface accepts, in bytes.
        least: usize,
        /// Longest frame that the interface accepts, in bytes.
        most: usize,
    },
    /// The interface is down or gone; holds its state.
    #[error("the interface is {}", if *.0 == State::Gone { "gone" } else { "down" })]
    Interface(State),
    /// The kernel refuses a super-frame.
    #[error("the interface does not accept a super-frame")]
    SuperFrame {
        /// The reason may also be that the device's queue is full: both have the same error.
        or_full: bool,
    },
    /// Any other error of the kernel.
    #[error("sending: {0}")]
    System(#[from] io::Error),
}
