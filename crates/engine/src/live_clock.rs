//! The time of an interface: timestamps of frames, compared with clocks that advance without them.
//!
//! ```text
//!  timestamps ──▶ Timeline ◀── far away? ── steady clock: is this a gap in the traffic?
//!                    │                      wall clock: was the clock set?
//!                    ▼
//!                  marks  ◀── nothing comes: the steady clock goes on for them
//! ```
//!
//! A frame far from the expected time moves time at once if the monotonic or the wall clock
//! confirms it, and otherwise by the rules of [`Timeline`]. When time is set, all queues of the
//! interface follow, with or without frames; each makes two marks, one of the time before and one
//! of the time after. The number of a mark is its tick after the number of times that time was set,
//! so matching marks of different queues have the same number, and numbers grow even if time is set
//! back.
//!
//! Invariant: clocks are read when no frame arrives, when a mark is due and when a frame is far
//! away, never for each frame.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_stage::Mark;

use crate::timeline::{Moved, Timeline};

/// How far time by the clock stays behind, so that packets in flight are not too old for it.
const BEHIND_NS: u64 = 1_000_000_000;

/// A clock this far from its expected time was set.
const SET_NS: u64 = 60_000_000_000;

/// For this long after the clock was set, frames with older timestamps may still arrive: the kernel
/// shows a block when it is full or after some time, and queues may not have been read meanwhile.
const LATE_NS: u64 = 1_000_000_000;

/// Position of the number of times that time was set within a mark's number; ticks are at least a
/// second, so 35 bits hold them.
const SET_SHIFT: u32 = 40;

/// A reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    /// Nanoseconds of the monotonic clock.
    pub(crate) steady_ns: u64,
    /// Nanoseconds since 1970, by the clock that the kernel stamps frames with.
    pub(crate) wall_ns: u64,
}

impl Now {
    /// Reads the system's clocks.
    pub(crate) fn read() -> Self {
        Self { steady_ns: ringtap_base::steady_ns(), wall_ns: ringtap_base::now_ns() }
    }
}

/// The source of time: the system, or a test.
pub(crate) type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// How often, and how far, time was set on an interface; shared by its queues.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    /// Equal to `all.count`, readable without the lock.
    count: AtomicU64,
    all: Mutex<Set>,
}

/// Number and size of the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) count: u64,
    /// The size of the last step, and of all of them, nanoseconds.
    pub(crate) last_ns: i64,
    pub(crate) total_ns: i64,
}

impl Sets {
    /// The steps so far.
    pub(crate) fn get(&self) -> Set {
        *self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets time by `by_ns`, unless another queue has set it since `known`. Returns the current
    /// steps.
    fn set(&self, known: &Set, by_ns: i64) -> Set {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.count == known.count {
            all.count += 1;
            all.last_ns = by_ns;
            all.total_ns = all.total_ns.saturating_add(by_ns);
            // Release: a thread that sees the count (Acquire in `follow`) takes the lock for the
            // rest.
            self.count.store(all.count, Ordering::Release);
        }
        *all
    }
}

/// A pair of packet time and the clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Now,
    packet_ns: u64,
}

impl Anchor {
    /// The expected packet time now.
    fn expected_ns(&self, now: Now) -> u64 {
        self.packet_ns.saturating_add(now.steady_ns.saturating_sub(self.at.steady_ns))
    }

    /// Whether the wall clock stamps the frames.
    fn by_wall(&self) -> bool {
        self.packet_ns.abs_diff(self.at.wall_ns) <= SET_NS
    }

    /// How far the wall clock was set since.
    fn wall_set_ns(&self, now: Now) -> i64 {
        let went_ns = now.steady_ns.saturating_sub(self.at.steady_ns);
        difference(now.wall_ns.into(), i128::from(self.at.wall_ns) + i128::from(went_ns))
    }
}

