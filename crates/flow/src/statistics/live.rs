//! The sums of a live flow, in three cache lines: a packet changes the line of its direction, and the time of the flow's latest
//! packet ([`Start::latest_ns`](super::start::Start)). What follows from them is computed for records, and what few packets
//! change is elsewhere ([`Rare`]).
//!
//! ```text
//! | initiator's side | other side | when the flow, its sides and its active time began |
//! ```

use ringtap_base::prefetch_all;

use super::bursts::{Activity, BURST_GAP_NS, Burst, IDLE_NS, Side};
use super::chains::Chain;
use super::first::FirstPacket;
use super::moments::Moments;
use super::sums::Sums;
use crate::pool::Pool;

/// The packets of a direction.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct LiveSide {
    count: u64,
    octets: u64,
    /// The lower halves of the sums of squares; the upper ones are in [`Rare`].
    octets_squares: u64,
    gap_squares: u64,
    gap_least: u64,
    gap_most: u64,
    /// The time of the latest packet, in the order of arrival.
    latest_ns: u64,
    octets_most: u32,
    octets_least: u32,
}

/// The runs of a direction, once it has two.
#[derive(Clone, Copy, Debug)]
struct Runs {
    /// The first one, which is over.
    first: Burst,
    /// When the last one began, and packets and octets before it.
    before: Burst,
}

/// What few packets change, in six cache lines: the runs of each direction, idle times, times between them, the rest.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Rare {
    runs: [Runs; 2],
    idle: Moments,
    /// Gaps below zero.
    negative: [u64; 2],
    between: Moments,
    /// What the sum of gaps has beyond the time from the first to the latest packet: the steps back.
    beyond_ns: [i128; 2],
    /// Of each direction: the earliest time behind a gap below zero, and the latest one before.
    times: [[u64; 2]; 2],
    /// The first active time, once there was an idle time.
    first_active_ns: u64,
    /// Bursts between the first and the last run.
    pub(super) bursts: [Chain; 2],
    /// Of each direction: the upper halves of the sums of squares, of octets and of gaps.
    carries: [[u64; 2]; 2],
}

/// Which sum of squares.
const OCTETS: usize = 0;
const GAPS: usize = 1;

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
        carries: [[0; 2]; 2],
    };
}

/// The sums of a live flow.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Live {
    sides: [LiveSide; 2],
    /// The times of the first packet of each direction, and of both, in the order of arrival.
    first_ns: [u64; 2],
    began_ns: u64,
    /// When the latest active time began, and steps back since then.
    active_from_ns: u64,
    stepped_ns: u64,
    /// The position of what few packets change, or 0.
    rare: u32,
    /// Bits of the sides whose bursts had no room.
    cut: u8,
}

impl LiveSide {
    const NONE: Self = Self {
        count: 0,
        octets: 0,
        octets_squares: 0,
        gap_squares: 0,
        gap_least: u64::MAX,
        gap_most: 0,
        latest_ns: 0,
        octets_most: 0,
        octets_least: u32::MAX,
    };
}

impl Live {
    pub(super) const NONE: Self = Self {
        sides: [LiveSide::NONE; 2],
        first_ns: [0; 2],
        began_ns: 0,
        active_from_ns: 0,
        stepped_ns: 0,
        rare: 0,
        cut: 0,
    };

    /// Prefetches what the next packet changes.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch_all(&self.sides);
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

    /// Counts a packet; `latest_ns` is the time of the one before, of any direction. Returns a burst that is over, unless it
    /// is the first run.
    #[inline(always)]
    pub(super) fn count(
        &mut self,
        number: usize,
        ts_ns: u64,
        octets: u32,
        latest_ns: u64,
        rares: &mut Pool<Rare>,
    ) -> Option<Burst> {
        let side = &mut self.sides[number];
        let (packets, octets_before, before_ns) = (side.count, side.octets, side.latest_ns);
        side.count = side.count.saturating_add(1);
        side.octets = side.octets.saturating_add(octets.into());
        side.octets_least = side.octets_least.min(octets);
        side.octets_most = side.octets_most.max(octets);
        side.latest_ns = ts_ns;
        let gap_ns = ts_ns.saturating_sub(before_ns);
        let is_usual = packets > 0
            && ts_ns >= before_ns
            && gap_ns < BURST_GAP_NS
            && ts_ns >= latest_ns
            && ts_ns - latest_ns <= IDLE_NS;
        let square = u64::from(octets) * u64::from(octets);
        if add_square(&mut side.octets_squares, square) {
            self.carry(number, OCTETS, 1, rares);
        }
        if !is_usual {
            // Its start is in a line that other packets do not need.
            let start_ns = self.first_ns[number];
            let before = Burst { start_ns, end_ns: before_ns, packets, octets: octets_before };
            return self.count_unusual(number, ts_ns, &before, latest_ns, rares);
        }
        let side = &mut self.sides[number];
        side.gap_least = side.gap_least.min(gap_ns);
        side.gap_most = side.gap_most.max(gap_ns);
        if add_square(&mut side.gap_squares, gap_ns * gap_ns) {
            self.carry(number, GAPS, 1, rares);
        }
        None
    }

