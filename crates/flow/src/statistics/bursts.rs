//! Bursts of a direction, and active times of a flow: packets without a long gap between them.
//!
//! ```text
//! packets    p p  p        p  p p p          p p        one direction, gaps of less than a second within a run
//! runs      [ first ]     [   burst  ]      [last]      a run of three packets and more is a burst
//! ```
//!
//! The first and the last run are stored separately and with any number of packets, because packets of an earlier or a later
//! piece of the flow may belong to them. So pieces of a flow are joined to what the whole flow has.

use super::moments::Moments;
use crate::fields::Fields;

/// Fewer packets are no burst.
pub const BURST_PACKETS: u64 = 3;
/// Between two packets of a burst is less time, nanoseconds.
pub const BURST_GAP_NS: u64 = 1_000_000_000;
/// Most bursts of a direction in a record: the first ones.
pub const BURSTS_MOST: usize = 15;
/// A longer gap between two packets of a flow is an idle time, nanoseconds.
pub const IDLE_NS: u64 = 5_000_000_000;

/// Packets of a direction without a gap of [`BURST_GAP_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Burst {
    /// The time of the first packet, nanoseconds since 1970.
    pub start_ns: u64,
    /// The time of the last one.
    pub end_ns: u64,
    /// Their number.
    pub packets: u64,
    /// Their octets of layer 3.
    pub octets: u64,
}

impl Burst {
    /// Bytes of [`Burst::save`].
    pub(super) const SAVED: usize = 32;

    pub(super) const NONE: Self = Self { start_ns: 0, end_ns: 0, packets: 0, octets: 0 };

    /// The time from the first to the last packet, microseconds; 0 if a clock was set back between them.
    pub const fn duration_us(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns) / 1_000
    }

    pub(super) fn is_burst(&self) -> bool {
        self.packets >= BURST_PACKETS
    }

    fn extend(&mut self, later: &Self) {
        self.end_ns = later.end_ns;
        self.packets = self.packets.saturating_add(later.packets);
        self.octets = self.octets.saturating_add(later.octets);
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        for number in [self.start_ns, self.end_ns, self.packets, self.octets] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(super) fn load(from: &mut Fields<'_>) -> Self {
        let mut next = || u64::from_le_bytes(from.take());
        Self { start_ns: next(), end_ns: next(), packets: next(), octets: next() }
    }
}

/// The packets of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Side {
    pub(super) lengths: Moments,
    /// Nanoseconds between two packets, in the order of arrival.
    pub(super) gaps: Moments,
    /// Gaps below zero, which count as zero.
    pub(super) negative: u64,
    /// The earliest and the latest time of a packet. Without packets the earliest is the largest number.
    pub(super) times: [u64; 2],
    /// The first run, and the last one if that is another. Without packets: none.
    pub(super) first: Burst,
    pub(super) last: Burst,
}

impl Side {
    pub(super) const SAVED: usize = 2 * Moments::SAVED + 8 + 2 * 8 + 2 * Burst::SAVED;

    fn extend_times(&mut self, [earliest, latest]: [u64; 2]) {
        self.times = [self.times[0].min(earliest), self.times[1].max(latest)];
    }

    /// The times of the earliest and the latest packet.
    pub(super) fn times(&self) -> Option<[u64; 2]> {
        (self.lengths.count() > 0).then_some(self.times)
    }

    fn latest(&mut self) -> &mut Burst {
        if self.last.packets > 0 { &mut self.last } else { &mut self.first }
    }

    /// Counts the gap to a packet of this time, and returns it.
    fn gap_to(&mut self, ts_ns: u64) -> u64 {
        let before_ns = self.latest().end_ns;
        self.negative = self.negative.saturating_add(u64::from(ts_ns < before_ns));
        let gap_ns = ts_ns.saturating_sub(before_ns);
        self.gaps.add(gap_ns);
        gap_ns
    }

    /// Adds a run behind a gap. Returns a burst that is over.
    fn follow(&mut self, run: &Burst, gap_ns: u64) -> Option<Burst> {
        if gap_ns < BURST_GAP_NS {
            self.latest().extend(run);
            return None;
        }
        self.replace_last(*run)
    }

    fn replace_last(&mut self, run: Burst) -> Option<Burst> {
        Some(std::mem::replace(&mut self.last, run)).filter(Burst::is_burst)
    }

