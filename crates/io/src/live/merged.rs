//! Merges the frames of several interfaces into one stream for a reader.
//!
//! ```text
//!  eth0, queue 1 ─┐
//!                 ├─ earliest frame first ─▶ MergedReceiver of queue 1 ─▶ (interface, frame), …
//!  eth1, queue 1 ─┘
//! ```
//!
//! AF_PACKET distributes frames by the same hash of the two addresses on every interface. So reader q has queue q of
//! each interface, and gets all packets between two addresses. With AF_XDP and DPDK the network card distributes, and
//! cards differ: one reader has all queues of all interfaces.
//!
//! Order: AF_PACKET shows frames block by block, each block some milliseconds after its first frame. If every interface
//! has a visible frame, the earliest frame is first. If an interface has none, the kernel's counters show whether it has
//! frames in a block that is not visible yet. If so, frames of the other interfaces are held back for that block, at
//! most for [`HOLD_MOST_NS`]. Otherwise they are held back for [`MARGIN_NS`], the time between a frame's timestamp and
//! its count. If a queue has a large backlog, no frame is held back: a lost frame is worse than a frame out of order.
//! Frames of AF_XDP and DPDK are not ordered.
//!
//! Invariants: `burst` never waits and allocates nothing. It makes system calls only if an interface has no visible
//! frame, never for single frames. No frame is held back longer than [`HOLD_MOST_NS`]. A frame with a timestamp after
//! the current time is not held back; such frames occur when the clock is set back.

use crate::live::counters::Counters;
use crate::live::description::Description;
use crate::live::drain::Drain;
use crate::live::frame::Frame;
use crate::live::receiver::{Lost, Receiver};
use crate::live::state::State;
use ringtap_base::now_ns;

/// Longest time to hold a frame back while another interface has frames in a block that is not visible yet: many times
/// the default block timeout.
const HOLD_MOST_NS: u64 = 250_000_000;

/// Time to hold a frame back otherwise.
const MARGIN_NS: u64 = 1_000_000;

/// Backlog, in sixteenths, from which on no frame is held back.
const BACKLOG_LARGE: u32 = 4;

/// Time of the next frame if no frame is visible.
const NO_FRAME: u64 = u64::MAX;

/// The queues of one reader, of one or more interfaces. An interface is identified by its index in the list given to
/// [`MergedReceiver::distribute`].
pub struct MergedReceiver {
    parts: Vec<Part>,
    /// Time of each part's next frame, or [`NO_FRAME`].
    heads: Vec<u64>,
    /// Whether frames are ordered by time: true if all parts timestamp each frame.
    ordered: bool,
    /// Unordered: index of the part that the last burst began with.
    turn: usize,
}

/// One queue.
struct Part {
    receiver: Receiver,
    /// Index of the interface in the list.
    interface: usize,
    gone: bool,
}

impl From<Receiver> for MergedReceiver {
    fn from(receiver: Receiver) -> Self {
        Self::new(vec![Part { receiver, interface: 0, gone: false }])
    }
}

impl MergedReceiver {
    /// Distributes the receivers of each interface over `readers` readers. A single reader gets all queues. Otherwise
    /// reader q gets queue q of each interface. Returns one `MergedReceiver` per reader.
    ///
    /// # Panics
    /// If there are several readers and an interface has a different number of queues.
    pub fn distribute(interfaces: Vec<Vec<Receiver>>, readers: usize) -> Vec<Self> {
        let matches = |queues: &Vec<Receiver>| readers == 1 || queues.len() == readers;
        assert!(interfaces.iter().all(matches), "each interface has one queue per reader");
        let mut shares: Vec<Vec<Part>> = (0..readers).map(|_| Vec::new()).collect();
        for (interface, queues) in interfaces.into_iter().enumerate() {
            for (queue, receiver) in queues.into_iter().enumerate() {
                shares[queue % readers].push(Part { receiver, interface, gone: false });
            }
        }
        shares.into_iter().map(Self::new).collect()
    }

    fn new(parts: Vec<Part>) -> Self {
        let heads = vec![NO_FRAME; parts.len()];
        let ordered = parts.iter().all(|part| part.receiver.stamps_frames());
        Self { parts, heads, ordered, turn: 0 }
    }

