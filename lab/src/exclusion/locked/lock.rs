//! A lock as in the paper, one compare-and-swap takes it if it is free, and the same without the lock.

use std::cell::{RefCell, RefMut};
use std::fmt::Debug;
use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Retries before a waiting thread yields, because the holder may not be running.
const SPINS: u32 = 256;

/// What guards a value: a lock, or nothing.
pub(crate) trait Lock<T>: Debug + Default {
    /// Access to the value; the lock is released when it is dropped.
    type Guard<'a>: Debug + DerefMut<Target = T>
    where
        Self: 'a;

    /// Takes the lock. Adds to `waits` if another thread held it.
    fn hold(&self, waits: &mut u64) -> Self::Guard<'_>;
}

impl<T: Debug + Default> Lock<T> for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    #[inline]
    fn hold(&self, waits: &mut u64) -> MutexGuard<'_, T> {
        lock(self, waits)
    }
}

/// A value without a lock, for one thread. Instead of two atomic instructions there are two plain stores to the same
/// cache line, the flag of the `RefCell`; without the flag this would need `unsafe`.
#[derive(Debug, Default)]
pub(crate) struct Elided<T>(RefCell<T>);

impl<T: Debug + Default> Lock<T> for Elided<T> {
    type Guard<'a>
        = RefMut<'a, T>
    where
        T: 'a;

    #[inline]
    fn hold(&self, _: &mut u64) -> RefMut<'_, T> {
        self.0.borrow_mut()
    }
}

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
