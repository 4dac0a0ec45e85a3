//! Sleeping until the other end moves, for rings that are mostly idle.
//!
//! ```text
//! sleeper                          waker
//! asleep = true                    publishes an index
//! fence                            fence
//! reads the index once more        reads `asleep`
//! nothing: sleeps                  true: unparks
//! ```
//!
//! The two fences are a pair: the later one in their order sees what the other side wrote before
//! its own, so either the sleeper finds the item, or the waker finds the sleeper. Pushes and pops
//! do not touch this state: a busy ring pays for parking only where [`Producer::wake`] is called.
//!
//! [`Producer::wake`]: crate::Producer::wake

use crate::sync::{AtomicBool, CacheLine, Mutex, Ordering, Thread, current_thread, fence, park};
use core::time::Duration;

/// Where one end waits for the other.
pub(crate) struct Parker {
    /// Set by the sleeper, cleared by it or by the thread that wakes it.
    asleep: CacheLine<AtomicBool>,
    sleeper: Mutex<Option<Thread>>,
}

impl Default for Parker {
    fn default() -> Self {
        Self { asleep: CacheLine(AtomicBool::new(false)), sleeper: Mutex::new(None) }
    }
}

impl Parker {
    /// Sleeps until [`Self::wake`], at most for `timeout`, unless `ready` returns true after the
    /// announcement.
    pub(crate) fn sleep(&self, timeout: Duration, ready: impl FnOnce() -> bool) {
        *self.sleeper.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(current_thread());
        // Relaxed, as is the load in `wake`: the fences order them.
        self.asleep.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        if !ready() {
            park(timeout);
        }
        self.asleep.0.store(false, Ordering::Relaxed);
    }

    /// Wakes the sleeping end, after something was published.
    #[inline]
    pub(crate) fn wake(&self) {
        // Pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        if self.asleep.0.load(Ordering::Relaxed) {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        self.asleep.0.store(false, Ordering::Relaxed);
        let sleeper = self.sleeper.lock().unwrap_or_else(|poison| poison.into_inner()).clone();
        if let Some(thread) = sleeper {
            thread.unpark();
        }
    }
}
