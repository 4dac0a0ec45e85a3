//! The statistics of a flow, as records have them.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::bursts::{BURST_GAP_NS, BURST_PACKETS, BURSTS_MOST, Burst, IDLE_NS, Side};
use super::first::FirstPacket;
use super::live::Live;
use super::moments::Moments;
use super::octets::Octets;
use super::sums::Sums;
use crate::fields::Fields;
use crate::pool::Pool;

/// What is counted, and bursts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counted {
    pub(super) sums: Sums,
    /// Of each direction those between its first and its last run.
    pub(super) bursts: [Vec<Burst>; 2],
}

impl Counted {
    /// What follows from all packets of a flow.
    fn of(packets: &[FirstPacket]) -> Self {
        let (mut live, mut latest_ns, mut rares) = (Live::NONE, 0, Pool::default());
        let mut bursts = [Vec::new(), Vec::new()];
        for packet in packets {
            let list = &mut bursts[usize::from(packet.side & 1)];
            let burst = live.count_first(packet, &mut latest_ns, &mut rares);
            if list.len() < BURSTS_MOST {
                list.extend(burst);
            }
        }
        Self { sums: live.sums(latest_ns, &rares), bursts }
    }

    fn turn(&mut self) {
        self.sums.sides.swap(0, 1);
        self.sums.cut = (self.sums.cut & 1) << 1 | self.sums.cut >> 1 & 1;
        self.bursts.swap(0, 1);
    }

    /// Adds those of a later piece of the flow.
    fn join(&mut self, later: &Self) {
        let Self { sums, bursts } = self;
        for (number, side) in sums.sides.iter_mut().enumerate() {
            let (own, cut) = (&mut bursts[number], 1 << number);
            let before = own.len();
            side.join(&later.sums.sides[number], own, &later.bursts[number]);
            if sums.cut & cut != 0 {
                own.truncate(before);
            }
        }
        sums.cut |= later.sums.cut;
        sums.activity.join(&later.sums.activity);
    }
}

/// In bytes of statistics, beside the bits of directions that were cut: octets follow.
const HAS_OCTETS: u8 = 1 << 7;

/// How many of each kind the statistics of a flow have, in both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatisticsCounts {
    /// Bursts in the lists.
    pub bursts: u64,
    /// Idle times.
    pub idle_times: u64,
    /// Gaps below zero.
    pub negative_gaps: u64,
}

impl StatisticsCounts {
    /// The counts of a flow whose packets are all listed.
    fn of(packets: &[FirstPacket]) -> Self {
        let mut counts = Self::default();
        let mut latest_ns = None;
        // Of each direction: the time of the latest packet, packets of the last run, and bursts.
        let mut sides = [(0, 0, 0); 2];
        for packet in packets {
            let ts_ns = packet.ts_ns();
            let gap_ns = ts_ns.saturating_sub(latest_ns.replace(ts_ns).unwrap_or(ts_ns));
            counts.idle_times += u64::from(gap_ns > IDLE_NS);
            let (before_ns, run, bursts) = &mut sides[usize::from(packet.side & 1)];
            if *run > 0 {
                counts.negative_gaps += u64::from(ts_ns < *before_ns);
                if ts_ns.saturating_sub(*before_ns) >= BURST_GAP_NS {
                    *bursts += usize::from(*run >= BURST_PACKETS);
                    *run = 0;
                }
            }
            (*before_ns, *run) = (ts_ns, *run + 1);
        }
        for (_, run, bursts) in sides {
            let all = bursts + usize::from(run >= BURST_PACKETS);
            counts.bursts += all.min(BURSTS_MOST) as u64;
        }
        counts
    }
}