/// The time of one queue.
pub(crate) struct LiveClock {
    clock: Clock,
    sets: Arc<Sets>,
    /// The steps that this queue has followed.
    followed: Set,
    timeline: Timeline,
    anchor: Option<Anchor>,
    /// The anchor before time was set, and when that was by the monotonic clock.
    superseded: Option<(Anchor, u64)>,
    tick_ns: u64,
    /// The tick of the last mark, or of the first packet; `None` before it.
    tick: Option<u64>,
    /// Marks of the last step that are due, the next one last.
    waiting: Vec<Mark>,
    /// Both clocks when the current silence began.
    quiet_since: Option<Now>,
    /// Whether frames have arrived.
    stamped: bool,
}

impl LiveClock {
    /// The time of a queue; `sets` is shared by all queues of the interface.
    pub(crate) fn new(clock: Clock, sets: Arc<Sets>, tick_ns: u64) -> Self {
        Self {
            clock,
            sets,
            followed: Set::default(),
            timeline: Timeline::new(tick_ns),
            anchor: None,
            superseded: None,
            tick_ns,
            tick: None,
            waiting: Vec::with_capacity(4),
            quiet_since: None,
            stamped: false,
        }
    }

    /// Handles the time of a frame.
    #[inline(always)]
    pub(crate) fn see(&mut self, ts_ns: u64) {
        if self.timeline.is_near(ts_ns) {
            self.timeline.see(ts_ns);
        } else {
            self.see_far(ts_ns);
        }
    }

    /// Frames arrived and were all handled by `see`.
    pub(crate) fn busy(&mut self) {
        (self.stamped, self.quiet_since) = (true, None);
    }

    /// Time stops until the queue is idle again.
    pub(crate) fn pause(&mut self) {
        self.quiet_since = None;
    }

    /// The time by the frames seen.
    #[inline]
    pub(crate) fn packet_ns(&self) -> Option<u64> {
        self.timeline.now_ns()
    }

    /// The mark that is due by the frames seen, if any.
    pub(crate) fn mark(&mut self) -> Option<Mark> {
        self.follow();
        if let Some(mark) = self.waiting.pop() {
            return Some(mark);
        }
        let time_ns = self.timeline.now_ns()?;
        let mark = self.mark_at(time_ns)?;
        self.drop_anchor((self.clock)());
        Some(mark)
    }

    /// No frame arrived: time advances by the clock. Returns the clocks and the mark that is due,
    /// if any.
    pub(crate) fn quiet(&mut self) -> (Now, Option<Mark>) {
        let now = (self.clock)();
        let since = *self.quiet_since.get_or_insert(now);
        if self.timeline.now_ns().is_none() {
            self.begin_at(now.wall_ns);
        }
        if let Some(anchor) = self.anchor
            && anchor.by_wall()
            && anchor.wall_set_ns(now).unsigned_abs() > SET_NS
        {
            self.set(anchor.wall_set_ns(now), now);
        }
        self.follow();
        if let Some(mark) = self.waiting.pop() {
            return (now, Some(mark));
        }
        // The time of the step, if there was one.
        let since = self.quiet_since.unwrap_or(since);
        let quiet_ns = now.steady_ns.saturating_sub(since.steady_ns);
        let from_ns = self.timeline.now_ns().unwrap_or(since.wall_ns);
        let time_ns = from_ns.saturating_add(quiet_ns).saturating_sub(BEHIND_NS);
        (now, self.mark_at(time_ns))
    }

    /// The latest time, of packets and of marks.
    pub(crate) fn end_ns(&mut self) -> u64 {
        self.follow();
        let announced_ns = self.tick.unwrap_or(0) * self.tick_ns;
        self.timeline.now_ns().unwrap_or(0).max(announced_ns)
    }

    /// Frames far ahead that no others confirmed.
    pub(crate) fn strays(&self) -> u64 {
        self.timeline.strays() + self.timeline.doubted()
    }

    fn mark_at(&mut self, time_ns: u64) -> Option<Mark> {
        let tick = time_ns / self.tick_ns;
        let last = *self.tick.get_or_insert(tick);
        if tick <= last {
            return None;
        }
        self.tick = Some(tick);
        Some(self.tick_mark(tick, tick * self.tick_ns))
    }

    fn tick_mark(&self, tick: u64, time_ns: u64) -> Mark {
        Mark::Tick { number: self.followed.count << SET_SHIFT | tick, time_ns }
    }

