//! Where the rows of a view come from.
//!
//! ```text
//!   store: complete files                        │ memory of the page
//!  ──────────────┬───────────────┬───────────────┼──────────────▶ now
//!             file begins     file begins      split: the last but one file that is complete ends
//! ```
//!
//! A view whose time the page has kept as a whole is of memory alone; an earlier one is of the store until the split, and of
//! memory from it on. A part of each live flow and a slice end at the split, so no packet is in both. If memory does not
//! reach back to the split, there is a gap between both.

use super::flows::Flows;
use super::pace::SECOND_NS;
use super::stored::Files;
use super::tables::Times;
use super::view::View;

/// A file is complete so many seconds after its end.
const LAG_S: u64 = 10;
/// Steps of a chart.
const STEPS: u64 = 120;
/// Views of the present that the store answers begin at a multiple of this, and of a part in [`STEPS`] of their length, so
/// that questions stay the same for a while.
const MINUTE_S: u64 = 60;
const MS_NS: u64 = 1_000_000;

/// The sources of a view.
#[derive(Debug)]
pub(super) struct Sources {
    /// The time of the view, nanoseconds.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    /// The length of a step of its chart.
    pub(super) step_s: u64,
    /// Begin and end of what the store answers, milliseconds since 1970.
    pub(super) stored: Option<[i64; 2]>,
    /// Whether rows of memory are in it, and their times.
    pub(super) has_memory: bool,
    pub(super) memory: Times,
    /// The time of which rows are in neither, nanoseconds.
    pub(super) gap: Option<[u64; 2]>,
    /// Whether it moves on with the present.
    slides: bool,
    /// At multiples of this, nanoseconds, the store may end and memory begin; memory is complete from the second time on.
    joints: [u64; 2],
}

/// The times of a page, seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) present_s: u64,
    /// The first second that memory can have.
    pub(super) begin_s: u64,
    /// The times of the store's files, if the page may ask it.
    pub(super) files: Option<Files>,
}

impl Sources {
    /// The sources of a view.
    pub(super) fn new(view: &View, flows: &Flows, clock: Clock) -> Self {
        let Clock { present_s, begin_s, files } = clock;
        let ns = |seconds: u64| seconds.saturating_mul(SECOND_NS);
        let until_s = view.until.map_or(present_s, |until| until.min(present_s));
        let from_s = view.from.unwrap_or(until_s.saturating_sub(view.span.1)).min(until_s);
        let step_s = ((until_s - from_s) / STEPS).max(1);
        let is_live = view.until.is_none();
        let of_memory = |from_s: u64| {
            let from_ns = ns(from_s);
            // Flows that end while this is rendered belong to the present, too.
            let until_ns = if is_live { u64::MAX } else { ns(until_s) };
            let slices = flows.slices_in(from_ns, until_ns);
            Times { ended: (from_ns, until_ns), slices, begun_ns: 0, is_live }
        };
        let memory = of_memory(from_s);
        let own = Self {
            from_ns: memory.slices.0,
            until_ns: memory.slices.1.min(ns(until_s)),
            step_s,
            stored: None,
            has_memory: true,
            memory,
            gap: None,
            slides: view.from.is_none() && is_live,
            joints: [u64::MAX; 2],
        };
        let kept_s = begin_s.max(flows.complete_after_ns.div_ceil(SECOND_NS));
        let Some(files) = files.filter(|_| from_s < kept_s) else { return own };
        let step_s = step_s.next_multiple_of(MINUTE_S);
        let from_s = match (view.from, is_live) {
            (None, true) => from_s / step_s * step_s,
            _ => from_s,
        };
        // A slow worker's records of a file's time may be in the next file, which must be complete, too.
        let Files { rotate_s, joint_s } = files;
        let joint_s = joint_s.max(1);
        let split_s = present_s.saturating_sub(LAG_S + rotate_s) / joint_s * joint_s;
        let split_s = split_s.max(begin_s);
        if split_s <= from_s {
            return own;
        }
        let memory_s = split_s.max(kept_s);
        let has_memory = is_live || until_s > memory_s;
        let to_s = until_s.min(split_s);
        let gap_s = [split_s, memory_s.min(until_s)];
        // A connection that began before the split is one of the store.
        let memory = Times { begun_ns: ns(memory_s), ..of_memory(memory_s) };
        let ms = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Self {
            from_ns: ns(from_s),
            until_ns: ns(if has_memory { until_s } else { to_s }),
            step_s,
            stored: Some([ms(from_s), ms(to_s)]),
            has_memory,
            memory,
            gap: (gap_s[0] < gap_s[1]).then(|| gap_s.map(ns)),
            joints: [joint_s, kept_s].map(ns),
            ..own
        }
    }

    /// The times of rows in memory.
    pub(super) fn in_memory(&self) -> Option<Times> {
        self.has_memory.then_some(self.memory)
    }

