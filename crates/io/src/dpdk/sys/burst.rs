//! Frames of one queue, lent in place.
//!
//! ```text
//!  driver ─ receive ─▶ | mbuf | mbuf | mbuf | … |      lent one by one
//!                             next ▲       count ▲     given back when all were lent
//! ```
//!
//! Invariant: `mbufs[next..count]` are ours and were not lent yet; those before `next` are ours until they are given
//! back, and no reference into them exists any more.

use std::sync::Arc;

use super::port::Port;
use super::{raw, thread};

/// Frames asked for in one call.
const BURST: usize = 64;
/// The longest frame that is put together out of pieces.
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

// SAFETY: the pointers are to mbufs without another owner; a queue may be used by any one thread at a time.
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

    /// How many frames are here and not lent yet.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.count - self.next
    }

    /// Gives back what was lent, and asks for more; how many are here then.
    ///
    /// With frames left it does nothing.
    #[inline]
    pub(crate) fn fill(&mut self) -> usize {
        if self.left() > 0 {
            return self.left();
        }
        self.give_back();
        thread::enter();
        let (number, mbufs) = (self.port.number(), self.mbufs.as_mut_ptr());
        // SAFETY: a queue of an open port, that only this `Burst` uses, and `&mut self` says by one thread; both arrays
        // have room for `BURST`.
        let count = unsafe {
            raw::rt_receive(number, self.queue, mbufs, self.frames.as_mut_ptr(), BURST as u16)
        };
        self.count = usize::from(count).min(BURST);
        self.count
    }

    /// Lends the next frame, as bytes and its whole length.
    #[inline]
    pub(crate) fn lend<T>(&mut self, each: impl FnOnce(&[u8], u32) -> T) -> Option<T> {
        if self.left() == 0 {
            return None;
        }
        let frame = self.frames[self.next];
        let mbuf = self.mbufs[self.next];
        self.next += 1;
        if frame.piece_len == frame.len {
            // SAFETY: so many bytes of an mbuf that is given back by `&mut self` alone, hence after `each`.
            let data = unsafe { std::slice::from_raw_parts(frame.data, frame.len as usize) };
            return Some(each(data, frame.len));
        }
        // SAFETY: an mbuf of ours; at most `LONGEST` bytes are written to as many.
        let len = unsafe { raw::rt_join(mbuf, self.joined.as_mut_ptr(), LONGEST as u32) };
        Some(each(self.joined.get(..len as usize).unwrap_or_default(), frame.len))
    }

    fn give_back(&mut self) {
        if self.count > 0 {
            // SAFETY: `count` mbufs of ours, each once; the count is 0 from now on.
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