    /// Counts one of the first packets; `latest_ns` is the time of the one before.
    #[inline(always)]
    pub(super) fn count_first(
        &mut self,
        packet: &FirstPacket,
        latest_ns: &mut u64,
        rares: &mut Pool<Rare>,
    ) -> Option<Burst> {
        let (side, ts_ns) = (usize::from(packet.side & 1), packet.ts_ns());
        let before_ns = std::mem::replace(latest_ns, ts_ns);
        self.count(side, ts_ns, packet.octets.into(), before_ns, rares)
    }

    /// Adds to the upper half of a sum of squares, which keeps the largest number.
    #[cold]
    fn carry(&mut self, number: usize, which: usize, more: u64, rares: &mut Pool<Rare>) {
        let upper = &mut self.rare_mut(rares).carries[number][which];
        if let Some(sum) = upper.checked_add(more) {
            *upper = sum;
            return;
        }
        *upper = u64::MAX;
        let side = &mut self.sides[number];
        match which {
            OCTETS => side.octets_squares = u64::MAX,
            _ => side.gap_squares = u64::MAX,
        }
    }

    /// Counts what a packet changes besides lengths, if it is the first one of its direction, behind a long gap, or earlier
    /// than the packet before it; gaps are those of its direction and of the flow. `before` are the packets of its direction
    /// before.
    #[inline(never)]
    fn count_unusual(
        &mut self,
        number: usize,
        ts_ns: u64,
        before: &Burst,
        latest_ns: u64,
        rares: &mut Pool<Rare>,
    ) -> Option<Burst> {
        if before.packets == 0 {
            self.first_ns[number] = ts_ns;
            if self.sides[1 - number].count == 0 {
                (self.began_ns, self.active_from_ns) = (ts_ns, ts_ns);
                return None;
            }
            self.follow(ts_ns, latest_ns, rares);
            return None;
        }
        let side = &mut self.sides[number];
        let gap_ns = ts_ns.saturating_sub(before.end_ns);
        side.gap_least = side.gap_least.min(gap_ns);
        side.gap_most = side.gap_most.max(gap_ns);
        let square = u128::from(gap_ns) * u128::from(gap_ns);
        let carry = add_square(&mut side.gap_squares, square as u64);
        let upper = (square >> 64) as u64 + u64::from(carry);
        if upper > 0 {
            self.carry(number, GAPS, upper, rares);
        }
        let mut burst = None;
        if ts_ns < before.end_ns {
            let rare = self.rare_mut(rares);
            rare.negative[number] = rare.negative[number].saturating_add(1);
            let [earliest, latest] = &mut rare.times[number];
            (*earliest, *latest) = ((*earliest).min(ts_ns), (*latest).max(before.end_ns));
            rare.beyond_ns[number] += i128::from(before.end_ns - ts_ns);
        } else if gap_ns >= BURST_GAP_NS {
            burst = self.begin_run(number, before, ts_ns, rares);
        }
        self.follow(ts_ns, latest_ns, rares);
        burst
    }

    /// A run of a direction begins; `earlier` are all packets before. Returns the run before if it is a burst, and not the
    /// first run.
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
    fn follow(&mut self, ts_ns: u64, latest_ns: u64, rares: &mut Pool<Rare>) {
        if ts_ns < latest_ns {
            // The active time fits, so it does not matter if these do not.
            self.stepped_ns = self.stepped_ns.wrapping_add(latest_ns - ts_ns);
            return;
        }
        let gap_ns = ts_ns - latest_ns;
        if gap_ns <= IDLE_NS {
            return;
        }
        let active_ns = self.active_ns(latest_ns);
        (self.active_from_ns, self.stepped_ns) = (ts_ns, 0);
        let rare = self.rare_mut(rares);
        match rare.idle.count() {
            0 => rare.first_active_ns = active_ns,
            _ => rare.between.add(active_ns),
        }
        rare.idle.add(gap_ns);
    }

