//! The live flows of one IP version: entries without gaps, found through an [`Index`].
//!
//! ```text
//! index    | tag · position | tag · position | 0 | …      4 bytes a word, half full
//!                    └──────────┐
//! entries  | entry | entry | entry | …                     64 bytes each (IPv4), 88 (IPv6)
//! first    | first packet's time | …                       8 bytes each, same positions
//! facts    | facts | …                                     8 bytes each, same positions, as long as needed
//! tcp      | performance | …                               same positions, if measured (tcp.rs)
//! requests | what waits for a response | …                 same positions, if measured (responses.rs)
//! reported | what earlier parts had | …                    same positions, if flows are cut (parts.rs)
//! sliced   | what earlier slices had | …                   same positions, if flows are sliced (slices.rs)
//! statistics                                              same positions, if they are measured (statistics/)
//! ```
//!
//! A sweep reads entries in order, and a flow that ends is replaced by the last one. Counters that
//! outgrow their bits are carried over to a map, which few flows need.
//!
//! Invariant: every entry has its place in the index and its first packet's time; no map entry outlives its flow.

use std::collections::HashMap;
use std::sync::Arc;

use ringtap_base::prefetch;
use ringtap_extract::{Added, Application, Facts, Kind, Names};
use ringtap_wire::{PacketRecord, Paths, Segment};

use crate::ends::Ends;
use crate::entry::{Entry, Key};
use crate::flags::RST;
use crate::index::Index;
use crate::parts::Reported;
use crate::responses::{Data, Requests};
use crate::slices::{Counted, Sliced};
use crate::statistics::{Measure, Slab};
use crate::tcp::Connections;
use crate::timeouts::Class;
use crate::ways::Ways;
use crate::{
    EndReason, Exchange, FlowKey, FlowRecord, Observer, OpenFlow, Part, Response, Slice,
    TcpPerformance, Timeouts,
};

/// Rules for all flows of a table.
pub(crate) struct Rules {
    /// Idle timeouts by class.
    idle_ns: [u64; 8],
    /// Silence that ends no flow.
    harmless_ns: u64,
    active_ns: u64,
    pub(crate) tick_ns: u64,
    pub(crate) uniflow: bool,
    pub(crate) ways: Ways,
    /// The list that records get their applications from.
    pub(crate) names: Option<Arc<Names>>,
    /// Whether the performance of TCP is measured.
    pub(crate) tcp: bool,
    /// Flows are cut at multiples of this time, nanoseconds; 0: they are not.
    pub(crate) cut_ns: u64,
    /// Flows are sliced by intervals of this length, nanoseconds; 0: they are not.
    pub(crate) slice_ns: u64,
    /// The statistics of packets.
    pub(crate) measure: Measure,
    /// Whether flows are cut or sliced, or have statistics: each packet needs more than the entry.
    pub(crate) has_more: bool,
    /// The next sweep is expected before a packet of this time. Later packets are still correct, at
    /// the cost of a check of the first packet's time.
    pub(crate) calm_until_ns: u64,
}

impl Rules {
    pub(crate) fn new(timeouts: &Timeouts, uniflow: bool, cut_ns: u64, paths: Arc<Paths>) -> Self {
        Self {
            idle_ns: timeouts.by_class(),
            harmless_ns: timeouts.shortest_ns(),
            active_ns: timeouts.active_ns,
            tick_ns: timeouts.tick_ns(),
            uniflow,
            ways: Ways::new(paths),
            names: None,
            tcp: false,
            cut_ns,
            slice_ns: 0,
            measure: Measure::none(),
            has_more: cut_ns > 0,
            calm_until_ns: 0,
        }
    }
}

/// A packet on its way to its flow.
pub(crate) struct Arrival<'a> {
    pub(crate) packet: &'a PacketRecord,
    pub(crate) ports: u32,
    pub(crate) hash: u32,
    /// Where the flow seemed to be before earlier packets changed the table: a hint.
    pub(crate) likely: Option<u32>,
    /// Its TCP segment, if that is measured.
    pub(crate) segment: Option<Segment>,
    /// Whether facts are attached to it.
    pub(crate) has_facts: bool,
    /// The following packets that differ from it only in time and length.
    pub(crate) alike: &'a [PacketRecord],
}

/// Most flows whose memory for facts is kept when they end.
const SPARE_MAX: usize = 256;

const TCP: u8 = 6;

pub(crate) struct Shelf<E: Ends> {
    index: Index,
    entries: Vec<Entry<E>>,
    first_ns: Vec<u64>,
    /// Entries beyond its end have no facts.
    facts: Vec<Facts>,
    /// Empty unless performance is measured.
    tcp: Connections,
    /// Empty unless performance is measured.
    pub(crate) requests: Requests,
    /// Empty unless flows are cut.
    reported: Vec<Reported>,
    /// Empty unless flows are sliced.
    sliced: Vec<Sliced>,
    /// Empty unless flows are measured.
    statistics: Slab,
    /// Without values: memory of flows that ended, for further flows.
    spare_facts: Vec<Facts>,
    /// Bytes of all facts.
    pub(crate) fact_bytes: usize,
    /// Carried-over packets and octets, by flow.
    carried: HashMap<(Key<E>, u16), [[u64; 2]; 2]>,
    /// Where a sweep continues: entries below this position are still to be checked.
    sweep_below: Option<usize>,
    /// Whether the sweep has ended any flow.
    swept: bool,
    /// Where the search for a flow to evict goes on.
    evict_at: usize,
}

