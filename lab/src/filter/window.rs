//! The bound on packets in flight, and the feed that keeps it.
//!
//! ```text
//! stream   ┆ interval 0 ┆ interval 1 ┆ interval 2 ┆ …       a tick after each
//! passed     by all       by one       may begin: all workers passed the tick after interval 0
//! ```
//!
//! An interval has half as many packets as the bound. After each interval the dispatcher sends a
//! tick, which reaches all workers in their streams. It begins interval k when every worker has
//! passed the tick after interval k − 2. So at most `in_flight` packets are between dispatch and
//! verdict, and when a worker handles a packet of interval k, all packets before interval k − 1
//! have been handled ([`Window::settled`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ringtap_stage::{Burst, Fed, Feed, Mark};

use crate::filter::history::Recorder;
use crate::filter::packet::Packet;

#[derive(Debug)]
pub(crate) struct Window {
    /// Packets in an interval.
    step: u64,
    /// Number of ticks that each worker has passed; written by that worker only.
    passed: OnceLock<Box<[Passed]>>,
}

/// A counter on cache lines of its own (two lines, because some processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Passed(AtomicU64);

impl Window {
    /// A window of at most `in_flight` packets, rounded down to an even number, at least 2.
    pub(crate) fn new(in_flight: usize) -> Self {
        Self { step: (in_flight as u64 / 2).max(1), passed: OnceLock::new() }
    }

    /// Sets the number of workers.
    ///
    /// # Panics
    /// If an earlier call had another number.
    pub(crate) fn set_workers(&self, workers: usize) {
        let counters = || (0..workers).map(|_| Passed::default()).collect();
        assert_eq!(self.passed.get_or_init(counters).len(), workers, "a window is for one run");
    }

    /// Records that a worker has handled everything before a tick.
    pub(crate) fn pass(&self, worker: usize, tick: u64) {
        if let Some(passed) = self.passed.get() {
            // Pairs with the Acquire load in `passed_by_all`.
            passed[worker].0.store(tick + 1, Ordering::Release);
        }
    }

    /// A number below which all packets were handled before packet `number` was dispatched.
    pub(crate) fn settled(&self, number: u64) -> u64 {
        (number / self.step * self.step).saturating_sub(self.step)
    }

    fn passed_by_all(&self) -> u64 {
        let passed = self.passed.get().map_or(&[][..], |passed| passed);
        // Pairs with the Release store in `pass`.
        passed.iter().map(|worker| worker.0.load(Ordering::Acquire)).min().unwrap_or(0)
    }
}

/// The dispatcher's part of a design: it handles all packets in the order of the stream, before the
/// workers.
pub trait Stamp {
    /// A packet as sent to a worker.
    type Item;

    /// The item of packet `number`. Called once for each packet, in order.
    fn stamp(&mut self, number: u64, packet: Packet) -> Self::Item;
}

/// The feed of a run: numbers packets from 0, stamps them and keeps the bound on packets in flight.
pub struct Dispatch<'a, P, S> {
    packets: P,
    stamp: S,
    window: &'a Window,
    recorder: Option<&'a Recorder>,
    number: u64,
    interval: u64,
    /// The last result of `passed_by_all`.
    passed: u64,
}

impl<'a, P, S> Dispatch<'a, P, S> {
    pub(crate) fn new(
        packets: P,
        stamp: S,
        window: &'a Window,
        recorder: Option<&'a Recorder>,
    ) -> Self {
        Self { packets, stamp, window, recorder, number: 0, interval: 0, passed: 0 }
    }

    fn may_begin(&mut self) -> bool {
        if self.passed + 1 < self.interval {
            self.passed = self.window.passed_by_all();
        }
        self.passed + 1 >= self.interval
    }
}

impl<P: Iterator<Item = Packet>, S: Stamp> Feed for Dispatch<'_, P, S> {
    type Item = S::Item;

    fn next(&mut self, burst: &mut Burst<S::Item>) -> Fed {
        let end = (self.interval + 1) * self.window.step;
        if self.number == end {
            self.interval += 1;
            return Fed::Mark(Mark::Tick { number: self.interval - 1, time_ns: 0 });
        }
        if !self.may_begin() {
            return Fed::Idle;
        }
        let room = (burst.capacity() - burst.len()).min((end - self.number) as usize);
        let first = self.number;
        let Self { packets, stamp, recorder, number, .. } = self;
        packets.by_ref().take(room).for_each(|packet| {
            if let Some(recorder) = recorder {
                recorder.invoked(*number);
            }
            burst.push(stamp.stamp(*number, packet));
            *number += 1;
        });
        if self.number > first { Fed::Items } else { Fed::Mark(Mark::End { time_ns: 0 }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::packet::Control;

    struct Number;

    impl Stamp for Number {
        type Item = u64;

        fn stamp(&mut self, number: u64, _packet: Packet) -> u64 {
            number
        }
    }

    #[test]
    fn no_more_than_the_bound_are_in_flight() {
        let control = Control { address: 0, banned: false, accepting: true, begin: 0, end: 1 };
        let window = Window::new(8);
        window.set_workers(2);
        let packets = std::iter::repeat_n(Packet::Control(control), 13);
        let mut feed = Dispatch::new(packets, Number, &window, None);
        let mut burst = Burst::with_capacity(100);
        let mut fed = || (feed.next(&mut burst), burst.len());
        let tick = |number| Fed::Mark(Mark::Tick { number, time_ns: 0 });
        assert_eq!([fed(), fed(), fed()], [(Fed::Items, 4), (tick(0), 4), (Fed::Items, 8)]);
        assert_eq!([fed(), fed()], [(tick(1), 8), (Fed::Idle, 8)]);
        window.pass(0, 0);
        assert_eq!(fed(), (Fed::Idle, 8));
        window.pass(1, 0);
        assert_eq!([fed(), fed(), fed()], [(Fed::Items, 12), (tick(2), 12), (Fed::Idle, 12)]);
        window.pass(0, 2);
        window.pass(1, 1);
        let end = Fed::Mark(Mark::End { time_ns: 0 });
        assert_eq!([fed(), fed()], [(Fed::Items, 13), (end, 13)]);
        assert_eq!([window.settled(3), window.settled(7), window.settled(12)], [0, 0, 8]);
    }
}
