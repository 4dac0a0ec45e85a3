//! Where the rows of a view come from.
//!
//! ```text
//!   store: complete files                        │ memory of the page
//!  ──────────────┬───────────────┬───────────────┼──────────────▶ now
//!             file begins     file begins      split: the last but one file that is complete ends
//! ```
//!
//! A view whose time the page has kept as a whole is of memory alone; an earlier one is of the store until the split, and of
//! memory from it on. A part of each live flow and a slice end at the split, so no packet is in both.

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
    /// Whether the view ends early, because later rows are in neither.
    pub(super) is_cut: bool,
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
            Times { ended: (from_ns, until_ns), slices, is_live }
        };
        let memory = of_memory(from_s);
        let own = Self {
            from_ns: memory.slices.0,
            until_ns: memory.slices.1.min(ns(until_s)),
            step_s,
            stored: None,
            has_memory: true,
            memory,
            is_cut: false,
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
        let split_s = split_s.max(begin_s).max(from_s);
        let has_later = is_live || until_s > split_s;
        let has_memory = has_later && kept_s <= split_s;
        let to_s = until_s.min(split_s);
        let ms = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Self {
            from_ns: ns(from_s),
            until_ns: ns(if has_memory { until_s } else { to_s }),
            step_s,
            stored: Some([ms(from_s), ms(to_s)]),
            has_memory,
            memory: of_memory(split_s),
            is_cut: has_later && !has_memory,
        }
    }
}
