//! Slices: the packets and octets of a flow by interval, each in the interval of its own time.
//!
//! ```text
//!  intervals   |  0        |  1        |  2        |      aligned to 1970, `every_ns` long
//!  packets       p p   p p   p     p                      one flow
//!  slices        [  4    ]   [  2   ]                     at the first packet of another interval, the next mark, or the end
//! ```
//!
//! Unlike a part (parts.rs), a slice leaves the entry as it is: it is the difference to what earlier slices had. So
//! flows can be sliced and cut at different times.
//!
//! Invariant: the slices of a flow add up to its record, and depend on its own packets and on the marks alone.

use crate::{FlowRecord, Slice};

/// Packets and octets of both directions.
pub(crate) type Counted = [[u64; 2]; 2];

/// What slices had of a live flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sliced {
    /// The interval of the packets that no slice has.
    from_ns: u64,
    /// What earlier slices had of the entry's counters. Cuts clear those, so it may be less than zero, modulo 2^64.
    counted: Counted,
    /// Whether there were slices.
    any: bool,
}

/// Most bytes that a flow takes more if it is sliced.
pub const SLICE_BYTES: u64 = size_of::<Sliced>() as u64;

impl Sliced {
    /// A flow whose first packet has this time.
    pub(crate) fn new(ts_ns: u64, every_ns: u64) -> Self {
        Self { from_ns: ts_ns - ts_ns % every_ns, counted: [[0; 2]; 2], any: false }
    }

    /// A stored flow with these counters, of which slices have all.
    pub(crate) fn restored(last_ns: u64, counted: Counted, every_ns: u64) -> Self {
        Self { counted, any: true, ..Self::new(last_ns, every_ns) }
    }

    /// Whether a time is in the interval.
    #[inline(always)]
    pub(crate) fn has(&self, ts_ns: u64, every_ns: u64) -> bool {
        ts_ns.wrapping_sub(self.from_ns) < every_ns
    }

    /// Whether the interval is over at this time.
    #[inline(always)]
    pub(crate) fn is_over(&self, now_ns: u64, every_ns: u64) -> bool {
        now_ns >= self.from_ns.saturating_add(every_ns)
    }

    /// Whether there were slices.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// What the next slice of a flow with this first packet has.
    pub(crate) fn next(&self, flow_first_ns: u64) -> Slice {
        if self.any { Slice::Later { flow_first_ns } } else { Slice::First }
    }

    /// The packets and octets that no slice has, if there are any; `all` are the entry's counters.
    #[inline(always)]
    pub(crate) fn since(&self, all: &Counted) -> Option<Counted> {
        let mut since = *all;
        for (own, counted) in since.as_flattened_mut().iter_mut().zip(self.counted.as_flattened()) {
            *own = own.wrapping_sub(*counted);
        }
        (since[0] != [0; 2]).then_some(since)
    }

    /// A slice was reported that had the counters up to `all`.
    pub(crate) fn add(&mut self, all: Counted) {
        (self.counted, self.any) = (all, true);
    }

    /// The next packets are of another interval.
    pub(crate) fn turn_to(&mut self, ts_ns: u64, every_ns: u64) {
        self.from_ns = ts_ns - ts_ns % every_ns;
    }

    /// The entry's counters, which were `all`, are cleared.
    pub(crate) fn clear(&mut self, all: &Counted) {
        for (own, all) in self.counted.as_flattened_mut().iter_mut().zip(all.as_flattened()) {
            *own = own.wrapping_sub(*all);
        }
    }

    /// Makes the slice of the record of a flow so far. Its times are those of the interval, as far as the flow had begun
    /// and not ended.
    pub(crate) fn cut_out(&self, record: &mut FlowRecord, counted: Counted, every_ns: u64) {
        [record.packets, record.octets] = counted;
        let to_ns = self.from_ns.saturating_add(every_ns - 1);
        record.first_ns = record.first_ns.clamp(self.from_ns, to_ns);
        record.last_ns = record.last_ns.clamp(record.first_ns, to_ns);
    }
}