    /// Whether the store's answer about another window, milliseconds, may stand for its own until that is known: it ends where
    /// memory may begin, and begins at the same time or, if the view moves on, a little earlier.
    pub(super) fn may_be(&self, [from, to]: [i64; 2]) -> bool {
        let Some([own_from, own_to]) = self.stored else { return false };
        let [joint_ns, kept_ns] = self.joints;
        let (ended_ms, moved_ms) = (own_to - to, own_from - from);
        let joint_ms = (joint_ns / MS_NS).cast_signed();
        let ends = ended_ms == 0
            || (1..=2 * joint_ms).contains(&ended_ms) && to % joint_ms == 0 && ns_of(to) >= kept_ns;
        let step_ms = (self.step_s * 1_000).cast_signed();
        let begins = moved_ms == 0 || self.slides && (0..=step_ms + ended_ms).contains(&moved_ms);
        ends && begins
    }

    /// The times of rows in memory if the store has answered about this window, for which [`Self::may_be`] is true.
    pub(super) fn in_memory_since(&self, flows: &Flows, [_, to]: [i64; 2]) -> Option<Times> {
        if self.stored.is_some_and(|own| own[1] == to) {
            return self.in_memory();
        }
        let (from_ns, until_ns) = (ns_of(to), self.memory.ended.1);
        let slices = flows.slices_in(from_ns, until_ns);
        Some(Times { ended: (from_ns, until_ns), slices, begun_ns: from_ns, ..self.memory })
    }
}

/// A time of the store, nanoseconds.
pub(super) fn ns_of(ms: i64) -> u64 {
    ms.max(0).unsigned_abs().saturating_mul(MS_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sources of a view at 10,000 s, and the times in seconds: of the store, of memory, and of the gap. A run that began
    /// at 1,000 s writes files of 300 s; all flows that ended after `kept_s` are in memory.
    fn sources(query: &str, kept_s: u64) -> (Option<[i64; 2]>, Option<u64>, Option<[u64; 2]>) {
        let (mut flows, _) = Flows::new(10 * SECOND_NS, 1);
        flows.complete_after_ns = kept_s * SECOND_NS;
        let files = Some(Files { rotate_s: 300, joint_s: 300 });
        let clock = Clock { present_s: 10_000, begin_s: 1_000, files };
        let Sources { stored, has_memory, memory, gap, .. } =
            Sources::new(&View::parse(query).unwrap(), &flows, clock);
        let stored = stored.map(|window| window.map(|ms| ms / 1_000));
        let gap = gap.map(|gap| gap.map(|ns| ns / SECOND_NS));
        if stored.is_some() && has_memory {
            assert_eq!(memory.begun_ns, memory.ended.0);
        }
        (stored, has_memory.then_some(memory.ended.0 / SECOND_NS), gap)
    }

    #[test]
    fn a_view_is_of_the_store_until_the_split_and_of_memory_behind() {
        assert_eq!(sources("", 0), (None, Some(9_700), None));
        assert_eq!(sources("span=1h", 0), (None, Some(6_400), None));
        let store = Some([6_360, 9_600]);
        assert_eq!(sources("span=1h", 9_000), (store, Some(9_600), None));
        assert_eq!(sources("from=500&until=800", 0), (Some([500, 800]), None, None));
        assert_eq!(sources("from=500&until=2000", 0), (Some([500, 2_000]), None, None));
    }

    #[test]
    fn an_answer_about_the_window_before_may_stand_for_a_view_that_moves_on() {
        let (mut flows, _) = Flows::new(10 * SECOND_NS, 1);
        flows.complete_after_ns = 9_200 * SECOND_NS;
        let files = Some(Files { rotate_s: 300, joint_s: 300 });
        let clock = Clock { present_s: 10_000, begin_s: 1_000, files };
        let of = |query: &str| Sources::new(&View::parse(query).unwrap(), &flows, clock);
        let may_be = |query: &str, window: [i64; 2]| of(query).may_be(window.map(|s| s * 1_000));
        // Its own is from 6,360 until 9,600.
        for (window, expected) in [
            ([6_300, 9_600], true),
            ([6_000, 9_300], true),
            ([6_360, 9_600], true),
            ([3_000, 9_600], false),
            ([6_420, 9_600], false),
            ([5_700, 9_000], false),
            ([6_360, 9_587], false),
        ] {
            assert_eq!(may_be("span=1h", window), expected, "{window:?}");
        }
        let own = of("span=1h");
        let memory = own.in_memory_since(&flows, [6_000_000, 9_300_000]).unwrap();
        assert_eq!((memory.ended.0, memory.begun_ns), (9_300 * SECOND_NS, 9_300 * SECOND_NS));
        // One with a fixed begin does not move.
        assert!(!may_be("from=6360&until=9700", [6_300, 9_600]));
        assert!(may_be("from=6360&until=9700", [6_360, 9_300]));
        assert!(!of("").may_be([9_400_000, 9_600_000]));
    }

    #[test]
    fn a_time_that_neither_has_is_a_gap_and_the_present_is_shown() {
        assert_eq!(sources("", 9_900), (None, Some(9_700), None));
        let store = Some([6_360, 9_600]);
        let found = sources("span=1h", 9_900);
        assert_eq!(found, (store, Some(9_900), Some([9_600, 9_900])));
        let earlier = sources("from=6000&until=9800", 9_900);
        assert_eq!(earlier, (Some([6_000, 9_600]), None, Some([9_600, 9_800])));
    }
}
