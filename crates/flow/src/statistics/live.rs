//! The sums of a live flow, in four cache lines: what every packet changes. What follows from it is computed for records, and
//! what few packets change is elsewhere ([`Rare`]).
//!
//! ```text
//! | activity | initiator's side | other side |     32, 88 and 88 bytes
//! ```

use super::bursts::{Activity, BURST_GAP_NS, Burst, IDLE_NS, Side};
use super::chains::Chain;
use super::moments::Moments;
use super::value::Sums;
use crate::pool::Pool;

/// A sum of squares, of 16 bytes with the alignment of 8.
#[derive(Clone, Copy, Debug, Default)]
struct Squares([u64; 2]);

impl Squares {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        let sum = self.get().saturating_add(u128::from(value) * u128::from(value));
        *self = Self::of(sum);
    }

    const fn of(sum: u128) -> Self {
        Self([(sum >> 64) as u64, sum as u64])
    }

    #[inline(always)]
    const fn get(self) -> u128 {
        (self.0[0] as u128) << 64 | self.0[1] as u128
    }
}

/// The packets of a direction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct LiveSide {
    count: u64,
    octets: u64,
    octets_squares: Squares,
    octets_most: u32,
    octets_least: u32,
    /// Times of the first and the latest packet, in the order of arrival.
    first_ns: u64,
    latest_ns: u64,
    gap_squares: Squares,
    gap_least: u64,
    gap_most: u64,
}

/// The runs of a direction, once it has two.
#[derive(Clone, Copy, Debug)]
struct Runs {
    /// The first one, which is over.
    first: Burst,
    /// When the last one began, and packets and octets before it.
    before: Burst,
}

/// What few packets change, in five cache lines: the runs of each direction, idle times, times between them, the rest.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Rare {
    runs: [Runs; 2],
    idle: Moments,
    /// Gaps below zero.
    negative: [u64; 2],
    between: Moments,
    /// What the sum of gaps has beyond the time from the first to the latest packet: the steps back.
    beyond_ns: [u64; 2],
    /// Of each direction: the earliest time behind a gap below zero, and the latest one before.
    times: [[u64; 2]; 2],
    /// The first active time, once there was an idle time.
    first_active_ns: u64,
    /// Bursts between the first and the last run.
    pub(super) bursts: [Chain; 2],
}

impl Rare {
    pub(super) const NONE: Self = Self {
        runs: [Runs { first: Burst::NONE, before: Burst::NONE }; 2],
        idle: Moments::NONE,
        negative: [0; 2],
        between: Moments::NONE,
        beyond_ns: [0; 2],
        times: [[u64::MAX, 0]; 2],
        first_active_ns: 0,
        bursts: [Chain::NONE; 2],
    };
}

/// The sums of a live flow.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Live {
    /// The position of what few packets change, or 0.
    rare: u32,
    /// Bits of the sides whose bursts had no room.
    cut: u8,
    /// Times of the first and the latest packet of both directions, in the order of arrival.
    first_ns: u64,
    latest_ns: u64,
    /// The length of the latest active time.
    active_ns: u64,
    sides: [LiveSide; 2],
}

impl LiveSide {
    const NONE: Self = Self {
        count: 0,
        octets: 0,
        octets_squares: Squares([0; 2]),
        octets_most: 0,
        octets_least: u32::MAX,
        first_ns: 0,
        latest_ns: 0,
        gap_squares: Squares([0; 2]),
        gap_least: u64::MAX,
        gap_most: 0,
    };

    #[inline(always)]
    fn count(&mut self, ts_ns: u64, octets: u32) {
        self.count = self.count.saturating_add(1);
        self.octets = self.octets.saturating_add(octets.into());
        self.octets_squares.add(octets.into());
        self.octets_least = self.octets_least.min(octets);
        self.octets_most = self.octets_most.max(octets);
        self.latest_ns = ts_ns;
    }

    #[inline(always)]
    fn add_gap(&mut self, gap_ns: u64) {
        self.gap_squares.add(gap_ns);
        self.gap_least = self.gap_least.min(gap_ns);
        self.gap_most = self.gap_most.max(gap_ns);
    }

    /// All packets as one run.
    fn run(&self) -> Burst {
        Burst {
            start_ns: self.first_ns,
            end_ns: self.latest_ns,
            packets: self.count,
            octets: self.octets,
        }
    }
}

impl Live {
    pub(super) const NONE: Self = Self {
        rare: 0,
        cut: 0,
        first_ns: 0,
        latest_ns: 0,
        active_ns: 0,
        sides: [LiveSide::NONE; 2],
    };