    /// The length of the latest active time.
    fn active_ns(&self, latest_ns: u64) -> u64 {
        latest_ns.wrapping_sub(self.active_from_ns).wrapping_add(self.stepped_ns)
    }

    /// The bursts of a direction had no room.
    pub(super) fn cut(&mut self, side: usize) {
        self.cut |= 1 << side;
    }

    pub(super) fn is_cut(&self, side: usize) -> bool {
        self.cut >> side & 1 != 0
    }

    /// The sums of a flow with this time of the latest packet, as records have them.
    pub(super) fn sums(&self, latest_ns: u64, rares: &Pool<Rare>) -> Sums {
        let rare = rares.get(self.rare).unwrap_or(&Rare::NONE);
        let side = |number: usize| {
            let (own, first_ns) = (&self.sides[number], self.first_ns[number]);
            let run = Burst {
                start_ns: first_ns,
                end_ns: own.latest_ns,
                packets: own.count,
                octets: own.octets,
            };
            let [octets_upper, gap_upper] = rare.carries[number];
            let is_parted = rare.runs[number].first.packets > 0;
            let [earliest, latest] = rare.times[number];
            let times = match own.count {
                0 => [u64::MAX, 0],
                _ => [earliest.min(first_ns), latest.max(own.latest_ns)],
            };
            Side {
                times,
                lengths: Moments {
                    squares: whole(octets_upper, own.octets_squares),
                    count: own.count,
                    sum: own.octets,
                    least: if own.count > 0 { own.octets_least.into() } else { u64::MAX },
                    most: own.octets_most.into(),
                },
                gaps: Moments {
                    squares: whole(gap_upper, own.gap_squares),
                    count: own.count.saturating_sub(1),
                    sum: sum_of_gaps(first_ns, own.latest_ns, rare.beyond_ns[number]),
                    least: own.gap_least,
                    most: own.gap_most,
                },
                negative: rare.negative[number],
                first: if is_parted { rare.runs[number].first } else { run },
                last: if is_parted { rare.last(number, &run) } else { Burst::NONE },
            }
        };
        let is_parted = rare.idle.count() > 0;
        let any = self.sides.iter().any(|side| side.count > 0);
        let active_ns = self.active_ns(latest_ns);
        let activity = Activity {
            first_ns: self.began_ns,
            latest_ns,
            first_active_ns: if is_parted { rare.first_active_ns } else { active_ns },
            last_active_ns: if is_parted { active_ns } else { 0 },
            between: rare.between,
            idle: rare.idle,
            any,
        };
        Sums { sides: [side(0), side(1)], activity, cut: self.cut }
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
                octets_squares: lengths.squares as u64,
                gap_squares: gaps.squares as u64,
                gap_least: gaps.least,
                gap_most: gaps.most,
                latest_ns,
                octets_most: octet(lengths.most),
                octets_least: octet(lengths.least),
            };
            live.first_ns[number] = first.start_ns;
            rare.carries[number] = [lengths, gaps].map(|own| (own.squares >> 64) as u64);
            (rare.negative[number], rare.times[number]) = (*negative, *times);
            rare.beyond_ns[number] =
                i128::from(gaps.sum) - i128::from(latest_ns) + i128::from(first.start_ns);
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
        (live.began_ns, live.active_from_ns) = (activity.first_ns, activity.latest_ns);
        let is_parted = activity.idle.count() > 0;
        live.stepped_ns =
            if is_parted { activity.last_active_ns } else { activity.first_active_ns };
        if is_parted {
            rare.first_active_ns = activity.first_active_ns;
            (rare.between, rare.idle) = (activity.between, activity.idle);
        }
        *live.rare_mut(rares) = rare;
        live
    }
}

/// Adds to the lower half of a sum of squares; returns the carry.
#[inline(always)]
fn add_square(lower: &mut u64, square: u64) -> bool {
    let carry;
    (*lower, carry) = lower.overflowing_add(square);
    carry
}

/// A sum of squares of its halves.
fn whole(upper: u64, lower: u64) -> u128 {
    u128::from(upper) << 64 | u128::from(lower)
}

/// The sum of the gaps between packets, of which a step back is none; at most 2⁶⁴ - 1.
fn sum_of_gaps(first_ns: u64, latest_ns: u64, steps_back_ns: i128) -> u64 {
    let sum = i128::from(latest_ns) - i128::from(first_ns) + steps_back_ns;
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

// Three and six cache lines.
const _: () = assert!(size_of::<Live>() == 192);
const _: () = assert!(size_of::<Rare>() == 384);
