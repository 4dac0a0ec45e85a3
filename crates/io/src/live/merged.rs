//! A reader's share of several interfaces, as one stream.
//!
//! ```text
//!  eth0, queue 1 ─┐
//!                 ├─ the earliest frame first ─▶ MergedReceiver of queue 1 ─▶ (interface, frame), …
//!  eth1, queue 1 ─┘
//! ```
//!
//! AF_PACKET shares frames out by the same function of the two addresses on every interface, so queue q of each interface
//! belongs to reader q, and all packets between two addresses meet there. With AF_XDP and DPDK the network card shares
//! out, and cards differ: then one reader takes all queues of all interfaces.
//!
//! Order: the kernel shows frames of AF_PACKET block by block, each block some milliseconds after its first frame. If
//! every interface has frames to show, the earliest goes first. If one has none, the kernel's counters say whether frames
//! of it are in a block that is not shown yet. Then frames of the others wait for that block ([`HOLD_MOST_NS`] at the
//! most), otherwise for [`MARGIN_NS`], the time between a frame's stamp and its being counted. While much waits, no frame
//! is held back: a lost frame is worse than one out of order. Frames of AF_XDP and DPDK are taken as they are found.
//!
//! Invariants: `burst` never waits and allocates nothing; it makes system calls only if an interface has no frame to show,
//! and never for single frames. No frame is held back longer than [`HOLD_MOST_NS`], and none that is stamped later than now, which the
//! clock's being set can do.

use crate::live::counters::Counters;
use crate::live::description::Description;
use crate::live::drain::Drain;
use crate::live::frame::Frame;
use crate::live::interface::State;
use crate::live::receiver::{Lost, Receiver};
use ringtap_base::now_ns;

/// How long a frame is held back where others are known to wait in a block that is not shown: many times the default block
/// timeout.
const HOLD_MOST_NS: u64 = 250_000_000;

/// How long it is held back in any case.
const MARGIN_NS: u64 = 1_000_000;

/// With so many sixteenths of its room taken, a queue is not held back.
const PRESSED: u32 = 4;

/// The time of the next frame where none is to be seen.
const NOTHING: u64 = u64::MAX;

/// One reader's share of the queues of several interfaces.
pub struct MergedReceiver {
    parts: Vec<Part>,
    /// The time of each part's next frame.
    heads: Vec<u64>,
    /// Whether frames have times of their own.
    ordered: bool,
    /// Where to begin, if they have not.
    turn: usize,
}

struct Part {
    receiver: Receiver,
    /// The interface's place in the list.
    interface: usize,
    gone: bool,
}

impl From<Receiver> for MergedReceiver {
    fn from(receiver: Receiver) -> Self {
        Self::of(vec![Part { receiver, interface: 0, gone: false }])
    }
}

impl MergedReceiver {
    /// Shares out the receivers of each interface over `readers`: all of them to one, or queue q of each interface to
    /// reader q.
    ///
    /// # Panics
    /// If there are several readers, and not one for each queue of each interface.
    pub fn share_out(interfaces: Vec<Vec<Receiver>>, readers: usize) -> Vec<Self> {
        let whole = |queues: &Vec<Receiver>| readers == 1 || queues.len() == readers;
        assert!(interfaces.iter().all(whole), "a queue of each interface for each reader");
        let mut shares: Vec<Vec<Part>> = (0..readers).map(|_| Vec::new()).collect();
        for (interface, queues) in interfaces.into_iter().enumerate() {
            for (queue, receiver) in queues.into_iter().enumerate() {
                shares[queue % readers].push(Part { receiver, interface, gone: false });
            }
        }
        shares.into_iter().map(Self::of).collect()
    }

    fn of(parts: Vec<Part>) -> Self {
        let heads = vec![NOTHING; parts.len()];
        let ordered = parts.iter().all(|part| part.receiver.stamps_frames());
        Self { parts, heads, ordered, turn: 0 }
    }