/// The statistics of a flow, or of a part of it. Index 0 is the initiator's direction, index 1 the other.
#[derive(Clone, Debug)]
pub struct FlowStatistics {
    /// Most first packets.
    pub(super) most: u8,
    pub(super) packets: Vec<FirstPacket>,
    /// Empty only if all packets are listed, with exact lengths; it is computed from them when first asked for.
    pub(super) counted: OnceLock<Counted>,
    /// The first octets of payload, if they are asked for.
    pub(super) octets: Option<Box<Octets>>,
}

impl FlowStatistics {
    pub(super) fn empty() -> Box<Self> {
        Box::new(Self { most: 0, packets: Vec::new(), counted: OnceLock::new(), octets: None })
    }

    pub(super) fn counted(&self) -> &Counted {
        self.counted.get_or_init(|| Counted::of(&self.packets))
    }

    fn side(&self, direction: usize) -> &Side {
        &self.counted().sums.sides[direction & 1]
    }

    /// Octets of layer 3 of the packets of a direction.
    pub fn lengths(&self, direction: usize) -> &Moments {
        &self.side(direction).lengths
    }

    /// Nanoseconds between two packets of a direction.
    pub fn gaps(&self, direction: usize) -> &Moments {
        &self.side(direction).gaps
    }

    /// Gaps of a direction that were below zero, and count as zero.
    pub fn negative_gaps(&self, direction: usize) -> u64 {
        self.side(direction).negative
    }

    /// The times of the earliest and the latest packet of a direction, nanoseconds since 1970.
    pub fn times(&self, direction: usize) -> Option<[u64; 2]> {
        self.side(direction).times()
    }

    /// Active times, nanoseconds: from the first to the last of packets without a gap above [`IDLE_NS`](super::IDLE_NS).
    pub fn active(&self) -> Moments {
        self.counted().sums.activity.active()
    }

    /// Idle times, nanoseconds: gaps above [`IDLE_NS`](super::IDLE_NS).
    pub fn idle(&self) -> &Moments {
        &self.counted().sums.activity.idle
    }

    /// The first packets, in the order of arrival.
    pub fn first_packets(&self) -> &[FirstPacket] {
        &self.packets
    }

    /// The first bursts of a direction, at most [`BURSTS_MOST`].
    pub fn bursts(&self, direction: usize) -> impl Iterator<Item = &Burst> {
        let (side, Counted { sums, bursts }) = (direction & 1, self.counted());
        sums.sides[side].bursts(&bursts[side], sums.cut >> side & 1 != 0)
    }

    /// Shannon's entropy of the first octets of payload of a direction, in the order of arrival, in units of 1/32 bit an octet:
    /// 0 if all are equal, 255 if all 256 octets are equally frequent. `None` if there are none, or if they are not asked for.
    pub fn entropy(&self, direction: usize) -> Option<u8> {
        self.octets.as_deref()?.entropy(direction & 1)
    }

    /// How many of each kind there are: cheaper than asking for each.
    pub fn counts(&self) -> StatisticsCounts {
        if self.counted.get().is_none() {
            return StatisticsCounts::of(&self.packets);
        }
        StatisticsCounts {
            bursts: self.bursts(0).chain(self.bursts(1)).count() as u64,
            idle_times: self.idle().count(),
            negative_gaps: self.negative_gaps(0).saturating_add(self.negative_gaps(1)),
        }
    }

    /// Whether a list had no room.
    pub fn is_cut(&self) -> bool {
        let is_cut = |Counted { sums, .. }: &Counted| {
            let expected = sums.packets().min(self.most.into());
            sums.cut != 0 || (self.packets.len() as u64) < expected
        };
        self.counted.get().is_some_and(is_cut) || self.octets.as_deref().is_some_and(Octets::is_cut)
    }

    /// The other direction is that of the initiator.
    pub(crate) fn turn(&mut self) {
        self.packets.iter_mut().for_each(|packet| packet.side ^= 1);
        self.counted.get_mut().into_iter().for_each(Counted::turn);
        self.octets.as_deref_mut().into_iter().for_each(Octets::turn);
    }

