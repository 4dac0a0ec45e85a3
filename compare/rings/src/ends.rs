//! The two ends of a candidate, and the loops that drive them, which are the same for all
//! candidates.
//!
//! ```text
//! Sender::send(from, to)  ──▶ candidate ──▶  Receiver::receive(from, to)
//!   put(next, wanted) …                        take(next, wanted, wrong) …
//! ```
//!
//! Item `i` of a run is created from the number `i`. C++ candidates implement the two traits with
//! the same loops in C++ (shim/rivals.hpp), so no call between languages is timed.

use std::{hint::spin_loop, thread};

/// The sending end.
pub trait Sender: Send {
    /// Sends items `from..to`, waits for room, and publishes all items at the end.
    fn send(&mut self, from: u64, to: u64);
}

/// The receiving end.
pub trait Receiver: Send {
    /// Takes items `from..to` and reads them completely; returns 0 if all were correct.
    fn receive(&mut self, from: u64, to: u64) -> u64;
}

pub type Pair = (Box<dyn Sender>, Box<dyn Receiver>);

/// Inserts items. Closures implement it for queues that publish every item at once.
pub trait Put: Send + 'static {
    /// Inserts up to `wanted` items numbered from `next` on; returns how many.
    fn put(&mut self, next: u64, wanted: usize) -> usize;

    /// Publishes all inserted items.
    fn flush(&mut self) {}
}

impl<F: FnMut(u64, usize) -> usize + Send + 'static> Put for F {
    #[inline(always)]
    fn put(&mut self, next: u64, wanted: usize) -> usize {
        self(next, wanted)
    }
}

/// Ends made of two functions, which handle at most `burst` items per call.
/// `take(next, wanted, wrong)` takes up to `wanted` items numbered from `next` on, ORs differences
/// into `wrong`, and returns how many.
pub fn pair<P, C>(burst: usize, put: P, take: C) -> Pair
where
    P: Put,
    C: FnMut(u64, usize, &mut u64) -> usize + Send + 'static,
{
    (Box::new(PutSender { burst, put }), Box::new(TakeReceiver { burst, take }))
}

struct PutSender<P> {
    burst: usize,
    put: P,
}

impl<P: Put> Sender for PutSender<P> {
    fn send(&mut self, from: u64, to: u64) {
        let (mut next, mut idle) = (from, 0);
        while next < to {
            let wanted = (to - next).min(self.burst as u64) as usize;
            let put = self.put.put(next, wanted);
            next += put as u64;
            wait_if(put == 0, &mut idle);
        }
        self.put.flush();
    }
}

struct TakeReceiver<C> {
    burst: usize,
    take: C,
}

impl<C: FnMut(u64, usize, &mut u64) -> usize + Send> Receiver for TakeReceiver<C> {
    fn receive(&mut self, from: u64, to: u64) -> u64 {
        let (mut next, mut idle, mut wrong) = (from, 0, 0);
        while next < to {
            let wanted = (to - next).min(self.burst as u64) as usize;
            let taken = (self.take)(next, wanted, &mut wrong);
            next += taken as u64;
            wait_if(taken == 0, &mut idle);
        }
        wrong
    }
}

/// Spins while there is nothing to do; yields every 1,024 calls.
#[inline(always)]
pub fn wait_if(nothing: bool, idle: &mut u32) {
    if !nothing {
        *idle = 0;
    } else {
        *idle += 1;
        if idle.is_multiple_of(1024) { thread::yield_now() } else { spin_loop() }
    }
}
