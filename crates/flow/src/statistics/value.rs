//! The statistics of a flow, as records have them.

use ringtap_wire::PacketRecord;

use super::bursts::{Activity, BURSTS_MOST, Burst, Side};
use super::moments::Moments;
use crate::fields::Fields;

/// Most first packets of a flow.
pub const FIRST_PACKETS_MOST: u8 = u8::MAX;

/// One of the first packets of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstPacket {
    /// Nanoseconds since 1970, the upper half first.
    time: [u32; 2],
    /// Octets of layer 3, at most 65,535.
    pub octets: u16,
    /// The TCP control bits.
    pub tcp_flags: u8,
    /// 0: from the initiator; 1: to it.
    pub side: u8,
}

impl FirstPacket {
    const SAVED: usize = 12;

    pub(super) const NONE: Self = Self { time: [0; 2], octets: 0, tcp_flags: 0, side: 0 };

    #[inline(always)]
    pub(super) fn of(packet: &PacketRecord, side: usize) -> Self {
        Self {
            time: [(packet.ts_ns >> 32) as u32, packet.ts_ns as u32],
            octets: packet.ip_len.min(u32::from(u16::MAX)) as u16,
            tcp_flags: packet.tcp_flags,
            side: side as u8,
        }
    }

    /// Its time, nanoseconds since 1970.
    pub const fn ts_ns(&self) -> u64 {
        (self.time[0] as u64) << 32 | self.time[1] as u64
    }
}

/// What is counted for a flow, besides its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sums {
    pub(super) sides: [Side; 2],
    pub(super) activity: Activity,
    /// Most first packets.
    pub(super) most: u8,
    /// Bits of the sides whose bursts had no room.
    pub(super) cut: u8,
}

impl Sums {
    const SAVED: usize = 2 * Side::SAVED + Activity::SAVED + 2;

    pub(super) const fn new(most: u8) -> Self {
        Self { sides: [Side::NONE; 2], activity: Activity::NONE, most, cut: 0 }
    }

    /// Packets of both directions.
    pub(super) fn packets(&self) -> u64 {
        self.sides.iter().fold(0, |sum, side| sum.saturating_add(side.lengths.count()))
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.sides.iter().for_each(|side| side.save(out));
        self.activity.save(out);
        out.extend_from_slice(&[self.most, self.cut]);
    }

    fn load(bytes: &[u8]) -> Self {
        let from = &mut Fields(bytes);
        let (sides, activity) = ([(); 2].map(|()| Side::load(from)), Activity::load(from));
        let [most, cut] = from.take();
        Self { sides, activity, most, cut }
    }
}

/// The statistics of a flow, or of a part of it. Index 0 is the initiator's direction, index 1 the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowStatistics {
    pub(super) sums: Sums,
    pub(super) packets: Vec<FirstPacket>,
    /// Of each direction those between its first and its last run.
    pub(super) bursts: [Vec<Burst>; 2],
}

impl FlowStatistics {
    pub(super) fn empty() -> Box<Self> {
        Box::new(Self { sums: Sums::new(0), packets: Vec::new(), bursts: [Vec::new(), Vec::new()] })
    }

    /// Octets of layer 3 of the packets of a direction.
    pub fn lengths(&self, direction: usize) -> &Moments {
        &self.sums.sides[direction & 1].lengths
    }

    /// Nanoseconds between two packets of a direction.
    pub fn gaps(&self, direction: usize) -> &Moments {
        &self.sums.sides[direction & 1].gaps
    }

    /// Gaps of a direction that were below zero, and count as zero.
    pub fn negative_gaps(&self, direction: usize) -> u64 {
        self.sums.sides[direction & 1].negative
    }

    /// The times of the earliest and the latest packet of a direction, nanoseconds since 1970.
    pub fn times(&self, direction: usize) -> Option<[u64; 2]> {
        self.sums.sides[direction & 1].times()
    }

    /// Active times, nanoseconds: from the first to the last of packets without a gap above [`IDLE_NS`](super::IDLE_NS).
    pub fn active(&self) -> Moments {
        self.sums.activity.active()
    }

