//! The frames of one queue, lent in place.
//!
//! ```text
//!  driver ─ receive ─▶ | mbuf | mbuf | mbuf | … |      lent one by one
//!                            next ▲       count ▲     freed when all were lent
//! ```
//!
//! Invariant: `mbufs[next..count]` belong to this queue and were not lent yet; those before `next` belong to it until
//! they are freed, and no reference to them exists any more.

use std::sync::Arc;

use super::port::Port;
use super::{raw, thread};

/// Most frames of one receive call.
const BURST: usize = 64;
/// Most bytes of a frame that is joined from several buffers.
const LONGEST: usize = 64 << 10;

pub(crate) struct Burst {
    port: Arc<Port>,
    queue: u16,
    mbufs: [*mut raw::Mbuf; BURST],
    frames: [raw::Frame; BURST],
    next: usize,
    count: usize,
    joined: Box<[u8]>,
}

// SAFETY: each pointer is the only one to its mbuf; one thread at a time uses a queue.
unsafe impl Send for Burst {}

impl Burst {
    /// For a queue of the port that has no `Burst` yet.
    pub(crate) fn new(port: Arc<Port>, queue: u16) -> Self {
        let none = raw::Frame { data: std::ptr::null(), piece_len: 0, len: 0 };
        Self {
            port,
            queue,
            mbufs: [std::ptr::null_mut(); BURST],
            frames: [none; BURST],
            next: 0,
            count: 0,
            joined: vec![0; LONGEST].into(),
        }
    }

    pub(crate) fn port(&self) -> &Port {
        &self.port
    }

    /// Number of frames that were received and not lent yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.count - self.next
    }

    /// Frees the lent frames and receives more. Returns the number of frames that can be lent. With frames left it does
    /// nothing.
    #[inline]
    pub(crate) fn fill(&mut self) -> usize {
        if self.left() > 0 {
            return self.left();
        }
        self.give_back();
        thread::enter();
        let (number, mbufs) = (self.port.number(), self.mbufs.as_mut_ptr());
        // SAFETY: a queue of an open port that only this `Burst` uses, by one thread because of `&mut self`; both
        // arrays have room for `BURST`.
        let count = unsafe {
            raw::rt_receive(number, self.queue, mbufs, self.frames.as_mut_ptr(), BURST as u16)
        };
        self.count = usize::from(count).min(BURST);
        self.count
    }

    /// Lends the next frame: its bytes and its whole length.
    #[inline]
    pub(crate) fn lend<T>(&mut self, each: impl FnOnce(&[u8], u32) -> T) -> Option<T> {
        if self.left() == 0 {
            return None;
        }
        let frame = self.frames[self.next];
        let mbuf = self.mbufs[self.next];
        self.next += 1;
        if frame.piece_len == frame.len {
            // SAFETY: `len` bytes of an mbuf that is freed only with `&mut self`, so after `each`.
            let data = unsafe { std::slice::from_raw_parts(frame.data, frame.len as usize) };
            return Some(each(data, frame.len));
        }
        // SAFETY: an mbuf of this queue; at most `LONGEST` bytes are written to a buffer of that length.
        let len = unsafe { raw::rt_join(mbuf, self.joined.as_mut_ptr(), LONGEST as u32) };
        Some(each(self.joined.get(..len as usize).unwrap_or_default(), frame.len))
    }

    fn give_back(&mut self) {
        if self.count > 0 {
            // SAFETY: `count` mbufs of this queue, each once; the count is set to 0 afterwards.
            unsafe { raw::rt_free(self.mbufs.as_mut_ptr(), self.count as u16) };
        }
        (self.next, self.count) = (0, 0);
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        self.give_back();
    }
}