    /// Lends up to `most` frames that wait, in place, each with the place of its interface in the list; returns how many,
    /// 0 at once if none waits or all are held back.
    #[inline]
    pub fn burst(&mut self, most: usize, mut each: impl FnMut(usize, Frame<'_>)) -> usize {
        if let [Part { receiver, interface, .. }] = &mut self.parts[..] {
            return receiver.burst(most, |frame| each(*interface, frame));
        }
        if self.ordered { self.burst_in_order(most, each) } else { self.burst_in_turn(most, each) }
    }

    fn burst_in_turn(&mut self, most: usize, mut each: impl FnMut(usize, Frame<'_>)) -> usize {
        let (count, mut lent) = (self.parts.len(), 0);
        // The next call begins with the next one, so that none is kept waiting by the others.
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
            *head = part.receiver.next_ns().unwrap_or(NOTHING);
        }
        let mut lent = 0;
        let mut bounds = Bounds::ALL;
        let mut missing = 0;
        while lent < most {
            let Some((at, first, second)) = earliest(&self.heads) else { break };
            // Another one has nothing to show.
            let none = self.heads.iter().filter(|&&head| head == NOTHING).count();
            if none > missing {
                missing = none;
                bounds = self.bounds();
            }
            let Some(until) = bounds.until(first, second) else { break };
            let Part { receiver, interface, .. } = &mut self.parts[at];
            lent += receiver.burst_until(until, most - lent, |frame| each(*interface, frame));
            self.heads[at] = receiver.next_ns().unwrap_or(NOTHING);
        }
        lent
    }

    /// Up to which time frames may go, by what is known of those that have nothing to show.
    fn bounds(&mut self) -> Bounds {
        if self.backlog() >= PRESSED {
            return Bounds::ALL;
        }
        // Before the kernel is asked: what is stamped from now on is not in its answer.
        let now = now_ns();
        let mut limit = NOTHING;
        for (part, &head) in self.parts.iter_mut().zip(&self.heads) {
            if head == NOTHING && !part.gone {
                let hold = if part.receiver.owes() { HOLD_MOST_NS } else { MARGIN_NS };
                limit = limit.min(now.saturating_sub(hold));
            }
        }
        Bounds { limit, now }
    }

    /// Bytes for frames that wait, of the interface that has the fewest.
    pub fn least_memory(&self) -> usize {
        self.parts.iter().map(|part| part.receiver.describe().memory).min().unwrap_or(0)
    }

    /// Lets no further frame come. The drain says when those that came were lent.
    pub fn drain(&mut self) -> Drain {
        self.parts.iter_mut().for_each(|part| part.receiver.shut());
        Drain::of(self.parts.iter().map(|part| part.receiver.describe().memory).sum())
    }

    /// After a burst of `found` frames: whether those were the last.
    pub fn is_drained(&mut self, drain: &mut Drain, found: usize) -> bool {
        drain.is_over_when(found, || self.parts.iter_mut().any(|part| part.receiver.owes()))
    }

    /// Looks whether interfaces are gone from which nothing waits. A few system calls for each.
    pub fn look_for_gone(&mut self) {
        for part in self.parts.iter_mut().filter(|part| !part.gone) {
            part.gone = part.receiver.state() == State::Gone && part.receiver.next_ns().is_none();
        }
    }

    /// Whether the interface at this place of the list was found gone.
    pub fn is_gone(&self, interface: usize) -> bool {
        self.of_interface(interface).any(|part| part.gone)
    }

    /// Whether all were.
    pub fn all_gone(&self) -> bool {
        self.parts.iter().all(|part| part.gone)
    }

    /// Which part of the room for waiting frames is taken, in sixteenths, of the fullest queue.
    pub fn backlog(&self) -> u32 {
        self.parts.iter().map(|part| part.receiver.backlog()).max().unwrap_or(0)
    }

    /// What became of the frames that came here by the interface at this place of the list.
    pub fn counters(&mut self, interface: usize) -> Counters {
        let mut all = Counters::default();
        for part in self.parts.iter_mut().filter(|part| part.interface == interface) {
            all += part.receiver.counters();
        }
        all
    }

    /// What each interface as a whole has lost, in the order of the list; see [`Receiver::lost`]. Nothing of one that is
    /// gone.
    pub fn lost(&self) -> Vec<Lost> {
        let count = self.interfaces().len();
        let first = |place| self.of_interface(place).next();
        let lost = |place| first(place).and_then(|part| part.receiver.lost()).unwrap_or_default();
        (0..count).map(lost).collect()
    }

    /// How many frames both the queues here and the interface at this place of the list count; see
    /// [`Receiver::counted_twice`].
    pub fn counted_twice(&mut self, interface: usize) -> u64 {
        let parts = self.parts.iter_mut().filter(|part| part.interface == interface);
        parts.map(|part| part.receiver.counted_twice()).sum()
    }

    /// The interfaces, in the order of the list: name when opened, and the kernel's number, 0 if it has none.
    pub fn interfaces(&self) -> Vec<(String, u32)> {
        let mut all = Vec::new();
        for part in &self.parts {
            if part.interface == all.len() {
                all.push((part.receiver.describe().interface, part.receiver.index()));
            }
        }
        all
    }

    /// What each queue turned out to be.
    pub fn describe(&self) -> Vec<Description> {
        self.parts.iter().map(|part| part.receiver.describe()).collect()
    }

    fn of_interface(&self, interface: usize) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.interface == interface)
    }
}

