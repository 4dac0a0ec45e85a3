//! Registers threads that DPDK did not start, so that they get a cache of buffers.
//!
//! Invariant: a registered thread is unregistered when it ends, because DPDK has room for 128.

use super::raw;

thread_local! {
    static KNOWN: Known = Known::new();
}

/// Registers the calling thread, if it is not registered yet. Without room everything works, but slower.
pub(super) fn enter() {
    KNOWN.with(|_| ());
}

struct Known(bool);

impl Known {
    fn new() -> Self {
        // SAFETY: the environment runs, because a port exists.
        Self(unsafe { raw::rt_thread_enter() } == 0)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread was registered once, by `enter`.
            unsafe { raw::rt_thread_leave() };
        }
    }
}