    fn drop_anchor(&mut self, at: Now) {
        self.anchor = self.timeline.now_ns().map(|packet_ns| Anchor { at, packet_ns });
    }

    #[cold]
    fn see_far(&mut self, ts_ns: u64) {
        self.follow();
        if ts_ns == 0 {
            return;
        }
        let (Some(before_ns), Some(anchor), true) =
            (self.timeline.now_ns(), self.anchor, self.stamped)
        else {
            // The first frame. Before it, the stamping clock is unknown.
            self.stamped = true;
            self.begin_at(ts_ns);
            return;
        };
        let now = (self.clock)();
        if self.is_late(ts_ns, now) {
            return;
        }
        let expected_ns = anchor.expected_ns(now);
        let far = |from_ns: u64| ts_ns.abs_diff(from_ns) > SET_NS;
        if ts_ns > before_ns && (ts_ns <= expected_ns || !far(expected_ns)) {
            // No frame arrived for a while, or frames were not read.
            self.timeline.set(ts_ns);
        } else if anchor.by_wall() && far(expected_ns) && !far(now.wall_ns) {
            self.set(difference(ts_ns.into(), expected_ns.into()), now);
        } else if matches!(self.timeline.see(ts_ns), Moved::Ahead | Moved::Back { .. }) {
            let to_ns = self.timeline.now_ns().unwrap_or(ts_ns);
            // The marks of a step begin where time was before.
            self.timeline.set(before_ns);
            self.set(difference(to_ns.into(), expected_ns.into()), now);
        }
    }

    /// Whether a frame was stamped before time was set and arrives only now.
    fn is_late(&self, ts_ns: u64, now: Now) -> bool {
        self.superseded.is_some_and(|(before, set_ns)| {
            now.steady_ns.saturating_sub(set_ns) <= LATE_NS
                && ts_ns.abs_diff(before.expected_ns(now)) <= SET_NS
        })
    }

    fn begin_at(&mut self, ts_ns: u64) {
        self.timeline = Timeline::new(self.tick_ns);
        self.timeline.see(ts_ns);
        self.tick = None;
        self.drop_anchor((self.clock)());
    }

    /// Time was set by `by_ns`.
    fn set(&mut self, by_ns: i64, now: Now) {
        self.sets.set(&self.followed, by_ns);
        self.follow_at(now);
    }

    /// Follows a step that another queue found.
    #[inline]
    fn follow(&mut self) {
        if self.sets.count.load(Ordering::Acquire) != self.followed.count {
            self.follow_at((self.clock)());
        }
    }

    #[cold]
    fn follow_at(&mut self, now: Now) {
        let sets = self.sets.get();
        let by_ns = difference(sets.total_ns.into(), self.followed.total_ns.into());
        let quiet_ns =
            self.quiet_since.map_or(0, |since| now.steady_ns.saturating_sub(since.steady_ns));
        self.followed = sets;
        let Some(packet_ns) = self.timeline.now_ns() else { return };
        let before_ns = packet_ns.saturating_add(quiet_ns);
        let expected_ns = self.anchor.map_or(before_ns, |anchor| anchor.expected_ns(now));
        let after_ns = expected_ns.saturating_add_signed(by_ns);
        self.timeline.set(after_ns);
        self.superseded = self.anchor.map(|before| (before, now.steady_ns));
        self.drop_anchor(now);
        self.quiet_since = self.quiet_since.map(|_| now);
        let tick = after_ns / self.tick_ns;
        self.tick = Some(tick);
        self.waiting.clear();
        self.waiting.push(self.tick_mark(tick, tick * self.tick_ns));
        self.waiting.push(self.tick_mark(0, before_ns));
    }
}

