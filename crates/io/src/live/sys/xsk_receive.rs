//! The receiving half of AF_XDP: frames lent where the kernel put them.
//!
//! Invariant: there are as many entries in the fill ring and in the rx ring as there are buffers. So
//! neither is ever too full, and the kernel has one reason alone to drop for want of room: all
//! buffers hold frames that were not looked at yet.

use std::io;
use std::os::fd::OwnedFd;

use super::socket;
use super::xsk::{Ring, Umem, Which};

/// Frames that are on their way into the cache.
const AHEAD: u32 = 8;

pub(crate) struct XskReceive {
    rx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    /// The kernel wants one, though nothing is sent.
    _completion: Ring<u64>,
    umem: Umem,
}

impl XskReceive {
    /// Gives an AF_XDP socket that is not bound yet `buffers` buffers (a power of two) of `1 << shift`
    /// bytes and the rings to receive with.
    pub(crate) fn new(socket: &OwnedFd, buffers: u32, shift: u32) -> io::Result<Self> {
        let umem = Umem::new(socket, buffers, shift)?;
        let mut fill = Ring::new(socket, Which::Fill, buffers)?;
        let completion = Ring::new(socket, Which::Completion, 1)?;
        let rx = Ring::new(socket, Which::Rx, buffers)?;
        for buffer in 0..buffers {
            fill.put(buffer, u64::from(buffer) << shift);
        }
        fill.submit(buffers);
        Ok(Self { rx, fill, _completion: completion, umem })
    }

    /// How many frames wait.
    #[inline]
    pub(crate) fn waiting(&mut self) -> u32 {
        self.rx.waiting()
    }

    /// How many frames wait, and how many can.
    pub(crate) fn backlog(&self) -> (usize, usize) {
        self.rx.backlog()
    }

    /// Lends up to `most` frames and gives their buffers back for new ones; returns how many.
    #[inline]
    pub(crate) fn burst(&mut self, most: u32, mut each: impl FnMut(&[u8])) -> u32 {
        let count = self.rx.waiting().min(most);
        let mut lent = 0;
        for index in 0..count {
            if index + AHEAD < count {
                self.prefetch(index + AHEAD);
            }
            let entry = self.rx.look(index);
            if let Some(start) = self.umem.at(entry.addr, entry.len) {
                // SAFETY: the bytes lie within a buffer (checked). The kernel has handed it over with
                // this entry and gets it back by `submit` below, after the last use.
                each(unsafe { std::slice::from_raw_parts(start.as_ptr(), entry.len as usize) });
                lent += 1;
            }
            self.fill.put(index, self.umem.buffer(entry.addr));
        }
        if count > 0 {
            self.rx.done(count);
            self.fill.submit(count);
        }
        lent
    }

    /// Brings the frame of this entry near, which another core has written.
    #[inline]
    fn prefetch(&self, index: u32) {
        if let Some(start) = self.umem.at(self.rx.look(index).addr, 1) {
            // SAFETY: as in `burst`: the byte is within a buffer that the kernel has handed over.
            ringtap_base::prefetch(unsafe { start.as_ref() });
        }
    }

    /// Tells the kernel of new buffers, if it wants to be told.
    #[inline]
    pub(crate) fn wake(&self, socket: &OwnedFd) {
        if self.fill.wants_waking() {
            self.poll_device(socket);
        }
    }

    /// Has the kernel look for frames now, in our thread.
    pub(crate) fn poll_device(&self, socket: &OwnedFd) {
        // All that this could fail by is seen by `poll` as well.
        let _ = socket::receive(socket, &mut [], libc::MSG_DONTWAIT);
    }

    /// Bytes for frames, and whether they lie in reserved huge pages.
    pub(crate) fn memory(&self) -> (usize, bool) {
        (self.umem.len(), self.umem.huge)
    }
}