    /// Packets of both directions.
    #[inline(always)]
    fn packets(&self) -> u64 {
        self.sides[0].count.saturating_add(self.sides[1].count)
    }

    /// What few packets change, if any did.
    pub(super) fn rare<'a>(&self, all: &'a Pool<Rare>) -> Option<&'a Rare> {
        all.get(self.rare)
    }

    #[inline(never)]
    pub(super) fn rare_mut<'a>(&mut self, all: &'a mut Pool<Rare>) -> &'a mut Rare {
        if self.rare == 0 {
            self.rare = all.add(Rare::NONE);
        }
        &mut all[self.rare]
    }

    /// [`Live::rare`], to change it.
    pub(super) fn rare_of<'a>(&self, all: &'a mut Pool<Rare>) -> Option<&'a mut Rare> {
        all.get_mut(self.rare)
    }

    /// Gives back what few packets change.
    pub(super) fn release(&mut self, all: &mut Pool<Rare>) {
        all.release(&mut self.rare);
    }

    /// Counts a packet. Returns a burst that is over, unless it is the first run.
    #[inline(always)]
    pub(super) fn count(
        &mut self,
        number: usize,
        ts_ns: u64,
        octets: u32,
        rares: &mut Pool<Rare>,
    ) -> Option<Burst> {
        let before = self.packets();
        let mut burst = None;
        let side = &mut self.sides[number];
        let earlier = side.run();
        side.count(ts_ns, octets);
        if earlier.packets == 0 {
            side.first_ns = ts_ns;
        } else {
            let gap_ns = ts_ns.saturating_sub(earlier.end_ns);
            side.add_gap(gap_ns);
            if ts_ns < earlier.end_ns {
                let rare = self.rare_mut(rares);
                rare.negative[number] = rare.negative[number].saturating_add(1);
                let [earliest, latest] = &mut rare.times[number];
                (*earliest, *latest) = ((*earliest).min(ts_ns), (*latest).max(earlier.end_ns));
                let step_ns = earlier.end_ns - ts_ns;
                rare.beyond_ns[number] = rare.beyond_ns[number].saturating_add(step_ns);
            } else if gap_ns >= BURST_GAP_NS {
                burst = self.begin_run(number, &earlier, ts_ns, rares);
            }
        }
        self.follow(before == 0, ts_ns, rares);
        burst
    }

    /// A run of a direction begins; `earlier` are all packets before. Returns the run before if it is a burst, and not the
    /// first run.
    #[cold]
    fn begin_run(
        &mut self,
        side: usize,
        earlier: &Burst,
        ts_ns: u64,
        rares: &mut Pool<Rare>,
    ) -> Option<Burst> {
        let rare = self.rare_mut(rares);
        let over = match rare.runs[side].first.packets {
            0 => {
                rare.runs[side].first = *earlier;
                None
            }
            _ => Some(rare.last(side, earlier)).filter(Burst::is_burst),
        };
        rare.runs[side].before = Burst { start_ns: ts_ns, ..*earlier };
        over
    }

    /// Continues or begins an active time.
    #[inline(always)]
    fn follow(&mut self, is_first: bool, ts_ns: u64, rares: &mut Pool<Rare>) {
        if is_first {
            (self.first_ns, self.latest_ns) = (ts_ns, ts_ns);
            return;
        }
        let gap_ns = ts_ns.saturating_sub(self.latest_ns);
        self.latest_ns = ts_ns;
        if gap_ns <= IDLE_NS {
            self.active_ns = self.active_ns.saturating_add(gap_ns);
            return;
        }
        let active_ns = std::mem::take(&mut self.active_ns);
        let rare = self.rare_mut(rares);
        match rare.idle.count() {
            0 => rare.first_active_ns = active_ns,
            _ => rare.between.add(active_ns),
        }
        rare.idle.add(gap_ns);
    }

    /// The bursts of a direction had no room.
    pub(super) fn cut(&mut self, side: usize) {
        self.cut |= 1 << side;
    }

    pub(super) fn is_cut(&self, side: usize) -> bool {
        self.cut >> side & 1 != 0
    }

    /// The sums of a flow with this number of first packets at most, as records have them.
    pub(super) fn sums(&self, most: u8, rares: &Pool<Rare>) -> Sums {
        let rare = rares.get(self.rare).unwrap_or(&Rare::NONE);
        let side = |number: usize| {
            let own = &self.sides[number];
            let run = own.run();
            let is_parted = rare.runs[number].first.packets > 0;
            let [earliest, latest] = rare.times[number];
            let times = match own.count {
                0 => [u64::MAX, 0],
                _ => [earliest.min(own.first_ns), latest.max(own.latest_ns)],
            };
            Side {
                times,
                lengths: Moments {
                    squares: own.octets_squares.get(),
                    count: own.count,
                    sum: own.octets,
                    least: if own.count > 0 { own.octets_least.into() } else { u64::MAX },
                    most: own.octets_most.into(),
                },
                gaps: Moments {
                    squares: own.gap_squares.get(),
                    count: own.count.saturating_sub(1),
                    sum: sum_of_gaps(own, rare.beyond_ns[number]),
                    least: own.gap_least,
                    most: own.gap_most,
                },
                negative: rare.negative[number],
                first: if is_parted { rare.runs[number].first } else { run },
                last: if is_parted { rare.last(number, &run) } else { Burst::NONE },
            }
        };
        let is_parted = rare.idle.count() > 0;
        let activity = Activity {
            first_ns: self.first_ns,
            latest_ns: self.latest_ns,
            first_active_ns: if is_parted { rare.first_active_ns } else { self.active_ns },
            last_active_ns: if is_parted { self.active_ns } else { 0 },
            between: rare.between,
            idle: rare.idle,
            any: self.packets() > 0,
        };
        Sums { sides: [side(0), side(1)], activity, most, cut: self.cut }
    }

    /// The same sums of a live flow, without bursts. Sums that no packets have, of damaged bytes, may change.
    pub(super) fn of(sums: &Sums, rares: &mut Pool<Rare>) -> Self {
        let mut live = Self { cut: sums.cut, ..Self::NONE };
        let mut rare = Rare::NONE;
        for (number, side) in sums.sides.iter().enumerate() {
            let Side { lengths, gaps, negative, times, first, last } = side;
            let is_parted = last.packets > 0;
            let latest_ns = if is_parted { last.end_ns } else { first.end_ns };
            let octet = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            live.sides[number] = LiveSide {
                count: lengths.count,
                octets: lengths.sum,
                octets_squares: Squares::of(lengths.squares),
                octets_most: octet(lengths.most),
                octets_least: octet(lengths.least),
                first_ns: first.start_ns,
                latest_ns,
                gap_squares: Squares::of(gaps.squares),
                gap_least: gaps.least,
                gap_most: gaps.most,
            };
            (rare.negative[number], rare.times[number]) = (*negative, *times);
            rare.beyond_ns[number] = match latest_ns.checked_sub(first.start_ns) {
                Some(time_ns) => gaps.sum.saturating_sub(time_ns),
                None => gaps.sum.saturating_add(first.start_ns - latest_ns),
            };
            if is_parted {
                rare.runs[number].first = *first;
                rare.runs[number].before = Burst {
                    start_ns: last.start_ns,
                    end_ns: last.start_ns,
                    packets: lengths.count.saturating_sub(last.packets),
                    octets: lengths.sum.saturating_sub(last.octets),
                };
            }
        }
        let activity = &sums.activity;
        (live.first_ns, live.latest_ns) = (activity.first_ns, activity.latest_ns);
        let is_parted = activity.idle.count() > 0;
        live.active_ns = if is_parted { activity.last_active_ns } else { activity.first_active_ns };
        if is_parted {
            rare.first_active_ns = activity.first_active_ns;
            (rare.between, rare.idle) = (activity.between, activity.idle);
        }
        *live.rare_mut(rares) = rare;
        live
    }
}

/// The sum of the gaps of a direction, of which a step back is none; at most 2⁶⁴ - 1.
fn sum_of_gaps(side: &LiveSide, beyond_ns: u64) -> u64 {
    let sum = i128::from(side.latest_ns) - i128::from(side.first_ns) + i128::from(beyond_ns);
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}

impl Rare {
    /// The last run of a direction, of all its packets as one run.
    fn last(&self, side: usize, all: &Burst) -> Burst {
        let before = &self.runs[side].before;
        Burst {
            start_ns: before.start_ns,
            end_ns: all.end_ns,
            packets: all.packets.saturating_sub(before.packets),
            octets: all.octets.saturating_sub(before.octets),
        }
    }
}

// Four and five cache lines.
const _: () = assert!(size_of::<Live>() == 256);
const _: () = assert!(size_of::<Rare>() == 320);