    /// Adds a later piece of the flow.
    pub(crate) fn join(&mut self, later: &Self) {
        if let (Some(own), Some(later)) = (&mut self.octets, &later.octets) {
            own.join(later);
        }
        let room = usize::from(self.most).saturating_sub(self.packets.len());
        let is_listed = [&*self, later].iter().all(|own| own.counted.get().is_none());
        if is_listed && later.packets.len() <= room {
            self.packets.extend_from_slice(&later.packets);
            return;
        }
        let before = self.counted().sums.packets();
        self.counted.get_mut().into_iter().for_each(|own| own.join(later.counted()));
        // Behind a packet that is missing there are none.
        if self.packets.len() as u64 == before {
            self.packets.extend(later.packets.iter().take(room));
        }
    }

    /// Most bytes of [`FlowStatistics::bytes`] with this many first packets, and first octets of a direction.
    pub const fn most_bytes(packets: u8, octets: u16) -> usize {
        let lists = packets as usize * FirstPacket::SAVED + 2 * BURSTS_MOST * Burst::SAVED;
        let octets = if octets > 0 { Octets::saved(octets) } else { 0 };
        Sums::SAVED + 5 + lists + octets
    }

    /// Memory of this many first octets of a direction.
    pub(crate) const fn octets_bytes(octets: u16) -> usize {
        if octets > 0 { Octets::bytes(octets) } else { 0 }
    }

    /// A byte string for each value, for digests and states.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::most_bytes(self.packets.len() as u8, 0));
        let Counted { sums, bursts: [own, other] } = self.counted();
        sums.save(&mut out);
        let octets = if self.octets.is_some() { HAS_OCTETS } else { 0 };
        out.extend([self.most, sums.cut | octets]);
        out.extend([self.packets.len() as u8, own.len() as u8, other.len() as u8]);
        self.packets.iter().for_each(|packet| packet.save(&mut out));
        own.iter().chain(other).for_each(|burst| burst.save(&mut out));
        self.octets.iter().for_each(|own| own.save(&mut out));
        out
    }

    /// The value of the first of these bytes, as [`FlowStatistics::bytes`] returned them, and the other bytes; `None` if no
    /// value has such bytes.
    pub fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (sums, rest) = bytes.split_at_checked(Sums::SAVED)?;
        let (&[most, cut, packets, own, other], rest) = rest.split_first_chunk()?;
        let sums = Sums::load(&mut Fields(sums), cut & !HAS_OCTETS);
        let counts = [own, other].map(usize::from);
        if packets > most || counts.iter().any(|count| *count > BURSTS_MOST) {
            return None;
        }
        let packets = usize::from(packets);
        let (list, rest) = rest.split_at_checked(packets * FirstPacket::SAVED)?;
        let (bursts, rest) = rest.split_at_checked(counts.iter().sum::<usize>() * Burst::SAVED)?;
        let from = &mut Fields(list);
        let packets = (0..packets).map(|_| FirstPacket::load(from)).collect::<Option<_>>()?;
        let from = &mut Fields(bursts);
        let bursts = counts.map(|count| (0..count).map(|_| Burst::load(from)).collect());
        let counted = OnceLock::from(Counted { sums, bursts });
        let (octets, rest) = match cut & HAS_OCTETS {
            0 => (None, rest),
            _ => Octets::split_from(rest).map(|(own, rest)| (Some(Box::new(own)), rest))?,
        };
        Some((Self { most, packets, counted, octets }, rest))
    }

    fn compared(&self) -> (&Counted, u8, &[FirstPacket], Option<&Octets>) {
        (self.counted(), self.most, &self.packets, self.octets.as_deref())
    }
}

impl PartialEq for FlowStatistics {
    fn eq(&self, other: &Self) -> bool {
        self.compared() == other.compared()
    }
}

impl Eq for FlowStatistics {}

impl PartialOrd for FlowStatistics {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FlowStatistics {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compared().cmp(&other.compared())
    }
}