fn difference(a_ns: i128, b_ns: i128) -> i64 {
    (a_ns - b_ns).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3_600 * SECOND;
    const BEGIN: u64 = 1_700_000_000 * SECOND;

    /// Clocks that a test sets: the monotonic clock, and the offsets of the wall clock and the
    /// frames' clock.
    #[derive(Default)]
    struct Hands {
        steady_ns: AtomicU64,
        wall_off_ns: AtomicU64,
        frames_off_ns: AtomicU64,
        sets: Arc<Sets>,
    }

    impl Hands {
        fn new() -> Arc<Self> {
            let hands = Self::default();
            hands.wall_off_ns.store(BEGIN, Ordering::Relaxed);
            hands.frames_off_ns.store(BEGIN, Ordering::Relaxed);
            Arc::new(hands)
        }

        fn queue(self: &Arc<Self>) -> LiveClock {
            let own = Arc::clone(self);
            let read = move || {
                let steady_ns = own.steady_ns.load(Ordering::Relaxed);
                Now { steady_ns, wall_ns: steady_ns + own.wall_off_ns.load(Ordering::Relaxed) }
            };
            LiveClock::new(Arc::new(read), Arc::clone(&self.sets), SECOND)
        }

        fn pass(&self, ns: u64) {
            self.steady_ns.fetch_add(ns, Ordering::Relaxed);
        }

        fn frame_ns(&self) -> u64 {
            self.steady_ns.load(Ordering::Relaxed) + self.frames_off_ns.load(Ordering::Relaxed)
        }

        /// Sets the kernel's clock, which also stamps frames.
        fn set(&self, off_ns: u64) {
            self.wall_off_ns.store(off_ns, Ordering::Relaxed);
            self.frames_off_ns.store(off_ns, Ordering::Relaxed);
        }

        /// The times of the marks of `tenths` tenths of a second, with or without a frame in each,
        /// in seconds from the beginning. Numbers must grow.
        fn run(&self, queue: &mut LiveClock, tenths: u64, frames: bool) -> Vec<i64> {
            let (mut marks, mut last) = (Vec::new(), None);
            for _ in 0..tenths {
                self.pass(SECOND / 10);
                if frames {
                    queue.see(self.frame_ns());
                    queue.busy();
                }
                loop {
                    let mark = if frames { queue.mark() } else { queue.mark().or(queue.quiet().1) };
                    let Some(Mark::Tick { number, time_ns }) = mark else { break };
                    assert!(last.is_none_or(|last| last < number), "{last:?}, {number}");
                    last = Some(number);
                    marks.push(difference(time_ns.into(), BEGIN.into()) / SECOND as i64);
                }
            }
            marks
        }
    }

    #[test]
    fn marks_go_on_with_frames_and_without() {
        let hands = Hands::new();
        let mut queue = hands.queue();
        assert_eq!(hands.run(&mut queue, 50, true), [1, 2, 3, 4, 5]);
        // The clock stays a second behind.
        assert_eq!(hands.run(&mut queue, 30, false), [6]);
        assert_eq!(hands.run(&mut queue, 20, true), [8, 9, 10]);
        // A gap of an hour without a look at the clock.
        hands.pass(HOUR);
        assert_eq!(hands.run(&mut queue, 10, true), [3_610, 3_611]);
        assert_eq!((hands.sets.get(), queue.strays()), (Set::default(), 0));
    }

    #[test]
    fn a_clock_that_is_set_back_or_ahead_stops_no_marks() {
        for (off_ns, by_ns, at) in
            [(BEGIN - HOUR, -(HOUR as i64), -3_600), (BEGIN + HOUR, HOUR as i64, 3_600)]
        {
            for frames in [true, false] {
                let hands = Hands::new();
                let mut queue = hands.queue();
                hands.run(&mut queue, 55, true);
                hands.set(off_ns);
                let marks = hands.run(&mut queue, 40, frames);
                // The mark of the time before, and those of the time after.
                assert_eq!(marks[0], 5, "{frames}: {marks:?}");
                assert_eq!(marks[1..4], [at + 5, at + 6, at + 7], "{frames}: {marks:?}");
                let set = hands.sets.get();
                assert_eq!(set.count, 1);
                assert!(set.last_ns.abs_diff(by_ns) < SECOND, "{set:?}");
            }
        }
    }

    /// Frames of a block that the kernel had not shown when the clock was set.
    #[test]
    fn frames_stamped_before_the_clock_was_set_do_not_set_it_again() {
        for off_ns in [BEGIN - HOUR, BEGIN + HOUR] {
            let hands = Hands::new();
            let mut queue = hands.queue();
            hands.run(&mut queue, 55, true);
            let before_ns = hands.frame_ns();
            hands.set(off_ns);
            assert!(queue.quiet().1.is_some());
            (0..100).for_each(|number| queue.see(before_ns + number * 1_000));
            queue.busy();
            hands.run(&mut queue, 40, true);
            assert_eq!((hands.sets.get().count, queue.strays()), (1, 0));
        }
    }

    #[test]
    fn queues_follow_one_another_and_number_their_marks_alike() {
        let hands = Hands::new();
        let mut queues = [hands.queue(), hands.queue(), hands.queue()];
        let numbers = |queue: &mut LiveClock, frames: bool| {
            let mut numbers = Vec::new();
            if frames {
                queue.see(hands.frame_ns());
                queue.busy();
            }
            while let Some(mark) = if frames { queue.mark() } else { queue.quiet().1 } {
                let Mark::Tick { number, .. } = mark else { panic!("the end") };
                numbers.push(number);
            }
            numbers
        };
        let mut all = vec![Vec::new(); 3];
        for tenth in 0..400 {
            hands.pass(SECOND / 10);
            if tenth == 200 {
                hands.set(BEGIN - HOUR);
            }
            for (at, queue) in queues.iter_mut().enumerate() {
                // The third never has a frame, the second rarely.
                all[at].extend(numbers(queue, at == 0 || at == 1 && tenth % 70 == 0));
            }
        }
        assert_eq!(hands.sets.get().count, 1);
        for numbers in &all {
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            let both: Vec<_> = numbers.iter().filter(|number| all[0].contains(number)).collect();
            assert!(both.len() > 33 && both.contains(&&(1 << SET_SHIFT)), "{all:?}");
        }
    }

    #[test]
    fn a_frame_from_another_time_moves_nothing() {
        let hands = Hands::new();
        let mut queue = hands.queue();
        hands.run(&mut queue, 20, true);
        for stray in [hands.frame_ns() + 8_760 * HOUR, 1, hands.frame_ns() - HOUR, u64::MAX, 0] {
            queue.see(stray);
            queue.busy();
            assert_eq!(queue.mark(), None);
            queue.see(hands.frame_ns());
        }
        assert_eq!(hands.run(&mut queue, 20, true), [3, 4]);
        assert_eq!((hands.sets.get().count, queue.strays()), (0, 2));
        queue.see(u64::MAX);
        assert_eq!((queue.strays(), queue.end_ns()), (3, BEGIN + 4 * SECOND));
    }

    #[test]
    fn a_card_may_stamp_by_a_clock_of_its_own() {
        let hands = Hands::new();
        hands.frames_off_ns.store(77 * SECOND, Ordering::Relaxed);
        let mut queue = hands.queue();
        hands.run(&mut queue, 20, false);
        let card = |marks: Vec<i64>| {
            marks.into_iter().map(|mark| mark + 1_700_000_000).collect::<Vec<_>>()
        };
        assert_eq!(card(hands.run(&mut queue, 20, true)), [80, 81]);
        // The wall clock has no effect on it.
        hands.wall_off_ns.store(BEGIN - HOUR, Ordering::Relaxed);
        assert_eq!(card(hands.run(&mut queue, 20, true)), [82, 83]);
        assert_eq!(card(hands.run(&mut queue, 30, false)), [84]);
        assert_eq!(hands.sets.get().count, 0);
        // When the card's clock is set, consecutive frames show it.
        hands.frames_off_ns.store(77 * SECOND + HOUR, Ordering::Relaxed);
        assert_eq!(card(hands.run(&mut queue, 20, true))[1..], [3_686, 3_687, 3_688][..]);
        hands.frames_off_ns.store(77 * SECOND, Ordering::Relaxed);
        let marks = card(hands.run(&mut queue, 60, true));
        assert_eq!(marks[1..4], [91, 92, 93], "{marks:?}");
        assert_eq!(hands.sets.get().count, 2);
    }
}
