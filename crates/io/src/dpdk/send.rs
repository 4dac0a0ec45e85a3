//! Sending by an open device.

use thiserror::Error;

use crate::dpdk::sys::outlet::Outlet;

/// Why a frame cannot be sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// It fits no buffer.
    #[error("a frame of {len} bytes is too long to send")]
    TooLong {
        /// Its length.
        len: usize,
    },
}

/// Sends by the first queue of a device.
pub struct Sender {
    outlet: Outlet,
}

impl Sender {
    pub(crate) fn new(outlet: Outlet) -> Self {
        Self { outlet }
    }

    /// Hands frames to the driver, in order, until it has no room; how many. Those are copied.
    ///
    /// # Errors
    /// If the first of them cannot be sent at all.
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
