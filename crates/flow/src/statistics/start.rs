//! The first packets of a live flow, in one cache line: three with the flow, and a list behind it, with five a line. Most flows
//! have no others: then all statistics follow from these.

use super::chains::{Chain, Chains, Room};
use super::first::FirstPacket;

/// First packets that are with a flow.
const NEAR: usize = 3;

/// The lists of first packets behind those with the flow.
pub(super) type FarPackets = Chains<FirstPacket, 5>;

/// The first packets of a live flow, and the position of its sums.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Start {
    near: [FirstPacket; NEAR],
    pub(super) far: Chain,
    /// The position of the sums, or 0 while all packets are listed, with exact lengths.
    pub(super) sums: u32,
    /// The time of the latest packet, nanoseconds since 1970, the upper half first; 0 without sums.
    latest: [u32; 2],
    /// Packets in `near`.
    nears: u8,
    /// Most first packets.
    pub(super) most: u8,
    /// Whether a packet is missing, which was none of the first ones or had no room. Behind it there are none.
    is_over: bool,
}

impl Start {
    pub(super) const fn new(most: u8) -> Self {
        Self {
            near: [FirstPacket::NONE; NEAR],
            far: Chain::NONE,
            sums: 0,
            latest: [0; 2],
            nears: 0,
            most,
            is_over: false,
        }
    }

    pub(super) const fn has_packets(&self) -> bool {
        self.nears > 0 || self.sums > 0
    }

    /// The time of the latest packet of a flow with sums, nanoseconds since 1970.
    #[inline(always)]
    pub(super) const fn latest_ns(&self) -> u64 {
        (self.latest[0] as u64) << 32 | self.latest[1] as u64
    }

    /// Sets [`Start::latest_ns`]; returns the one before.
    #[inline(always)]
    pub(super) const fn replace_latest(&mut self, ts_ns: u64) -> u64 {
        let before = self.latest_ns();
        self.latest = [(ts_ns >> 32) as u32, ts_ns as u32];
        before
    }

    /// Adds no more packets.
    pub(super) const fn close(&mut self) {
        self.is_over = true;
    }

    /// Adds a packet; false if it is none of the first ones, or there is no room for it or an earlier one.
    #[inline(always)]
    pub(super) fn push(&mut self, packet: FirstPacket, all: &mut FarPackets, room: &Room) -> bool {
        if self.is_over {
            return false;
        }
        let is_first = usize::from(self.nears) + self.far.len() < usize::from(self.most);
        self.is_over = !is_first
            || match self.near.get_mut(usize::from(self.nears)) {
                Some(place) => {
                    *place = packet;
                    self.nears += 1;
                    false
                }
                None => !all.push(&mut self.far, packet, room),
            };
        !self.is_over
    }

    /// The packets, in order.
    pub(super) fn packets<'a>(
        &'a self,
        all: &'a FarPackets,
    ) -> impl Iterator<Item = &'a FirstPacket> {
        self.near().iter().chain(all.slices(&self.far).flatten())
    }

    /// Appends the packets to `packets`.
    pub(super) fn append(&self, all: &FarPackets, packets: &mut Vec<FirstPacket>) {
        packets.extend_from_slice(self.near());
        all.append(&self.far, packets);
    }

    fn near(&self) -> &[FirstPacket] {
        &self.near[..usize::from(self.nears).min(NEAR)]
    }
}

const _: () = assert!(size_of::<Start>() == 64);
