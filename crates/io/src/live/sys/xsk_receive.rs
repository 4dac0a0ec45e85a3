//! The receiving half of AF_XDP: frames lent in place.
//!
//! Invariant: the fill ring and the rx ring have as many entries as there are buffers. So neither is ever full, and the
//! kernel has only one reason to drop frames for lack of space: all buffers hold frames that were not read yet.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::socket;
use super::xsk::{Ring, Umem, Which};
use super::xsk_send::XskSend;

/// Number of frames that are prefetched ahead.
const AHEAD: u32 = 8;

pub(crate) struct XskReceive {
    rx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    /// The kernel requires one, although nothing is sent. A socket that sends has another.
    _completion: Option<Ring<u64>>,
    umem: Arc<Umem>,
}

impl XskReceive {
    /// Creates `buffers` buffers (a power of two) of `1 << shift` bytes and the receive rings for an AF_XDP socket that
    /// is not bound yet. With `to_send` buffers (a power of two, or 0), also creates the sending half, for the socket
    /// `sender`: this one, or another that is bound to the same queue later.
    pub(crate) fn new(
        socket: &OwnedFd,
        buffers: u32,
        to_send: u32,
        sender: &OwnedFd,
        shift: u32,
    ) -> io::Result<(Self, Option<XskSend>)> {
        let all = buffers + to_send;
        let umem = Arc::new(Umem::new(socket, all, shift)?);
        let (sender, completion) = match to_send {
            0 => (None, Some(Ring::new(socket, Which::Completion, 1)?)),
            _ => (
                Some(XskSend::over([socket, sender], Arc::clone(&umem), buffers..all, None)?),
                None,
            ),
        };
        let mut fill = Ring::new(socket, Which::Fill, buffers)?;
        let rx = Ring::new(socket, Which::Rx, buffers)?;
        for buffer in 0..buffers {
            fill.put(buffer, u64::from(buffer) << shift);
        }
        fill.submit(buffers);
        Ok((Self { rx, fill, _completion: completion, umem }, sender))
    }

    /// The number of waiting frames.
    #[inline]
    pub(crate) fn waiting(&mut self) -> u32 {
        self.rx.waiting()
    }

    /// The number of waiting frames, and the capacity.
    pub(crate) fn backlog(&self) -> (usize, usize) {
        self.rx.backlog()
    }

    /// Lends up to `most` frames and returns their buffers to the kernel. Returns their number.
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
                // SAFETY: the bytes are within a buffer (checked). The kernel released it with this entry and gets it
                // back by `submit` below, after the last use.
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

    /// Prefetches the frame of this entry, which another core has written.
    #[inline]
    fn prefetch(&self, index: u32) {
        if let Some(start) = self.umem.at(self.rx.look(index).addr, 1) {
            // SAFETY: as in `burst`: the byte is within a buffer that the kernel has released.
            ringtap_base::prefetch(unsafe { start.as_ref() });
        }
    }

    /// Wakes the kernel for new buffers, if it needs that.
    #[inline]
    pub(crate) fn wake(&self, socket: &OwnedFd) {
        if self.fill.wants_waking() {
            self.poll_device(socket);
        }
    }

    /// Makes the kernel poll the device now, in this thread.
    pub(crate) fn poll_device(&self, socket: &OwnedFd) {
        // `poll` reports the same errors.
        let _ = socket::receive(socket, &mut [], libc::MSG_DONTWAIT);
    }

    /// Bytes for frames; true if they are in reserved huge pages.
    pub(crate) fn memory(&self) -> (usize, bool) {
        (self.umem.len(), self.umem.huge)
    }
}
