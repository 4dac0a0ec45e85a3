//! The two ends of a candidate, and the loops that drive them: the same for all.
//!
//! ```text
//! Sender::send(from, to)  ──▶ candidate ──▶  Receiver::receive(from, to)
//!   put(next, wanted) …                        take(next, wanted, wrong) …
//! ```
//!
//! Item `i` of a run is made from the number `i`. C++ candidates implement the two traits with
//! loops of the same shape on their side (shim/rivals.hpp), so no call between languages is timed.

use std::{hint::spin_loop, thread};

/// The end where items go in.
pub trait Sender: Send {
    /// Sends items `from..to`, waits where there is no room, and holds nothing back at the end.
    fn send(&mut self, from: u64, to: u64);
}

/// The end where items come out.
pub trait Receiver: Send {
    /// Takes items `from..to` and reads them in full: 0 if all were what they should be.
    fn receive(&mut self, from: u64, to: u64) -> u64;
}

pub type Pair = (Box<dyn Sender>, Box<dyn Receiver>);

/// Puts items in; a closure will do where nothing is ever held back.
pub trait Put: Send + 'static {
    /// Puts in up to `wanted` items numbered from `next` on, and says how many.
    fn put(&mut self, next: u64, wanted: usize) -> usize;

    /// Makes everything visible to the other end.
    fn settle(&mut self) {}
}

impl<F: FnMut(u64, usize) -> usize + Send + 'static> Put for F {
    #[inline(always)]
    fn put(&mut self, next: u64, wanted: usize) -> usize {
        self(next, wanted)
    }
}

/// The ends made of two functions, `burst` items at most at a time. `take` takes up to so many
/// items, numbered from the first argument on, and adds what differs to the last.
pub fn pair<P, C>(burst: usize, put: P, take: C) -> Pair
where
    P: Put,
    C: FnMut(u64, usize, &mut u64) -> usize + Send + 'static,
{
    (Box::new(Putting { burst, put }), Box::new(Taking { burst, take }))
}

struct Putting<P> {
    burst: usize,
    put: P,
}

impl<P: Put> Sender for Putting<P> {
    fn send(&mut self, from: u64, to: u64) {
        let (mut next, mut idle) = (from, 0);
        while next < to {
            let wanted = (to - next).min(self.burst as u64) as usize;
            let put = self.put.put(next, wanted);
            next += put as u64;
            wait_if(put == 0, &mut idle);
        }
        self.put.settle();
    }
}

struct Taking<C> {
    burst: usize,
    take: C,
}

impl<C: FnMut(u64, usize, &mut u64) -> usize + Send> Receiver for Taking<C> {
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

/// Spins while there is nothing to do, and now and then lets others run.
#[inline(always)]
pub fn wait_if(nothing: bool, idle: &mut u32) {
    if !nothing {
        *idle = 0;
    } else {
        *idle += 1;
        if idle.is_multiple_of(1024) { thread::yield_now() } else { spin_loop() }
    }
}
