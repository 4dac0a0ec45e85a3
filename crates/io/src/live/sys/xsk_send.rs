//! The sending half of AF_XDP: frames copied into buffers, and buffers got back.
//!
//! Invariants: a buffer is free, in the tx ring, with the kernel or in the completion ring; there are
//! as many entries in each ring as buffers, so a ring always has room.

use std::io;
use std::os::fd::OwnedFd;

use super::xsk::{Ring, Umem, Which};

pub(crate) struct XskSend {
    tx: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    /// The kernel wants one, though nothing is received.
    _fill: Ring<u64>,
    umem: Umem,
    /// Buffers that are ours.
    free: Vec<u64>,
}

impl XskSend {
    /// Gives an AF_XDP socket that is not bound yet `buffers` buffers (a power of two) of `1 << shift`
    /// bytes and the rings to send with.
    pub(crate) fn new(socket: &OwnedFd, buffers: u32, shift: u32) -> io::Result<Self> {
        let umem = Umem::new(socket, buffers, shift)?;
        let fill = Ring::new(socket, Which::Fill, 1)?;
        let completion = Ring::new(socket, Which::Completion, buffers)?;
        let tx = Ring::new(socket, Which::Tx, buffers)?;
        let free = (0..buffers).rev().map(|buffer| u64::from(buffer) << shift).collect();
        Ok(Self { tx, completion, _fill: fill, umem, free })
    }

    /// The longest frame that fits a buffer.
    fn frame_most(&self) -> usize {
        1 << self.umem.shift
    }

    /// Copies `frames` into free buffers and hands them over, as many as there are buffers for;
    /// stops at one that is longer than a buffer. Returns how many.
    pub(crate) fn push(&mut self, frames: &[&[u8]]) -> usize {
        let mut count = 0;
        for frame in frames {
            if frame.len() > self.frame_most() {
                break;
            }
            let len = frame.len() as u32;
            let Some(address) = self.free.pop() else { break };
            let Some(start) = self.umem.at(address, len) else { break };
            // SAFETY: the bytes lie within a buffer (checked), which is ours, as it was free.
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

    /// How many frames the kernel has not begun to send.
    pub(crate) fn pending(&mut self) -> u32 {
        self.tx.pending()
    }

    /// Whether the kernel must be called for what is pending.
    pub(crate) fn wants_waking(&self) -> bool {
        self.tx.wants_waking()
    }

    /// Takes back the buffers that the kernel is done with; returns how many.
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