impl<E: Ends> Shelf<E> {
    /// Reserves address space for `capacity` flows, and as many with parts; memory is used as flows arrive.
    pub(crate) fn new(capacity: usize, parts: usize) -> Self {
        let (mut entries, mut first_ns, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        let mut index = Index::new().with_most(capacity);
        index.reserve();
        // If the system does not reserve that much, the tables grow when needed.
        let _ = entries.try_reserve_exact(capacity);
        let _ = first_ns.try_reserve_exact(capacity);
        let _ = reported.try_reserve_exact(parts);
        Self {
            index,
            entries,
            first_ns,
            facts: Vec::new(),
            spare_facts: Vec::new(),
            tcp: Connections::default(),
            requests: Requests::default(),
            reported,
            sliced: Vec::new(),
            statistics: Slab::default(),
            fact_bytes: 0,
            carried: HashMap::new(),
            sweep_below: None,
            swept: false,
            evict_at: 0,
        }
    }

    /// Reserves address space for the performance of this number of flows.
    pub(crate) fn reserve_tcp(&mut self, flows: usize) {
        self.tcp.reserve(flows);
        self.requests.reserve(flows);
    }

    /// Reserves address space for the slices of this number of flows.
    pub(crate) fn reserve_slices(&mut self, flows: usize) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.sliced.try_reserve_exact(flows);
    }

    /// Reserves address space for the statistics of this number of flows.
    pub(crate) fn reserve_statistics(&mut self, flows: usize, measure: &Measure) {
        self.statistics.reserve(flows, measure);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Prefetches the index word of a flow; both words if flows are `moving`.
    #[inline(always)]
    pub(crate) fn prefetch_word(&self, hash: u32, moving: bool) {
        self.index.prefetch(hash);
        if moving {
            self.index.prefetch_before(hash);
        }
    }

    /// Whether flows are moving to a larger index.
    pub(crate) fn is_moving(&self) -> bool {
        self.index.is_moving()
    }

    /// Where the flow seems to be; prefetches that entry, and with `has_beside` what lies beside it.
    #[inline(always)]
    pub(crate) fn prefetch_entry(&self, hash: u32, has_beside: bool) -> Option<u32> {
        let at = self.index.find(hash, |_| true)?;
        if let Some(entry) = self.entries.get(at) {
            prefetch(entry);
            // An IPv6 entry spans two lines.
            if size_of::<Entry<E>>() > 64 {
                prefetch(entry.tail());
            }
        }
        if has_beside {
            self.tcp.prefetch(at);
            self.reported.get(at).inspect(|reported| prefetch(*reported));
            self.sliced.get(at).inspect(|sliced| prefetch(*sliced));
            self.statistics.prefetch(at);
        }
        Some(at as u32)
    }

    /// Whether there are more counts of connections than caches hold.
    #[inline(always)]
    pub(crate) fn has_many_counts(&self) -> bool {
        self.tcp.has_many_counts()
    }

    /// Prefetches what the next packet of a flow may need behind its statistics and its connection.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, at: u32) {
        self.tcp.prefetch_behind(at as usize);
        self.statistics.prefetch_behind(at as usize);
    }

    /// Adds the payload of a packet that was counted on a flow to the first octets of its direction.
    pub(crate) fn add_octets(
        &mut self,
        at: usize,
        direction: usize,
        payload: &[u8],
        measure: &Measure,
    ) {
        self.statistics.add_octets(at, direction, payload, measure);
    }