    /// Idle times, nanoseconds: gaps above [`IDLE_NS`](super::IDLE_NS).
    pub fn idle(&self) -> &Moments {
        &self.sums.activity.idle
    }

    /// The first packets, in the order of arrival.
    pub fn first_packets(&self) -> &[FirstPacket] {
        &self.packets
    }

    /// The first bursts of a direction, at most [`BURSTS_MOST`].
    pub fn bursts(&self, direction: usize) -> impl Iterator<Item = &Burst> {
        let side = direction & 1;
        self.sums.sides[side].bursts(&self.bursts[side], self.is_side_cut(side))
    }

    fn is_side_cut(&self, side: usize) -> bool {
        self.sums.cut >> side & 1 != 0
    }

    /// Whether a list had no room.
    pub fn is_cut(&self) -> bool {
        let expected = self.sums.packets().min(self.sums.most.into());
        self.sums.cut != 0 || (self.packets.len() as u64) < expected
    }

    /// The other direction is that of the initiator.
    pub(crate) fn turn(&mut self) {
        self.sums.sides.swap(0, 1);
        self.sums.cut = (self.sums.cut & 1) << 1 | self.sums.cut >> 1 & 1;
        self.bursts.swap(0, 1);
        self.packets.iter_mut().for_each(|packet| packet.side ^= 1);
    }

    /// Adds a later piece of the flow.
    pub(crate) fn join(&mut self, later: &Self) {
        let Self { sums, packets, bursts } = self;
        // Behind a packet that is missing there are none.
        if packets.len() as u64 == sums.packets() {
            let room = usize::from(sums.most).saturating_sub(packets.len());
            packets.extend(later.packets.iter().take(room));
        }
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

    /// Most bytes of [`FlowStatistics::bytes`] with this many first packets.
    pub const fn most_bytes(packets: u8) -> usize {
        Sums::SAVED + 3 + packets as usize * FirstPacket::SAVED + 2 * BURSTS_MOST * Burst::SAVED
    }

    /// A byte string for each value, for digests and states.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::most_bytes(self.packets.len() as u8));
        self.sums.save(&mut out);
        let [own, other] = &self.bursts;
        out.extend([self.packets.len() as u8, own.len() as u8, other.len() as u8]);
        for packet in &self.packets {
            packet.time.iter().for_each(|half| out.extend_from_slice(&half.to_le_bytes()));
            out.extend_from_slice(&packet.octets.to_le_bytes());
            out.extend([packet.tcp_flags, packet.side]);
        }
        own.iter().chain(other).for_each(|burst| burst.save(&mut out));
        out
    }

    /// The value of the first of these bytes, as [`FlowStatistics::bytes`] returned them, and the other bytes; `None` if no
    /// value has such bytes.
    pub fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (sums, rest) = bytes.split_at_checked(Sums::SAVED)?;
        let sums = Sums::load(sums);
        let (&[packets, own, other], rest) = rest.split_first_chunk()?;
        let counts = [own, other].map(usize::from);
        if packets > sums.most || counts.iter().any(|count| *count > BURSTS_MOST) {
            return None;
        }
        let packets = usize::from(packets);
        let (list, rest) = rest.split_at_checked(packets * FirstPacket::SAVED)?;
        let (bursts, rest) = rest.split_at_checked(counts.iter().sum::<usize>() * Burst::SAVED)?;
        let from = &mut Fields(list);
        let packet = |()| {
            let time = [u32::from_le_bytes(from.take()), u32::from_le_bytes(from.take())];
            let octets = u16::from_le_bytes(from.take());
            let [tcp_flags, side] = from.take();
            (side < 2).then_some(FirstPacket { time, octets, tcp_flags, side })
        };
        let packets = std::iter::repeat_n((), packets).map(packet).collect::<Option<_>>()?;
        let from = &mut Fields(bursts);
        let bursts = counts.map(|count| (0..count).map(|_| Burst::load(from)).collect());
        Some((Self { sums, packets, bursts }, rest))
    }
}
