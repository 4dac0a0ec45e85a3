//! The statistics of all live flows of a shelf.

use std::cell::Cell;

use ringtap_base::prefetch_all;
use ringtap_wire::PacketRecord;

use super::bursts::{BURSTS_MOST, Burst};
use super::chains::{Chains, Room};
use super::live::{Counted, Live, Rare};
use super::value::{FirstPacket, FlowStatistics};
use crate::pool::Pool;

/// Most memory of a live flow with statistics, without its lists, bytes.
pub const STATISTICS_BYTES: u64 = size_of::<Live>() as u64 + Pool::<Rare>::BYTES;

/// How many flows before their turn the statistics of flows that end one after another are prefetched.
const AHEAD: usize = 8;

/// How flows are measured.
#[derive(Debug)]
pub(crate) struct Measure {
    /// Most first packets of a flow; `None`: there are no statistics.
    pub(crate) packets: Option<u8>,
    pub(crate) room: Room,
}

impl Measure {
    pub(crate) const fn none() -> Self {
        Self { packets: None, room: Room::new(0) }
    }
}

/// The statistics of a shelf's flows, at their positions; empty unless flows are measured.
#[derive(Default)]
pub(crate) struct Slab {
    flows: Vec<Live>,
    rares: Pool<Rare>,
    packets: Chains<FirstPacket, 4>,
    bursts: Chains<Burst, 2>,
    /// Statistics of a record that ended, so that few are allocated.
    spare: Cell<Option<Box<FlowStatistics>>>,
}

impl Slab {
    /// Reserves address space for this number of flows, and for their lists.
    pub(crate) fn reserve(&mut self, flows: usize, measure: &Measure) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.flows.try_reserve_exact(flows);
        let packets = measure.packets.unwrap_or(0).into();
        self.packets.reserve(flows, packets, &measure.room);
        self.rares.reserve(flows);
        self.bursts.reserve(flows, 2 * BURSTS_MOST, &measure.room);
    }

    /// Adds a flow without packets.
    pub(crate) fn push(&mut self, most: u8) {
        self.flows.push(Live::new(most));
    }

    /// Adds a flow with these statistics, as far as there is room for its lists.
    pub(crate) fn push_saved(&mut self, saved: &FlowStatistics, room: &Room) {
        let Self { flows, rares, packets, bursts, .. } = self;
        let mut flow = Live::of(&saved.sums, rares);
        let mut keep =
            |own: &FirstPacket| flow.add_near(*own) || packets.push(&mut flow.far, *own, room);
        let _ = saved.packets.iter().all(&mut keep);
        for (side, own) in saved.bursts.iter().enumerate() {
            let chain = &mut flow.rare_mut(rares).bursts[side];
            if !own.iter().all(|burst| bursts.push(chain, *burst, room)) {
                flow.cut(side);
            }
        }
        flows.push(flow);
    }

    /// Prefetches what the next packet of a flow needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(flow) = self.flows.get(at) {
            prefetch_all(flow);
        }
    }

    /// Prefetches what the next packet of a flow may need behind it, which was prefetched before.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, at: usize) {
        let Some(flow) = self.flows.get(at) else { return };
        flow.rare(&self.rares).into_iter().for_each(prefetch_all);
        self.packets.prefetch(&flow.far);
    }

    /// Counts a packet of a flow.
    #[inline]
    pub(crate) fn count(
        &mut self,
        at: usize,
        direction: usize,
        packet: &PacketRecord,
        measure: &Measure,
    ) {
        let Self { flows, rares, packets, bursts, .. } = self;
        let (Some(flow), side) = (flows.get_mut(at), direction & 1) else { return };
        let Counted { is_far, burst } = flow.count(side, packet, rares);
        if is_far {
            packets.push(&mut flow.far, FirstPacket::of(packet, side), &measure.room);
        }
        let Some(burst) = burst.filter(|_| !flow.is_cut(side)) else { return };
        let chain = &mut flow.rare_mut(rares).bursts[side];
        if chain.len() < BURSTS_MOST && !bursts.push(chain, burst, &measure.room) {
            flow.cut(side);
        }
    }

    /// The statistics of a flow, if flows are measured and it has packets.
    pub(crate) fn get(&self, at: usize) -> Option<Box<FlowStatistics>> {
        // Where all flows end, the last one is first.
        self.prefetch_behind(at.wrapping_sub(AHEAD));
        let flow = self.flows.get(at).filter(|flow| flow.packets() > 0)?;
        let mut own = self.spare.take().unwrap_or_else(FlowStatistics::empty);
        own.sums = flow.sums(&self.rares);
        own.packets.clear();
        own.packets.extend_from_slice(flow.near());
        self.packets.append(&flow.far, &mut own.packets);
        for (side, list) in own.bursts.iter_mut().enumerate() {
            list.clear();
            if let Some(rare) = flow.rare(&self.rares) {
                self.bursts.append(&rare.bursts[side], list);
            }
        }
        Some(own)
    }

    /// Takes back the statistics of a record, for the next one.
    pub(crate) fn reuse(&self, own: Option<Box<FlowStatistics>>) {
        if own.is_some() {
            self.spare.set(own);
        }
    }

    /// Another flow, or the next part of this one, begins at a position.
    pub(crate) fn restart(&mut self, at: usize, measure: &Measure) {
        self.release(at);
        if let (Some(flow), Some(most)) = (self.flows.get_mut(at), measure.packets) {
            *flow = Live::new(most);
        }
    }

    /// Removes a flow, if flows are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.flows.len() {
            self.release(at);
            self.flows.swap_remove(at);
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.flows.len()).for_each(|at| self.release(at));
        self.flows.truncate(len);
    }

    fn release(&mut self, at: usize) {
        let Self { flows, rares, packets, bursts, .. } = self;
        let Some(flow) = flows.get_mut(at) else { return };
        packets.clear(&mut flow.far);
        if let Some(rare) = flow.rare_of(rares) {
            rare.bursts.iter_mut().for_each(|chain| bursts.clear(chain));
        }
        flow.release(rares);
    }
}

impl FlowStatistics {
    /// The statistics of a flow of these packets (direction, time in nanoseconds, octets and TCP flags), with at most this
    /// number of first packets; `None` without packets. For tests and tools.
    pub fn of(
        most: u8,
        packets: impl IntoIterator<Item = (usize, u64, u32, u8)>,
    ) -> Option<Box<Self>> {
        let measure = Measure { packets: Some(most), room: Room::new(usize::MAX) };
        let mut slab = Slab::default();
        slab.push(most);
        for (direction, ts_ns, ip_len, tcp_flags) in packets {
            let packet = PacketRecord { ts_ns, ip_len, tcp_flags, ..PacketRecord::EMPTY };
            slab.count(0, direction, &packet, &measure);
        }
        slab.get(0)
    }
}
