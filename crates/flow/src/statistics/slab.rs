//! The statistics of all live flows of a shelf.

use std::cell::Cell;
use std::sync::OnceLock;

use ringtap_base::{prefetch, prefetch_all};
use ringtap_wire::PacketRecord;

use super::bursts::{BURSTS_MOST, Burst};
use super::chains::{Chain, Chains, Room};
use super::first::FirstPacket;
use super::live::{Live, Rare};
use super::octets::{LiveOctets, OctetChains};
use super::start::{FarPackets, Start};
use super::value::{Counted, FlowStatistics};
use crate::pool::Pool;

/// Most memory of a live flow with statistics, without its lists, bytes.
pub const STATISTICS_BYTES: u64 =
    size_of::<Start>() as u64 + Pool::<Live>::BYTES + Pool::<Rare>::BYTES;

/// Memory of a live flow with first octets of payload, without its lists, bytes.
pub const OCTETS_BYTES: u64 = size_of::<LiveOctets>() as u64;

/// How many flows before their turn the statistics of flows that end one after another are prefetched.
const AHEAD: usize = 8;

/// How flows are measured.
#[derive(Debug)]
pub(crate) struct Measure {
    /// Most first packets of a flow; `None`: there are no statistics.
    pub(crate) packets: Option<u8>,
    /// Most first octets of the payload of a direction.
    pub(crate) octets: u16,
    pub(crate) room: Room,
}

impl Measure {
    pub(crate) const fn none() -> Self {
        Self { packets: None, octets: 0, room: Room::new(0) }
    }
}

/// What few flows have: behind their sums, what few packets change, and bursts.
#[derive(Default)]
struct Behind {
    rares: Pool<Rare>,
    bursts: Chains<Burst, 3>,
}

impl Behind {
    /// Adds a burst to the list of a direction, unless that is full, or had no room before.
    fn add(&mut self, live: &mut Live, side: usize, burst: Burst, room: &Room) {
        if live.is_cut(side) {
            return;
        }
        let chain = &mut live.rare_mut(&mut self.rares).bursts[side];
        if chain.len() < BURSTS_MOST && !self.bursts.push(chain, burst, room) {
            live.cut(side);
        }
    }

    fn release(&mut self, live: &mut Live) {
        if let Some(rare) = live.rare_of(&mut self.rares) {
            rare.bursts.iter_mut().for_each(|chain| self.bursts.clear(chain));
        }
        live.release(&mut self.rares);
    }
}