    /// The packet's flow and its direction there, if it is live. `same` compares what the key does
    /// not contain.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        key: &Key<E>,
        arrival: &Arrival<'_>,
        rules: &Rules,
        mut same: impl FnMut(u16) -> bool,
    ) -> Option<(usize, usize)> {
        let Arrival { hash, likely, .. } = *arrival;
        if let Some(at) = likely
            && let Some(direction) = self.direction(at as usize, key, rules, &mut same)
        {
            return Some((at as usize, direction));
        }
        // A copy, so that the usual case keeps the key in registers.
        let (key, mut found) = (*key, 0);
        let is_it = |at| match self.direction(at, &key, rules, &mut same) {
            Some(direction) => {
                found = direction;
                true
            }
            None => false,
        };
        let at = self.index.find(hash, is_it)?;
        Some((at, found))
    }

    /// A packet's direction on the flow at a position, if that is its flow.
    #[inline(always)]
    fn direction(
        &self,
        at: usize,
        key: &Key<E>,
        rules: &Rules,
        same: &mut impl FnMut(u16) -> bool,
    ) -> Option<usize> {
        let entry = self.entries.get(at)?;
        entry.direction(key, rules.uniflow).filter(|_| same(entry.path))
    }

    /// Counts the packet on a live flow, or ends that flow and counts it on the next one of the
    /// same key. Returns the packet's direction.
    #[inline(always)]
    pub(crate) fn update(
        &mut self,
        at: usize,
        mut direction: usize,
        packet: &PacketRecord,
        rules: &Rules,
        observer: &mut impl Observer,
    ) -> usize {
        let mut entry = &mut self.entries[at];
        if let Some(reason) = ends_before(entry, || self.first_ns[at], packet, rules) {
            direction = self.restart(at, direction, packet, reason, rules, observer);
            entry = &mut self.entries[at];
        }
        if rules.has_more {
            self.count_more(at, direction, packet, rules, observer);
            entry = &mut self.entries[at];
        }
        if entry.would_overflow(packet, direction) {
            self.carry_over(at);
            entry = &mut self.entries[at];
        }
        if entry.count(packet, direction) {
            note(entry, packet, observer);
        } else {
            // Packets may be out of order: the minimum.
            self.first_ns[at] = self.first_ns[at].min(packet.ts_ns);
            entry.age();
            observer.late(packet, entry.stamp());
        }
        direction
    }

    /// Before a packet is counted: reports the part and the slice before it, and counts it in the statistics.
    #[inline]
    fn count_more(
        &mut self,
        at: usize,
        direction: usize,
        packet: &PacketRecord,
        rules: &Rules,
        observer: &mut impl Observer,
    ) {
        if rules.cut_ns > 0 {
            self.cut_before(at, packet.ts_ns, rules, observer);
        }
        if rules.slice_ns > 0 && !self.sliced[at].has(packet.ts_ns, rules.slice_ns) {
            self.slice(at, rules, observer);
            self.sliced[at].turn_to(packet.ts_ns, rules.slice_ns);
        }
        if rules.measure.packets.is_some() {
            self.statistics.count(at, direction, packet, &rules.measure);
        }
    }

    /// Before a packet of this time is counted: reports the part of another window, if one is open.
    #[inline]
    fn cut_before(&mut self, at: usize, ts_ns: u64, rules: &Rules, observer: &mut impl Observer) {
        if self.reported[at].extend(ts_ns, ts_ns, rules.cut_ns) {
            return;
        }
        if self.reported[at].is_open() {
            self.cut(at, rules, observer);
        }
        self.reported[at].open(ts_ns, rules.cut_ns);
    }

    /// Reports the packets since the last cut as a part of a flow that goes on.
    #[cold]
    fn cut(&mut self, at: usize, rules: &Rules, observer: &mut impl Observer) {
        // What a closed connection may still get is not expected, so its part has the reason of the whole.
        let reason =
            if self.entries[at].is_closed() { EndReason::EndDetected } else { EndReason::Active };
        let mut record = self.since_cut(at, rules, reason);
        if let Some(sliced) = self.sliced.get_mut(at) {
            sliced.clear(&[record.packets, record.octets]);
        }
        self.name_application(at, &mut record, rules);
        observer.part(&record);
        let facts = self.facts.get(at).map_or((0, 0), |facts| (facts.len(), facts.beyond()));
        self.reported[at].add(record, facts);
        self.entries[at].clear_packets();
        self.tcp.cut(at);
        self.requests.cut(at);
        self.statistics.restart(at, &rules.measure);
    }

    /// What the entry has counted, with what was carried over.
    #[inline(always)]
    fn counted(&self, at: usize) -> Counted {
        let entry = &self.entries[at];
        let mut all = entry.counters();
        if !self.carried.is_empty()
            && let Some(carried) = self.carried.get(&(entry.key(), entry.path))
        {
            for (own, more) in all.as_flattened_mut().iter_mut().zip(carried.as_flattened()) {
                *own = own.wrapping_add(*more);
            }
        }
        all
    }

    /// Reports the packets since the last slice, if there are any, as a slice of a flow that goes on.
    #[cold]
    fn slice(&mut self, at: usize, rules: &Rules, observer: &mut impl Observer) {
        let all = self.counted(at);
        let Some(since) = self.sliced[at].since(&all) else { return };
        let of = self.sliced[at].next(self.first_ns[at]);
        let (entry, carried) = (&self.entries[at], [[0; 2]; 2]);
        let mut record = entry.record(self.first_ns[at], carried, &rules.ways, EndReason::Active);
        self.sliced[at].cut_out(&mut record, since, rules.slice_ns);
        self.sliced[at].add(all);
        self.name_application(at, &mut record, rules);
        if let Some(facts) = self.facts.get_mut(at) {
            record.facts = std::mem::take(facts);
        }
        observer.slice(&record, of);
        if let Some(facts) = self.facts.get_mut(at) {
            *facts = record.facts;
        }
    }

    /// Before the record of a flow is passed on: reports the packets since the last slice, if there are any.
    #[inline(never)]
    fn last_slice(
        &self,
        at: usize,
        rules: &Rules,
        all: &Counted,
        record: &mut FlowRecord,
        observer: &mut impl Observer,
    ) {
        let sliced = &self.sliced[at];
        if !sliced.any() {
            observer.slice(record, Slice::Whole);
        } else if let Some(since) = sliced.since(all) {
            let whole = (record.packets, record.octets, record.first_ns, record.last_ns);
            sliced.cut_out(record, since, rules.slice_ns);
            observer.slice(record, Slice::Later { flow_first_ns: whole.2 });
            (record.packets, record.octets, record.first_ns, record.last_ns) = whole;
        }
    }

    /// The record of the packets since the last cut; their carried-over counts are removed.
    fn since_cut(&mut self, at: usize, rules: &Rules, reason: EndReason) -> FlowRecord {
        let carried = self.take_carried(at);
        let (entry, reported) = (&self.entries[at], &self.reported[at]);
        let (first_ns, last_ns) = reported.times().unwrap_or((entry.last_ns, entry.last_ns));
        let mut record = entry.record(first_ns, carried, &rules.ways, reason);
        record.last_ns = last_ns;
        record.part = Some(reported.part(self.first_ns[at]));
        if let Some(facts) = self.facts.get(at) {
            record.facts = reported.facts_since(facts);
        }
        self.add_measured(at, &mut record);
        record
    }

    /// Adds what is measured of the flow since its last part.
    #[inline(always)]
    fn add_measured(&self, at: usize, record: &mut FlowRecord) {
        record.tcp = self.performance(at);
        record.responses = self.requests.times(at);
        record.statistics = self.statistics.get(at);
    }

    /// The performance of the TCP connection since its last part.
    #[inline(always)]
    fn performance(&self, at: usize) -> Option<TcpPerformance> {
        let octets = self.requests.octets(at);
        self.tcp.performance(at).map(|own| TcpPerformance { octets, ..own })
    }

    /// Adds the application that follows from all facts of the flow so far.
    fn name_application(&self, at: usize, record: &mut FlowRecord, rules: &Rules) {
        record.application = self.application(at, &record.key, rules);
    }

    /// The application of a flow of this key.
    #[inline(always)]
    fn application(&self, at: usize, key: &FlowKey, rules: &Rules) -> Option<Application> {
        let FlowKey { protocol, src_port, dst_port, .. } = *key;
        let none = Facts::default();
        let facts = self.facts.get(at).unwrap_or(&none);
        rules.names.as_ref()?.application(protocol, [src_port, dst_port], facts)
    }

    /// Counts packets that differ from the flow's latest only in time and length, all at once;
    /// false, without any effect, if they must be counted one by one.
    pub(crate) fn extend(
        &mut self,
        at: usize,
        direction: usize,
        run: &[PacketRecord],
        rules: &Rules,
        observer: &mut impl Observer,
    ) -> bool {
        let entry = &mut self.entries[at];
        let Some(last) = run.last() else { return false };
        // A large flow is old, but must still be counted in runs.
        let cut = entry.may_be_old(last, rules.calm_until_ns)
            && last.ts_ns.saturating_sub(self.first_ns[at]) >= rules.active_ns;
        let one_by_one = cut
            || entry.is_closed()
            || run[0].ts_ns < entry.last_ns
            || last.ts_ns - entry.last_ns > rules.harmless_ns;
        let mut crosses = || {
            rules.slice_ns > 0 && !self.sliced[at].has(last.ts_ns, rules.slice_ns)
                || rules.cut_ns > 0
                    && !self.reported[at].extend(run[0].ts_ns, last.ts_ns, rules.cut_ns)
        };
        if one_by_one || rules.has_more && crosses() || !entry.count_run(run, direction) {
            return false;
        }
        if rules.measure.packets.is_some() {
            let count = |packet| self.statistics.count(at, direction, packet, &rules.measure);
            run.iter().for_each(count);
        }
        run.iter().for_each(|packet| note(entry, packet, observer));
        true
    }

    /// Begins a flow with its first packet. Returns its position, and the packet's direction.
    pub(crate) fn begin(
        &mut self,
        key: Key<E>,
        packet: &PacketRecord,
        hash: u32,
        rules: &Rules,
        observer: &mut impl Observer,
    ) -> (usize, usize) {
        let at = self.entries.len();
        self.index.push(hash);
        self.first_ns.push(packet.ts_ns);
        self.entries.push(Entry::blank(&key));
        if rules.tcp {
            self.tcp.push();
            self.requests.push();
        }
        if rules.cut_ns > 0 {
            self.reported.push(Reported::NOTHING);
            self.reported[at].open(packet.ts_ns, rules.cut_ns);
        }
        if rules.slice_ns > 0 {
            self.sliced.push(Sliced::new(packet.ts_ns, rules.slice_ns));
            observer.begun(packet);
        }
        let entry = &mut self.entries[at];
        let direction = entry.begin(packet, key, rules.uniflow);
        if rules.measure.packets.is_some() {
            self.statistics.push(&rules.measure);
            self.statistics.count(at, direction, packet, &rules.measure);
        }
        if packet.ts_ns.saturating_add(rules.active_ns) < rules.calm_until_ns {
            entry.age();
        }
        entry.count(packet, direction);
        note(entry, packet, observer);
        (at, direction)
    }

    /// Ends a flow and begins the next one of the same key in its entry.
    #[cold]
    fn restart(
        &mut self,
        at: usize,
        direction: usize,
        packet: &PacketRecord,
        reason: EndReason,
        rules: &Rules,
        observer: &mut impl Observer,
    ) -> usize {
        self.end(at, rules, reason, observer);
        self.first_ns[at] = packet.ts_ns;
        if let Some(reported) = self.reported.get_mut(at) {
            *reported = Reported::NOTHING;
        }
        if let Some(sliced) = self.sliced.get_mut(at) {
            *sliced = Sliced::new(packet.ts_ns, rules.slice_ns);
            observer.begun(packet);
        }
        let old = self.entries[at];
        self.tcp.restart(at, reason == EndReason::Active);
        self.requests.restart(at, reason == EndReason::Active);
        self.statistics.restart(at, &rules.measure);
        let direction = if reason == EndReason::Active {
            self.entries[at] = old.continued(packet);
            direction
        } else {
            let key = if direction == 0 { old.key() } else { old.key().reversed() };
            self.entries[at] = Entry::blank(&key);
            self.entries[at].begin(packet, key, rules.uniflow)
        };
        if packet.ts_ns.saturating_add(rules.active_ns) < rules.calm_until_ns {
            self.entries[at].age();
        }
        direction
    }

    /// Passes the record of a flow to the observer.
    #[inline(always)]
    fn end(&mut self, at: usize, rules: &Rules, reason: EndReason, observer: &mut impl Observer) {
        let stamp = self.entries[at].stamp();
        let counted = if rules.slice_ns > 0 { self.counted(at) } else { [[0; 2]; 2] };
        let mut record = if rules.cut_ns > 0 {
            self.whole(at, rules, reason, observer)
        } else {
            self.record(at, rules, reason)
        };
        if rules.slice_ns > 0 {
            self.last_slice(at, rules, &counted, &mut record, observer);
        }
        observer.ended(&record, stamp);
        self.statistics.reuse(record.statistics.take());
        if !record.facts.is_empty() && self.spare_facts.len() < SPARE_MAX {
            record.facts.clear();
            self.spare_facts.push(record.facts);
        }
    }

    /// Reports what no part and no slice of a live flow has, and returns the flow as the next run gets it.
    fn kept(&mut self, at: usize, rules: &Rules, observer: &mut impl Observer) -> OpenFlow {
        if rules.slice_ns > 0 {
            self.slice(at, rules, observer);
        }
        if rules.cut_ns > 0 && self.reported[at].is_open() {
            self.cut(at, rules, observer);
        }
        let (state, carried) = (self.entries[at].saved_state(), self.take_carried(at));
        let back = self.entries[at].back().map(|number| *rules.ways.get(number));
        let first_ns = self.first_ns[at];
        let mut record = self.entries[at].record(first_ns, carried, &rules.ways, EndReason::Forced);
        self.add_measured(at, &mut record);
        let mut earlier = (0, 0);
        if let Some(reported) = self.reported.get(at) {
            let part = reported.part(first_ns);
            record = FlowRecord { part: Some(part), ..reported.joined(record) };
            earlier = reported.facts();
        }
        record.facts = self.take_facts(at);
        let connection = self.tcp.saved(at);
        let requests = self.requests.saved(at);
        OpenFlow { record, state, reported: earlier, back, connection, requests }
    }

    /// Takes up a flow of another run. `key` is its key, `paths` the numbers of its path and of the known one of the other
    /// direction.
    pub(crate) fn restore(
        &mut self,
        flow: &OpenFlow,
        key: &Key<E>,
        hash: u32,
        paths: (u16, Option<u16>),
        rules: &Rules,
    ) {
        let (at, record) = (self.entries.len(), &flow.record);
        self.index.push(hash);
        self.first_ns.push(record.first_ns);
        let mut entry = Entry::restored(flow, key, paths, rules.cut_ns == 0);
        let fits = rules.cut_ns > 0 || entry.set_counters([record.packets, record.octets]);
        self.entries.push(entry);
        if !fits {
            self.carried.insert((*key, paths.0), [record.packets, record.octets]);
        }
        if rules.tcp {
            self.tcp.push_saved(&flow.connection);
            self.requests.push_saved(&flow.requests);
        }
        if rules.measure.packets.is_some() {
            // If flows are cut, earlier parts have them.
            match record.statistics.as_deref().filter(|_| rules.cut_ns == 0) {
                Some(saved) => self.statistics.push_saved(saved, &rules.measure),
                None => self.statistics.push(&rules.measure),
            }
        }
        if let (1.., Some(part)) = (rules.cut_ns, record.part) {
            self.reported.push(Reported::restored(flow, part));
        }
        if rules.slice_ns > 0 {
            let counted = self.counted(at);
            self.sliced.push(Sliced::restored(record.last_ns, counted, rules.slice_ns));
        }
        if !record.facts.is_empty() {
            self.facts.resize_with(at + 1, Facts::default);
            self.facts[at] = record.facts.clone();
            self.fact_bytes += record.facts.size();
        }
    }

    /// Every live flow: its key, its stamp, and the time of its latest packet.
    pub(crate) fn each_live(&self, each: &mut impl FnMut(&FlowKey, u16, u64)) {
        for entry in &self.entries {
            each(&entry.flow_key(), entry.stamp(), entry.last_ns);
        }
    }

    /// The record of every live flow, as if it were forced to end, with its class.
    pub(crate) fn each_record(&self, rules: &Rules, each: &mut impl FnMut(FlowRecord, Class)) {
        for (at, entry) in self.entries.iter().enumerate() {
            let carried = self.carried.get(&(entry.key(), entry.path)).copied().unwrap_or_default();
            let first_ns = self.first_ns[at];
            let mut record = entry.record(first_ns, carried, &rules.ways, EndReason::Forced);
            self.add_measured(at, &mut record);
            if let Some(reported) = self.reported.get(at) {
                record = reported.joined(record);
            }
            record.facts = self.facts.get(at).cloned().unwrap_or_default();
            each(record, entry.class());
        }
    }

    /// The record of every live flow with the packets that no slice has, if there are any, and its application.
    pub(crate) fn each_unsliced(&self, rules: &Rules, each: &mut impl FnMut(&FlowRecord)) {
        let mut at = 0;
        self.each_record(rules, &mut |mut record, _| {
            let counted = match self.sliced.get(at) {
                Some(sliced) => sliced.since(&self.counted(at)).map(|since| {
                    sliced.cut_out(&mut record, since, rules.slice_ns);
                }),
                None => Some(()),
            };
            self.name_application(at, &mut record, rules);
            at += 1;
            counted.into_iter().for_each(|()| each(&record));
        });
    }

    /// Reports the last part of a flow that ends, unless the parts before say all. Returns the record of the whole flow.
    #[inline(never)]
    fn whole(
        &mut self,
        at: usize,
        rules: &Rules,
        reason: EndReason,
        observer: &mut impl Observer,
    ) -> FlowRecord {
        let own = self.reported[at].part(self.first_ns[at]);
        // Most flows have one part, which has all of their facts.
        let mut last = if own.number == 0 {
            FlowRecord { part: Some(own), ..self.record(at, rules, reason) }
        } else {
            let mut last = self.since_cut(at, rules, reason);
            self.name_application(at, &mut last, rules);
            last
        };
        if self.reported[at].is_open() {
            observer.part(&last);
            // Otherwise the flow would seem to have ended by silence.
            if reason == EndReason::Active {
                observer.part(&last.without_packets(Part { number: own.number + 1, ..own }));
            }
        } else if self.reported[at].is_ended_by_other(reason) {
            observer.part(&last.without_packets(own));
        }
        if own.number > 0 {
            last = self.reported[at].joined(last);
            last.facts = self.take_facts(at);
        }
        last.part = None;
        last
    }

    /// The carried-over packets and octets of a flow.
    #[inline(always)]
    fn take_carried(&mut self, at: usize) -> [[u64; 2]; 2] {
        if self.carried.is_empty() {
            return [[0; 2]; 2];
        }
        let entry = &self.entries[at];
        self.carried.remove(&(entry.key(), entry.path)).unwrap_or_default()
    }

    /// The facts of a flow that ends.
    fn take_facts(&mut self, at: usize) -> Facts {
        let facts = self.facts.get_mut(at).map(std::mem::take).unwrap_or_default();
        self.fact_bytes -= facts.size();
        facts
    }

    /// The record of a flow that ends; its carried-over counts are removed.
    fn record(&mut self, at: usize, rules: &Rules, reason: EndReason) -> FlowRecord {
        let carried = self.take_carried(at);
        let application = self.application(at, &self.entries[at].flow_key(), rules);
        let (tcp, responses) = (self.performance(at), self.requests.times(at));
        let (statistics, facts) = (self.statistics.get(at), self.take_facts(at));
        // After the calls above, so that the record is written in its place and not copied.
        let (entry, first_ns) = (&self.entries[at], self.first_ns[at]);
        let own = entry.record(first_ns, carried, &rules.ways, reason);
        FlowRecord { facts, application, tcp, responses, statistics, ..own }
    }

    /// The position of the flow of the packet just counted, and the packet's direction.
    pub(crate) fn place_of(
        &self,
        arrival: &Arrival<'_>,
        rules: &Rules,
        same: impl FnMut(u16) -> bool,
    ) -> Option<(usize, usize)> {
        self.find(&Key::of(arrival.packet, arrival.ports), arrival, rules, same)
    }

    /// Whether the sender of this direction of the flow at a position opened its TCP connection; `None`: no SYN was seen.
    pub(crate) fn is_client(&self, at: usize, direction: usize, rules: &Rules) -> Option<bool> {
        self.entries.get(at)?.is_client(direction, rules.uniflow)
    }

    /// Adds a fact to the flow at a position, if it takes at most `room` bytes; `None`: not enough
    /// room.
    pub(crate) fn add_fact(
        &mut self,
        at: usize,
        (kind, value): (Kind, &[u8]),
        room: usize,
    ) -> Option<Added> {
        if self.facts.len() <= at {
            self.facts.resize_with(at + 1, Facts::default);
        }
        let facts = &mut self.facts[at];
        let was_empty = facts.is_empty();
        if was_empty {
            *facts = self.spare_facts.pop().unwrap_or_default();
        }
        let added = facts.add(kind, value, room).ok();
        if was_empty && facts.is_empty() {
            self.spare_facts.push(std::mem::take(facts));
        }
        match added {
            Some(Added::New(bytes)) => self.fact_bytes += bytes,
            Some(Added::Replaced { more, at: from }) => {
                if let Some(reported) = self.reported.get_mut(at) {
                    reported.fact_moved(from);
                }
                self.fact_bytes = self.fact_bytes.saturating_add_signed(more);
            }
            _ => {}
        }
        added
    }

    /// Measures the segment of a packet that was counted on this flow.
    #[inline(always)]
    pub(crate) fn measure(
        &mut self,
        at: usize,
        direction: usize,
        arrival: &Arrival<'_>,
        segment: &Segment,
        rules: &Rules,
        observer: &mut impl Observer,
    ) {
        let packet = arrival.packet;
        let news = self.tcp.on_segment(at, packet, segment, direction);
        if news.begins {
            self.requests.begin(at);
        }
        if segment.data_len == 0 {
            return;
        }
        // Data of a RST is a text for people, and takes no sequence numbers.
        let octets = if packet.tcp_flags & RST == 0 { segment.data_len } else { 0 };
        let data = Data {
            side: direction,
            octets,
            ns: packet.ts_ns,
            news,
            has_message: arrival.has_facts,
        };
        let entry = &self.entries[at];
        let is_client = || entry.is_client(direction, rules.uniflow);
        if let Some(time_us) = self.requests.on_data(at, &data, is_client) {
            self.respond(at, direction, Exchange::Tcp, Some(time_us), rules, observer);
        }
    }

    /// Handles a fact of a packet in this direction, as far as response times follow from it. `began_ns`: the time of the
    /// first packet of its message.
    pub(crate) fn on_message(
        &mut self,
        at: usize,
        direction: usize,
        (kind, value): (Kind, &[u8]),
        [began_ns, now_ns]: [u64; 2],
        rules: &Rules,
        observer: &mut impl Observer,
    ) {
        let own = &mut self.requests;
        let is_tcp = self.entries[at].key().protocol == TCP;
        let response = match (kind, value) {
            (Kind::DnsResponseTime, digits) => {
                let digits = std::str::from_utf8(digits).ok();
                digits
                    .and_then(|digits| digits.parse().ok())
                    .map(|time_us| (Exchange::Dns, Some(time_us)))
            }
            _ if !is_tcp => None,
            (Kind::DnsKind, _) => {
                own.settle(at);
                None
            }
            (Kind::HttpKind, b"request") | (Kind::TlsKind, b"client") => {
                own.on_request(at, direction, now_ns, kind == Kind::TlsKind);
                None
            }
            // An interim response (RFC 9110, section 15.2), which another one follows.
            (Kind::HttpStatus, [b'1', rest @ ..]) if rest != b"01" => None,
            (Kind::HttpStatus, _) => {
                let time_us = own.on_response(at, direction, began_ns, false);
                time_us.map(|time_us| (Exchange::Http, time_us))
            }
            (Kind::TlsKind, b"server") => {
                let time_us = own.on_response(at, direction, began_ns, true);
                time_us.map(|time_us| (Exchange::Tls, time_us))
            }
            _ => None,
        };
        if let Some((exchange, time_us)) = response {
            self.respond(at, direction, exchange, time_us, rules, observer);
        }
    }

    /// Adds a response to its flow if it has a time, and passes it to the observer. The server sent the packet of this direction.
    #[cold]
    fn respond(
        &mut self,
        at: usize,
        direction: usize,
        exchange: Exchange,
        time_us: Option<u64>,
        rules: &Rules,
        observer: &mut impl Observer,
    ) {
        if let Some(time_us) = time_us {
            self.requests.add(at, time_us);
        }
        let key = self.entries[at].flow_key();
        observer.response(Response {
            key,
            from_source: direction == 0,
            exchange,
            time_us,
            rtt_us: self.tcp.rtt_us(at, 1 - direction),
            application: self.application(at, &key, rules),
        });
    }

    /// Adds the entry's counters to the carried-over ones, which cannot overflow.
    #[cold]
    fn carry_over(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        let [packets, octets] = entry.take_counters();
        let sums = self.carried.entry((entry.key(), entry.path)).or_default();
        for side in 0..2 {
            sums[0][side] += packets[side];
            sums[1][side] = sums[1][side].wrapping_add(octets[side]);
        }
    }

    /// Makes room: evicts the longest silent of the next eight entries.
    #[cold]
    pub(crate) fn evict(&mut self, rules: &Rules, observer: &mut impl Observer) {
        let len = self.entries.len();
        let victim = (0..len.min(8))
            .map(|step| (self.evict_at + step) % len)
            .min_by_key(|&position| self.entries[position].last_ns)
            .unwrap_or(0);
        self.evict_at = (self.evict_at + 8) % len;
        self.end(victim, rules, EndReason::LackOfResources, observer);
        self.index.swap_remove(victim);
        self.take_out(victim);
    }

    /// Removes a flow whose record was made; the last one takes its place.
    fn take_out(&mut self, at: usize) {
        self.entries.swap_remove(at);
        self.first_ns.swap_remove(at);
        // The flow's own facts went into its record.
        if self.facts.len() > self.entries.len() {
            self.facts.swap_remove(at);
        }
        self.tcp.swap_remove(at);
        self.requests.swap_remove(at);
        self.statistics.swap_remove(at);
        if at < self.reported.len() {
            self.reported.swap_remove(at);
        }
        if at < self.sliced.len() {
            self.sliced.swap_remove(at);
        }
    }

    /// Ends every flow that has expired by `now_ns`, checking up to `most` entries. Returns true
    /// when all have been checked; until then the caller repeats the call and does nothing in
    /// between.
    pub(crate) fn sweep(
        &mut self,
        now_ns: u64,
        most: usize,
        rules: &Rules,
        observer: &mut impl Observer,
    ) -> bool {
        let below = self.sweep_below.take().unwrap_or(self.entries.len());
        let stop = below.saturating_sub(most);
        // Downwards: the entry that fills a gap comes from above and has been checked.
        for at in (stop..below).rev() {
            if let Some(reason) = self.entries[at].expired(now_ns, &rules.idle_ns) {
                self.end(at, rules, reason, observer);
                self.index.swap_remove_later(at);
                self.take_out(at);
                self.swept = true;
            } else {
                if self.first_ns[at].saturating_add(rules.active_ns) < rules.calm_until_ns {
                    self.entries[at].age();
                }
                if rules.cut_ns > 0 && self.reported[at].is_over(now_ns, rules.cut_ns) {
                    self.cut(at, rules, observer);
                }
                if rules.slice_ns > 0 && self.sliced[at].is_over(now_ns, rules.slice_ns) {
                    self.slice(at, rules, observer);
                }
            }
        }
        if stop > 0 {
            self.sweep_below = Some(stop);
        } else if std::mem::take(&mut self.swept) {
            self.index.rebuild();
        }
        stop == 0
    }

    /// Ends all flows, up to `most` a call: expired and closed ones with their reason, all others
    /// as forced. Those that have not expired go to `keep` instead, if it is there. Returns their number.
    pub(crate) fn drain(
        &mut self,
        now_ns: u64,
        most: usize,
        rules: &Rules,
        observer: &mut impl Observer,
        mut keep: Option<&mut dyn FnMut(OpenFlow)>,
    ) -> u64 {
        let (len, mut alive) = (self.entries.len(), 0);
        let left = len.saturating_sub(most);
        for at in (left..len).rev() {
            let entry = &self.entries[at];
            if let (Some(keep), None) = (&mut keep, entry.expired(now_ns, &rules.idle_ns)) {
                alive += 1;
                keep(self.kept(at, rules, observer));
                continue;
            }
            let reason = entry.expired(now_ns, &rules.idle_ns).unwrap_or_else(|| {
                alive += 1;
                if entry.is_closed() { EndReason::EndDetected } else { EndReason::Forced }
            });
            self.end(at, rules, reason, observer);
        }
        self.index.clear();
        self.entries.truncate(left);
        self.first_ns.truncate(left);
        self.facts.truncate(left);
        self.tcp.truncate(left);
        self.requests.truncate(left);
        self.statistics.truncate(left);
        self.reported.truncate(left);
        self.sliced.truncate(left);
        self.sweep_below = None;
        alive
    }
}

/// Calls the observer, with the entry's stamp.
#[inline(always)]
fn note<E: Ends>(entry: &mut Entry<E>, packet: &PacketRecord, observer: &mut impl Observer) {
    let old = entry.stamp();
    let mut stamp = old;
    observer.counted(packet, &mut stamp);
    if stamp != old {
        entry.set_stamp(stamp);
    }
}

/// Why `packet` cannot be counted on this flow any more, if so. Checked before the update, so that
/// no flow exceeds its active timeout (except by a late packet at its beginning).
#[inline(always)]
fn ends_before<E: Ends>(
    entry: &Entry<E>,
    first_ns: impl FnOnce() -> u64,
    packet: &PacketRecord,
    rules: &Rules,
) -> Option<EndReason> {
    if let Some(reason) = entry.expired(packet.ts_ns, &rules.idle_ns) {
        return Some(reason);
    }
    if entry.may_be_old(packet, rules.calm_until_ns)
        && packet.ts_ns.saturating_sub(first_ns()) >= rules.active_ns
    {
        return Some(EndReason::Active);
    }
    entry.is_begun_anew(packet).then_some(EndReason::EndDetected)
}