    /// Adds a later piece; `own` and `others` are the bursts between the first and the last run of both.
    pub(super) fn join(&mut self, later: &Self, own: &mut Vec<Burst>, others: &[Burst]) {
        if later.first.packets == 0 {
            return;
        }
        if self.first.packets == 0 {
            *self = *later;
            own.clear();
            own.extend_from_slice(others);
            return;
        }
        self.lengths.merge(&later.lengths);
        self.extend_times(later.times);
        let gap_ns = self.gap_to(later.first.start_ns);
        self.gaps.merge(&later.gaps);
        self.negative = self.negative.saturating_add(later.negative);
        own.extend(self.follow(&later.first, gap_ns));
        if later.last.packets > 0 {
            own.extend(self.replace_last(later.last));
            own.extend_from_slice(others);
        }
        own.truncate(BURSTS_MOST);
    }

    /// All bursts, `between` being those between the first and the last run.
    pub(super) fn bursts<'a>(
        &'a self,
        between: &'a [Burst],
        is_cut: bool,
    ) -> impl Iterator<Item = &'a Burst> {
        let last = (!is_cut).then_some(&self.last);
        let ends = |run: &&Burst| run.is_burst();
        let first = std::iter::once(&self.first).filter(ends);
        first.chain(between).chain(last.into_iter().filter(ends)).take(BURSTS_MOST)
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.lengths.save(out);
        self.gaps.save(out);
        out.extend_from_slice(&self.negative.to_le_bytes());
        self.times.iter().for_each(|time| out.extend_from_slice(&time.to_le_bytes()));
        self.first.save(out);
        self.last.save(out);
    }

    pub(super) fn load(from: &mut Fields<'_>) -> Self {
        Self {
            lengths: Moments::load(from),
            gaps: Moments::load(from),
            negative: u64::from_le_bytes(from.take()),
            times: [u64::from_le_bytes(from.take()), u64::from_le_bytes(from.take())],
            first: Burst::load(from),
            last: Burst::load(from),
        }
    }
}

/// Active and idle times of a flow, over the packets of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Activity {
    /// Times of the first and the latest packet, in the order of arrival.
    pub(super) first_ns: u64,
    pub(super) latest_ns: u64,
    /// The length of the first active time, and of the last one if there was an idle time between.
    pub(super) first_active_ns: u64,
    pub(super) last_active_ns: u64,
    /// Active times between the first and the last one.
    pub(super) between: Moments,
    pub(super) idle: Moments,
    /// Whether there was a packet.
    pub(super) any: bool,
}

impl Activity {
    pub(super) const SAVED: usize = 4 * 8 + 2 * Moments::SAVED + 1;

    /// Adds an active time behind a gap.
    fn follow(&mut self, gap_ns: u64, active_ns: u64) {
        if gap_ns <= IDLE_NS {
            let own =
                if self.is_parted() { &mut self.last_active_ns } else { &mut self.first_active_ns };
            *own = own.saturating_add(gap_ns).saturating_add(active_ns);
            return;
        }
        self.end_last();
        self.idle.add(gap_ns);
        self.last_active_ns = active_ns;
    }

    /// Whether there was an idle time.
    fn is_parted(&self) -> bool {
        self.idle.count() > 0
    }

    fn end_last(&mut self) {
        if self.is_parted() {
            self.between.add(self.last_active_ns);
        }
    }

    /// Adds a later piece.
    pub(super) fn join(&mut self, later: &Self) {
        if !later.any {
            return;
        }
        if !self.any {
            *self = *later;
            return;
        }
        let gap_ns = later.first_ns.saturating_sub(self.latest_ns);
        self.latest_ns = later.latest_ns;
        self.follow(gap_ns, later.first_active_ns);
        if later.is_parted() {
            self.end_last();
            self.between.merge(&later.between);
            self.idle.merge(&later.idle);
            self.last_active_ns = later.last_active_ns;
        }
    }

    /// All active times, nanoseconds.
    pub(super) fn active(&self) -> Moments {
        let mut all = self.between;
        if self.any {
            all.add(self.first_active_ns);
        }
        if self.is_parted() {
            all.add(self.last_active_ns);
        }
        all
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let times = [self.first_ns, self.latest_ns, self.first_active_ns, self.last_active_ns];
        times.iter().for_each(|time| out.extend_from_slice(&time.to_le_bytes()));
        self.between.save(out);
        self.idle.save(out);
        out.push(self.any.into());
    }

    pub(super) fn load(from: &mut Fields<'_>) -> Self {
        let mut next = || u64::from_le_bytes(from.take());
        let [first_ns, latest_ns, first_active_ns, last_active_ns] = [(); 4].map(|()| next());
        let (between, idle) = (Moments::load(from), Moments::load(from));
        let [any] = from.take();
        let any = any > 0;
        Self { first_ns, latest_ns, first_active_ns, last_active_ns, between, idle, any }
    }
}