    /// Lends up to `most` waiting frames in place, each with the index of its interface. Returns their number: 0 at once
    /// if no frame waits or all are held back.
    #[inline]
    pub fn burst(&mut self, most: usize, mut each: impl FnMut(usize, Frame<'_>)) -> usize {
        if let [Part { receiver, interface, .. }] = &mut self.parts[..] {
            return receiver.burst(most, |frame| each(*interface, frame));
        }
        if self.ordered { self.burst_in_order(most, each) } else { self.burst_in_turn(most, each) }
    }

    fn burst_in_turn(&mut self, most: usize, mut each: impl FnMut(usize, Frame<'_>)) -> usize {
        let (count, mut lent) = (self.parts.len(), 0);
        // The next call begins with the next part, so that each part gets its turn.
        self.turn = (self.turn + 1) % count.max(1);
        for place in 0..count {
            let Part { receiver, interface, .. } = &mut self.parts[(self.turn + place) % count];
            lent += receiver.burst(most - lent, |frame| each(*interface, frame));
            if lent >= most {
                break;
            }
        }
        lent
    }

    fn burst_in_order(&mut self, most: usize, mut each: impl FnMut(usize, Frame<'_>)) -> usize {
        for (head, part) in self.heads.iter_mut().zip(&mut self.parts) {
            *head = part.receiver.next_ns().unwrap_or(NO_FRAME);
        }
        let mut lent = 0;
        let mut bounds = Bounds::ALL;
        let mut missing = 0;
        while lent < most {
            let Some((at, first, second)) = earliest(&self.heads) else { break };
            // The bounds change when a further part has no visible frame.
            let none = self.heads.iter().filter(|&&head| head == NO_FRAME).count();
            if none > missing {
                missing = none;
                bounds = self.bounds();
            }
            let Some(until) = bounds.until(first, second) else { break };
            let Part { receiver, interface, .. } = &mut self.parts[at];
            lent += receiver.burst_until(until, most - lent, |frame| each(*interface, frame));
            self.heads[at] = receiver.next_ns().unwrap_or(NO_FRAME);
        }
        lent
    }

    /// Computes which frames may be lent now, from the parts that have no visible frame.
    fn bounds(&mut self) -> Bounds {
        if self.backlog() >= BACKLOG_LARGE {
            return Bounds::ALL;
        }
        // Read before the kernel's counters, which do not include frames with later timestamps.
        let now = now_ns();
        let mut limit = NO_FRAME;
        for (part, &head) in self.parts.iter_mut().zip(&self.heads) {
            if head == NO_FRAME && !part.gone {
                let hold = if part.receiver.has_unread() { HOLD_MOST_NS } else { MARGIN_NS };
                limit = limit.min(now.saturating_sub(hold));
            }
        }
        Bounds { limit, now }
    }

    /// Memory for waiting frames of the smallest queue, in bytes.
    pub fn least_memory(&self) -> usize {
        self.parts.iter().map(|part| part.receiver.describe().memory).min().unwrap_or(0)
    }

    /// Stops receiving and begins to drain the queues.
    pub fn drain(&mut self) -> Drain {
        self.parts.iter_mut().for_each(|part| part.receiver.shut());
        Drain::new(self.parts.iter().map(|part| part.receiver.describe().memory).sum())
    }

    /// Call this after a burst that returned `found` frames. Returns whether all frames have been read.
    pub fn is_drained(&mut self, drain: &mut Drain, found: usize) -> bool {
        drain.is_over_with(found, || self.parts.iter_mut().any(|part| part.receiver.has_unread()))
    }

    /// Checks which interfaces are gone and have no visible frame left. A few system calls for each queue.
    pub fn update_gone(&mut self) {
        for part in self.parts.iter_mut().filter(|part| !part.gone) {
            part.gone = part.receiver.state() == State::Gone && part.receiver.next_ns().is_none();
        }
    }

    /// Whether [`MergedReceiver::update_gone`] found this interface gone.
    pub fn is_gone(&self, interface: usize) -> bool {
        self.of_interface(interface).any(|part| part.gone)
    }

    /// Whether [`MergedReceiver::update_gone`] found all interfaces gone.
    pub fn all_gone(&self) -> bool {
        self.parts.iter().all(|part| part.gone)
    }

    /// Fill level of the fullest queue's memory for waiting frames, in sixteenths, 0 to 16.
    pub fn backlog(&self) -> u32 {
        self.parts.iter().map(|part| part.receiver.backlog()).max().unwrap_or(0)
    }

    /// Counters of this interface: the sum of its queues in this receiver.
    pub fn counters(&mut self, interface: usize) -> Counters {
        let mut all = Counters::default();
        for part in self.parts.iter_mut().filter(|part| part.interface == interface) {
            all += part.receiver.counters();
        }
        all
    }

    /// Frames that each whole interface has lost before they reached a receiver, in the order of the list. 0 for an
    /// interface that is gone. As in [`Receiver::lost`], `rx_dropped` includes frames that are counted twice.
    pub fn lost(&self) -> Vec<Lost> {
        let count = self.interfaces().len();
        let first = |place| self.of_interface(place).next();
        let lost = |place| first(place).and_then(|part| part.receiver.lost()).unwrap_or_default();
        (0..count).map(lost).collect()
    }

    /// Upper bound of the frames that are both in [`Lost::rx_dropped`] of this interface and in the counters of its
    /// queues in this receiver.
    pub fn counted_twice(&mut self, interface: usize) -> u64 {
        let parts = self.parts.iter_mut().filter(|part| part.interface == interface);
        parts.map(|part| part.receiver.counted_twice()).sum()
    }

    /// The interfaces in the order of the list: name when it was opened, and the kernel's index, 0 for a DPDK device.
    pub fn interfaces(&self) -> Vec<(String, u32)> {
        let mut all = Vec::new();
        for part in &self.parts {
            if part.interface == all.len() {
                all.push((part.receiver.describe().interface, part.receiver.index()));
            }
        }
        all
    }

    /// Capture path and properties of each queue.
    pub fn describe(&self) -> Vec<Description> {
        self.parts.iter().map(|part| part.receiver.describe()).collect()
    }

    fn of_interface(&self, interface: usize) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.interface == interface)
    }
}

/// Times of the frames that may be lent.
struct Bounds {
    /// Frames up to this time may be lent, because no earlier frame can arrive; [`NO_FRAME`] allows all frames.
    limit: u64,
    /// Frames after this time may be lent, too: the clock was set back.
    now: u64,
}

impl Bounds {
    /// Allows all frames.
    const ALL: Self = Self { limit: NO_FRAME, now: NO_FRAME };

