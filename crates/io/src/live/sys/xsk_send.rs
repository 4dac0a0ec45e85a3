//! The sending half of AF_XDP: frames are copied into buffers, and buffers are collected after sending.
//!
//! Invariants: a buffer is free, in the tx ring, held by the kernel or in the completion ring. Each ring has as many
//! entries as there are buffers, so it is never full.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::xsk::{Ring, Umem, Which};

pub(crate) struct XskSend {
    tx: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    /// The kernel requires one, although nothing is received. A socket that receives has another.
    _fill: Option<Ring<u64>>,
    umem: Arc<Umem>,
    /// Buffers that are free.
    free: Vec<u64>,
}

impl XskSend {
    /// Creates `buffers` buffers (a power of two) of `1 << shift` bytes and the send rings for an AF_XDP socket that is
    /// not bound yet.
    pub(crate) fn new(socket: &OwnedFd, buffers: u32, shift: u32) -> io::Result<Self> {
        let umem = Arc::new(Umem::new(socket, buffers, shift)?);
        let fill = Ring::new(socket, Which::Fill, 1)?;
        Self::over([socket, socket], umem, 0..buffers, Some(fill))
    }

    /// Sends from these buffers of the memory; their number is a power of two. The sockets: that of the memory, and the
    /// one that sends, which may be the same.
    pub(super) fn over(
        [first, socket]: [&OwnedFd; 2],
        umem: Arc<Umem>,
        buffers: Range<u32>,
        fill: Option<Ring<u64>>,
    ) -> io::Result<Self> {
        let number = buffers.end - buffers.start;
        let completion = Ring::new(first, Which::Completion, number)?;
        let tx = Ring::new(socket, Which::Tx, number)?;
        let free = buffers.rev().map(|buffer| u64::from(buffer) << umem.shift).collect();
        Ok(Self { tx, completion, _fill: fill, umem, free })
    }

    /// Sends on another socket of the same memory, which is not bound yet. The earlier one must be closed: the kernel
    /// takes none of its frames any more, so their buffers are free again.
    pub(crate) fn reopen(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let number = self.tx.capacity();
        let mut old = std::mem::replace(&mut self.tx, Ring::new(socket, Which::Tx, number)?);
        for back in 1..=old.pending() {
            // Counted from the end.
            let address = old.look(back.wrapping_neg()).addr;
            self.free.push(self.umem.buffer(address));
        }
        Ok(())
    }

    /// Most bytes of a frame that fits into a buffer.
    fn frame_most(&self) -> usize {
        1 << self.umem.shift
    }

    /// Copies `frames` into free buffers and submits them, as many as there are buffers; stops at a frame that is
    /// longer than a buffer. Returns their number.
    pub(crate) fn push(&mut self, frames: &[&[u8]]) -> usize {
        let mut count = 0;
        for frame in frames {
            if frame.len() > self.frame_most() {
                break;
            }
            let len = frame.len() as u32;
            let Some(address) = self.free.pop() else { break };
            let Some(start) = self.umem.at(address, len) else { break };
            // SAFETY: the bytes are within a buffer (checked) that is free.
            unsafe {
                start.copy_from_nonoverlapping(std::ptr::NonNull::from(*frame).cast(), frame.len())
            };
            self.tx.put(count, libc::xdp_desc { addr: address, len, options: 0 });
            count += 1;
        }
        if count > 0 {
            self.tx.submit(count);
        }
        count as usize
    }

    /// Number of frames that the kernel has not begun to send.
    pub(crate) fn pending(&mut self) -> u32 {
        self.tx.pending()
    }

    /// Returns true if the kernel needs a system call to send the pending frames.
    pub(crate) fn wants_waking(&self) -> bool {
        self.tx.wants_waking()
    }

    /// Collects the buffers of sent frames. Returns their number.
    pub(crate) fn collect(&mut self) -> u32 {
        let mut all = 0;
        loop {
            let count = self.completion.waiting();
            if count == 0 {
                return all;
            }
            for index in 0..count {
                let address = self.completion.look(index);
                self.free.push(self.umem.buffer(address));
            }
            self.completion.done(count);
            all += count;
        }
    }
}
