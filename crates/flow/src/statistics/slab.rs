//! The statistics of all live flows of a shelf.

use std::cell::Cell;

use ringtap_base::prefetch;
use ringtap_wire::PacketRecord;

use super::bursts::{BURSTS_MOST, Burst};
use super::chains::{Chain, Chains, Room};
use super::value::{FirstPacket, FlowStatistics, Sums};

/// Memory of a live flow with statistics, without its lists, bytes.
pub const STATISTICS_BYTES: u64 = size_of::<State>() as u64;

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

/// The statistics of a live flow.
#[derive(Debug)]
pub(super) struct State {
    sums: Sums,
    packets: Chain,
    bursts: [Chain; 2],
}

/// The statistics of a shelf's flows, at their positions; empty unless flows are measured.
#[derive(Default)]
pub(crate) struct Slab {
    states: Vec<State>,
    packets: Chains<FirstPacket, 4>,
    bursts: Chains<Burst, 2>,
    /// Statistics of a record that ended, so that few are allocated.
    spare: Cell<Option<Box<FlowStatistics>>>,
}

impl Slab {
    /// Reserves address space for this number of flows.
    pub(crate) fn reserve(&mut self, flows: usize) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.states.try_reserve_exact(flows);
    }

    /// Adds a flow without packets.
    pub(crate) fn push(&mut self, most: u8) {
        let (packets, bursts) = (Chain::default(), [Chain::default(); 2]);
        self.states.push(State { sums: Sums::new(most), packets, bursts });
    }

    /// Adds a flow with these statistics, as far as there is room for its lists.
    pub(crate) fn push_saved(&mut self, saved: &FlowStatistics, room: &Room) {
        self.push(0);
        let Self { states, packets, bursts, .. } = self;
        let Some(state) = states.last_mut() else { return };
        state.sums = saved.sums;
        let _ = saved.packets.iter().all(|own| packets.push(&mut state.packets, *own, room));
        for (side, own) in saved.bursts.iter().enumerate() {
            if !own.iter().all(|burst| bursts.push(&mut state.bursts[side], *burst, room)) {
                state.sums.cut |= 1 << side;
            }
        }
    }

    /// Prefetches what the next packet of a flow needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(state) = self.states.get(at) {
            prefetch(&state.sums.sides[0]);
            prefetch(&state.sums.sides[1]);
            prefetch(&state.sums.activity);
            prefetch(&state.packets);
        }
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
        let Self { states, packets, bursts, .. } = self;
        let (Some(state), side) = (states.get_mut(at), direction & 1) else { return };
        let sums = &mut state.sums;
        let listed = state.packets.len();
        // Behind a packet that had no room there are none.
        if listed < usize::from(sums.most) && listed as u64 == sums.packets() {
            packets.push(&mut state.packets, FirstPacket::of(packet, side), &measure.room);
        }
        if let Some(burst) = sums.sides[side].count(packet.ts_ns, packet.ip_len.into())
            && state.bursts[side].len() < BURSTS_MOST
            && sums.cut >> side & 1 == 0
            && !bursts.push(&mut state.bursts[side], burst, &measure.room)
        {
            sums.cut |= 1 << side;
        }
        sums.activity.count(packet.ts_ns);
    }

    /// The statistics of a flow, if flows are measured and it has packets.
    pub(crate) fn get(&self, at: usize) -> Option<Box<FlowStatistics>> {
        let state = self.states.get(at).filter(|state| state.sums.packets() > 0)?;
        let mut own = self.spare.take().unwrap_or_else(FlowStatistics::empty);
        own.sums = state.sums;
        self.packets.copy(&state.packets, &mut own.packets);
        let bursts = own.bursts.iter_mut().zip(&state.bursts);
        bursts.for_each(|(own, chain)| self.bursts.copy(chain, own));
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
        if let (Some(state), Some(most)) = (self.states.get_mut(at), measure.packets) {
            state.sums = Sums::new(most);
        }
    }

    /// Removes a flow, if flows are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.states.len() {
            self.release(at);
            self.states.swap_remove(at);
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.states.len()).for_each(|at| self.release(at));
        self.states.truncate(len);
    }

    fn release(&mut self, at: usize) {
        let Self { states, packets, bursts, .. } = self;
        let Some(state) = states.get_mut(at) else { return };
        packets.clear(&mut state.packets);
        state.bursts.iter_mut().for_each(|chain| bursts.clear(chain));
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
