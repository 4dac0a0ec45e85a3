//! A thread that was not started by DPDK makes itself known to it, to have a cache of buffers of its own.
//!
//! Invariant: a thread that became known says so when it ends, for DPDK has room for 128.

use super::raw;

thread_local! {
    static KNOWN: Known = Known::new();
}

/// Makes the calling thread known, if it is not yet. Where there is no room for it, all works as well, only slower.
pub(super) fn enter() {
    KNOWN.with(|_| ());
}

struct Known(bool);

impl Known {
    fn new() -> Self {
        // SAFETY: the environment runs, for there is a port.
        Self(unsafe { raw::rt_thread_enter() } == 0)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread was registered, once, by us.
            unsafe { raw::rt_thread_leave() };
        }
    }
}
