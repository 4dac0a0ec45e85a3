//! A deliberate data race: a race detector that misses this one is not working.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

struct Shared {
    slot: UnsafeCell<u64>,
    full: AtomicBool,
}

// SAFETY: none; that is the mistake.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared { slot: UnsafeCell::new(0), full: AtomicBool::new(false) };

fn main() {
    let consumer = std::thread::spawn(|| {
        while !SHARED.full.load(Relaxed) {
            std::thread::yield_now();
        }
        // SAFETY: none; the load above should be Acquire.
        unsafe { *SHARED.slot.get() }
    });
    // SAFETY: none; the store below should be Release.
    unsafe { *SHARED.slot.get() = 1 };
    SHARED.full.store(true, Relaxed);
    println!("{}", consumer.join().unwrap());
}
