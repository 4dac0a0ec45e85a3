//! A lock as in the paper: one compare-and-swap takes it if it is free.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// Retries before a waiting thread yields, because the holder may not be running.
const SPINS: u32 = 256;

/// Takes a lock. Adds to `waits` if another thread held it.
#[inline]
pub(crate) fn lock<'a, T>(mutex: &'a Mutex<T>, waits: &mut u64) -> MutexGuard<'a, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        // A thread panicked while it held the lock. That panic fails the run; the tables may still
        // be read.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            *waits += 1;
            wait(mutex)
        }
    }
}

#[cold]
fn wait<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let mut tries = 0;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if tries < SPINS => std::hint::spin_loop(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
        tries += 1;
    }
}