/// When frames may go.
struct Bounds {
    /// Frames up to this time, for none that comes can be earlier; [`NOTHING`] if all may.
    limit: u64,
    now: u64,
}

impl Bounds {
    /// All frames may go.
    const ALL: Self = Self { limit: NOTHING, now: NOTHING };

    /// Up to which time frames of the interface may go whose next is the `first` of all, while the next of the others is
    /// `second`; `None` if the first must wait.
    fn until(&self, first: u64, second: u64) -> Option<u64> {
        if first <= self.limit {
            return Some(second.min(self.limit));
        }
        (first > self.now).then_some(first)
    }
}

/// Whose frame is the earliest, its time and that of the earliest of the others; `None` if there is none.
#[inline]
fn earliest(heads: &[u64]) -> Option<(usize, u64, u64)> {
    let (mut at, mut first, mut second) = (0, NOTHING, NOTHING);
    for (place, &head) in heads.iter().enumerate() {
        if head < first {
            (at, second, first) = (place, first, head);
        } else {
            second = second.min(head);
        }
    }
    (first != NOTHING).then_some((at, first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_goes_as_far_as_the_next_one() {
        assert_eq!(earliest(&[]), None);
        assert_eq!(earliest(&[NOTHING, NOTHING]), None);
        assert_eq!(earliest(&[NOTHING, 7]), Some((1, 7, NOTHING)));
        assert_eq!(earliest(&[9, 7, 8]), Some((1, 7, 8)));
        assert_eq!(earliest(&[7, 9, 8]), Some((0, 7, 8)));
        assert_eq!(earliest(&[9, 8, 7]), Some((2, 7, 8)));
        assert_eq!(earliest(&[7, 7]), Some((0, 7, 7)), "the first of the list");
    }

    #[test]
    fn a_frame_waits_for_earlier_ones_but_not_for_a_clock_that_was_set_back() {
        let bounds = Bounds { limit: 100, now: 120 };
        assert_eq!(bounds.until(90, 95), Some(95), "then the other one's turn");
        assert_eq!(bounds.until(90, NOTHING), Some(100));
        assert_eq!(bounds.until(100, 100), Some(100));
        assert_eq!(bounds.until(101, 110), None, "an earlier one may come");
        assert_eq!(bounds.until(120, NOTHING), None);
        assert_eq!(bounds.until(121, NOTHING), Some(121), "stamped before the clock was set");
        let all = Bounds::ALL;
        assert_eq!((all.until(7, 9), all.until(7, NOTHING)), (Some(9), Some(NOTHING)));
    }
}