/// The statistics of a shelf's flows, at their positions; empty unless flows are measured.
#[derive(Default)]
pub(crate) struct Slab {
    flows: Vec<Start>,
    packets: FarPackets,
    /// The sums of flows with other packets than their first ones.
    sums: Pool<Live>,
    behind: Behind,
    /// Empty unless octets are asked for.
    octets: Vec<LiveOctets>,
    octet_chains: OctetChains,
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
        self.sums.reserve(flows);
        self.behind.rares.reserve(flows);
        self.behind.bursts.reserve(flows, 2 * BURSTS_MOST, &measure.room);
        if measure.octets > 0 {
            let _ = self.octets.try_reserve_exact(flows);
            self.octet_chains.reserve(flows, 2 * usize::from(measure.octets), &measure.room);
        }
    }

    /// Adds a flow without packets, if flows are measured.
    pub(crate) fn push(&mut self, measure: &Measure) {
        self.flows.extend(measure.packets.map(Start::new));
        if measure.octets > 0 {
            self.octets.push(LiveOctets::new(measure.octets));
        }
    }

    /// Adds a flow with these statistics, as far as there is room for its lists.
    pub(crate) fn push_saved(&mut self, saved: &FlowStatistics, measure: &Measure) {
        let Self { flows, packets, sums, behind, octets, octet_chains, .. } = self;
        let room = &measure.room;
        if measure.octets > 0 {
            octets.push(match saved.octets.as_deref() {
                Some(own) => LiveOctets::of(own, octet_chains, room),
                None => LiveOctets::new(measure.octets),
            });
        }
        let (mut flow, Counted { sums: own, bursts }) = (Start::new(saved.most), saved.counted());
        let mut exact = 0;
        for packet in &saved.packets {
            if !flow.push(*packet, packets, room) {
                break;
            }
            // One with the largest number may have been longer.
            exact += u64::from(packet.octets < u16::MAX);
        }
        if saved.packets.len() as u64 != own.packets() {
            flow.close();
        }
        if exact != own.packets() || own.cut != 0 {
            let mut live = Live::of(own, &mut behind.rares);
            for (side, list) in bursts.iter().enumerate() {
                let chain = &mut live.rare_mut(&mut behind.rares).bursts[side];
                if !list.iter().all(|burst| behind.bursts.push(chain, *burst, room)) {
                    live.cut(side);
                }
            }
            flow.sums = sums.add(live);
            flow.replace_latest(own.activity.latest_ns);
        }
        flows.push(flow);
    }

    /// Prefetches what the next packet of a flow needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        self.flows.get(at).into_iter().for_each(prefetch);
    }

    /// Prefetches what the next packet of a flow may need behind it, which was prefetched before.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, at: usize) {
        let Some(flow) = self.flows.get(at) else { return };
        match self.sums.get(flow.sums) {
            Some(live) => live.prefetch(),
            None => self.packets.prefetch_last(&flow.far),
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
        let Self { flows, packets, sums, behind, .. } = self;
        let (Some(flow), side) = (flows.get_mut(at), direction & 1) else { return };
        let first = FirstPacket::of(packet, side);
        if flow.sums == 0 {
            let is_exact = u32::from(first.octets) == packet.ip_len;
            if is_exact && flow.push(first, packets, &measure.room) {
                return;
            }
            let (live, latest_ns) = sum_up(flow, packets, behind, &measure.room);
            flow.sums = sums.add(live);
            flow.replace_latest(latest_ns);
        }
        // A long packet may be one of the first ones.
        flow.push(first, packets, &measure.room);
        let Some(live) = sums.get_mut(flow.sums) else { return };
        let latest_ns = flow.replace_latest(packet.ts_ns);
        let (ts_ns, octets) = (packet.ts_ns, packet.ip_len);
        if let Some(burst) = live.count(side, ts_ns, octets, latest_ns, &mut behind.rares) {
            behind.add(live, side, burst, &measure.room);
        }
    }

    /// Adds the payload of a packet that was counted.
    pub(crate) fn add_octets(
        &mut self,
        at: usize,
        direction: usize,
        payload: &[u8],
        measure: &Measure,
    ) {
        if let Some(own) = self.octets.get_mut(at) {
            let all = &mut self.octet_chains;
            own.add(direction & 1, payload, all, &measure.room);
        }
    }

    /// The statistics of a flow, if flows are measured and it has packets.
    pub(crate) fn get(&self, at: usize) -> Option<Box<FlowStatistics>> {
        // Where all flows end, the last one is first.
        if let Some(next) = self.flows.get(at.wrapping_sub(AHEAD)) {
            self.packets.prefetch_first(&next.far);
            self.sums.get(next.sums).inspect(|live| prefetch_all(*live));
        }
        let flow = self.flows.get(at).filter(|flow| flow.has_packets())?;
        let mut own = self.spare.take().unwrap_or_else(FlowStatistics::empty);
        let FlowStatistics { most, packets, counted, octets } = &mut *own;
        let first = self.octets.get(at);
        *octets = first.map(|own| Box::new(own.octets(&self.octet_chains)));
        *most = flow.most;
        packets.clear();
        flow.append(&self.packets, packets);
        *counted = OnceLock::new();
        if let Some(live) = self.sums.get(flow.sums) {
            let sums = live.sums(flow.latest_ns(), &self.behind.rares);
            let chains = live.rare(&self.behind.rares).map_or([Chain::NONE; 2], |rare| rare.bursts);
            let bursts = chains.map(|chain| self.behind.bursts.list(&chain));
            *counted = OnceLock::from(Counted { sums, bursts });
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
            *flow = Start::new(most);
        }
    }

    /// Removes a flow, if flows are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.flows.len() {
            self.release(at);
            self.flows.swap_remove(at);
            if at < self.octets.len() {
                self.octets.swap_remove(at);
            }
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.flows.len()).for_each(|at| self.release(at));
        self.flows.truncate(len);
        self.octets.truncate(len);
    }

    fn release(&mut self, at: usize) {
        let Self { flows, packets, sums, behind, octets, octet_chains, .. } = self;
        let Some(flow) = flows.get_mut(at) else { return };
        octets.get_mut(at).into_iter().for_each(|own| own.release(octet_chains));
        packets.clear(&mut flow.far);
        if let Some(live) = sums.get_mut(flow.sums) {
            behind.release(live);
        }
        sums.release(&mut flow.sums);
    }
}

/// The sums of a flow's first packets, and the time of the last one, because the next packet cannot be listed exactly. Their
/// bursts need room from now on.
#[cold]
fn sum_up(flow: &Start, packets: &FarPackets, behind: &mut Behind, room: &Room) -> (Live, u64) {
    let (mut live, mut latest_ns) = (Live::NONE, 0);
    for packet in flow.packets(packets) {
        if let Some(burst) = live.count_first(packet, &mut latest_ns, &mut behind.rares) {
            behind.add(&mut live, usize::from(packet.side & 1), burst, room);
        }
    }
    (live, latest_ns)
}

impl FlowStatistics {
    /// The statistics of a flow of these packets (direction, time in nanoseconds, octets and TCP flags), with at most this
    /// number of first packets; `None` without packets. For tests and tools.
    pub fn of(
        most: u8,
        packets: impl IntoIterator<Item = (usize, u64, u32, u8)>,
    ) -> Option<Box<Self>> {
        let measure = Measure { packets: Some(most), octets: 0, room: Room::new(usize::MAX) };
        let mut slab = Slab::default();
        slab.push(&measure);
        for (direction, ts_ns, ip_len, tcp_flags) in packets {
            let packet = PacketRecord { ts_ns, ip_len, tcp_flags, ..PacketRecord::EMPTY };
            slab.count(0, direction, &packet, &measure);
        }
        slab.get(0)
    }
}
