//! Sending on an open device.

use thiserror::Error;

use crate::dpdk::sys::outlet::Outlet;

/// Why a frame cannot be sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// The frame does not fit into a buffer.
    #[error("a frame of {len} bytes is too long to send")]
    TooLong {
        /// Bytes of the frame.
        len: usize,
    },
}

/// Sends on the first queue of a device.
pub struct Sender {
    outlet: Outlet,
}

impl Sender {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self { outlet }
    }

    /// Copies frames to the driver, in order, until it has no room. Returns their number.
    ///
    /// # Errors
    /// The first frame is too long for a buffer.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        for (sent, frame) in frames.iter().enumerate() {
            match self.outlet.send(frame) {
                Ok(true) => {}
                Ok(false) => return Ok(sent),
                Err(_) if sent == 0 => return Err(SendError::TooLong { len: frame.len() }),
                Err(_) => return Ok(sent),
            }
        }
        Ok(frames.len())
    }
}
