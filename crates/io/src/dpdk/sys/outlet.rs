//! The send queue of a port.

use std::io;
use std::sync::Arc;

use super::port::Port;
use super::{check, raw, thread};

pub(crate) struct Outlet(Arc<Port>);

impl Outlet {
    /// For a port that has no `Outlet` yet.
    pub(crate) fn new(port: Arc<Port>) -> Self {
        Self(port)
    }

    /// Returns true if the frame was queued, false if the queue is full.
    ///
    /// # Errors
    /// The frame does not fit into a buffer.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        thread::enter();
        let too_long = || io::Error::from_raw_os_error(EMSGSIZE);
        let len = u16::try_from(frame.len()).map_err(|_| too_long())?;
        let Some(pool) = self.0.send_pool() else { return Ok(false) };
        // SAFETY: an open port with a send queue (it has a send pool), used only through this `&mut self`; `len` bytes
        // are read.
        let sent = check(unsafe { raw::rt_send(self.0.number(), pool, frame.as_ptr(), len) })?;
        Ok(sent == 1)
    }
}

const EMSGSIZE: i32 = 90;