    /// `first` is the time of the earliest frame, `second` the earliest time of the other parts. Returns the time up to
    /// which the part of `first` may lend frames; `None` if `first` is held back.
    fn until(&self, first: u64, second: u64) -> Option<u64> {
        if first <= self.limit {
            return Some(second.min(self.limit));
        }
        (first > self.now).then_some(first)
    }
}

/// Returns the index of the part with the earliest frame, the time of that frame, and the earliest time of the other
/// parts; `None` if no frame is visible.
#[inline]
fn earliest(heads: &[u64]) -> Option<(usize, u64, u64)> {
    let (mut at, mut first, mut second) = (0, NO_FRAME, NO_FRAME);
    for (place, &head) in heads.iter().enumerate() {
        if head < first {
            (at, second, first) = (place, first, head);
        } else {
            second = second.min(head);
        }
    }
    (first != NO_FRAME).then_some((at, first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_part_and_both_times_are_found() {
        assert_eq!(earliest(&[]), None);
        assert_eq!(earliest(&[NO_FRAME, NO_FRAME]), None);
        assert_eq!(earliest(&[NO_FRAME, 7]), Some((1, 7, NO_FRAME)));
        assert_eq!(earliest(&[9, 7, 8]), Some((1, 7, 8)));
        assert_eq!(earliest(&[7, 9, 8]), Some((0, 7, 8)));
        assert_eq!(earliest(&[9, 8, 7]), Some((2, 7, 8)));
        assert_eq!(earliest(&[7, 7]), Some((0, 7, 7)), "the first in the list");
    }

    #[test]
    fn a_frame_waits_for_earlier_frames_but_not_after_the_clock_is_set_back() {
        let bounds = Bounds { limit: 100, now: 120 };
        assert_eq!(bounds.until(90, 95), Some(95), "then the other part is first");
        assert_eq!(bounds.until(90, NO_FRAME), Some(100));
        assert_eq!(bounds.until(100, 100), Some(100));
        assert_eq!(bounds.until(101, 110), None, "an earlier frame may arrive");
        assert_eq!(bounds.until(120, NO_FRAME), None);
        assert_eq!(
            bounds.until(121, NO_FRAME),
            Some(121),
            "timestamp from before the clock was set back"
        );
        let all = Bounds::ALL;
        assert_eq!((all.until(7, 9), all.until(7, NO_FRAME)), (Some(9), Some(NO_FRAME)));
    }
}
