//! The flow table: every live flow of one shard, on a [`Shelf`] for IPv4 and one for IPv6.
//!
//! A burst is handled in groups. While one is counted, the entries of the next and the index words
//! of the one after that are being loaded into the cache:
//!
//! ```text
//! hashes, prefetch words     group 3   group 4   group 5
//! words, prefetch entries    group 2   group 3   group 4
//! updates, in order          group 1   group 2   group 3   ─▶ time
//! ```
//!
//! Not done: storing entries in the index itself (one miss less for a lone packet), because without
//! gaps a sweep is sequential and a flow takes 64 + 8 bytes (IPv6 88 + 8) and 12 to 20 of index, up
//! to 30 before and after that grows.

use std::ops::Range;
use std::sync::Arc;

use ringtap_extract::{Added, Kind, Names};
use ringtap_stage::{Attachments, Cursor};
use ringtap_wire::{Flags, HashKey, PacketRecord, Paths, Segment};

use crate::ends::{Ends, V4, V6};
use crate::entry::Key;
use crate::index::Index;
use crate::shelf::{Arrival, Rules, Shelf};
use crate::statistics::{Measure, Room};
use crate::{Class, FlowKey, FlowRecord, IpVersion, Observer, OpenFlow, Timeouts};

/// Packets whose cache misses overlap.
const GROUP: usize = 32;

/// What is known of a packet before it is counted.
#[derive(Clone, Copy, Default)]
struct Slot {
    ports: u32,
    hash: u32,
    /// Where the flow seemed to be.
    likely: Option<u32>,
}

/// The packets of a group.
type Stage = [Slot; GROUP];

/// Definition of a flow and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metering {
    /// When flows end.
    pub timeouts: Timeouts,
    /// Whether each direction is a flow; otherwise both directions are one flow (RFC 5103).
    pub uniflow: bool,
    /// Whether VLANs (the two outermost tags) separate flows.
    pub vlan_in_key: bool,
    /// Live flows are cut into parts ([`Observer::part`]) at multiples of this time since 1970, nanoseconds.
    pub cut_ns: Option<u64>,
}

/// Counters of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactCounts {
    /// Kept, by [`Kind`].
    pub kept: [u64; Kind::ALL.len()],
    /// Dropped, because the flow had the maximum of the kind.
    pub beyond: u64,
    /// Dropped, because the memory for facts was used up.
    pub no_room: u64,
}

impl Default for FactCounts {
    fn default() -> Self {
        Self { kept: [0; Kind::ALL.len()], beyond: 0, no_room: 0 }
    }
}

impl FactCounts {
    /// Adds the counters of another shard.
    pub fn add(&mut self, other: &Self) {
        self.kept.iter_mut().zip(other.kept).for_each(|(own, more)| *own += more);
        self.beyond += other.beyond;
        self.no_room += other.no_room;
    }
}

/// All live flows of one shard.
pub struct FlowTable {
    v4: Shelf<V4>,
    v6: Shelf<V6>,
    /// Most flows of both versions together.
    capacity: usize,
    rules: Rules,
    vlans: Option<Vlans>,
    hash_key: HashKey,
    facts: FactCounts,
    /// Items of the last burst with facts whose kind depends on the side, and whether the client sent them.
    sides: Vec<(usize, bool)>,
    /// Bytes that the facts of live flows may take.
    fact_room: usize,
    /// Whether the current sweep has finished IPv4.
    swept_v4: bool,
}

impl FlowTable {
    /// Most live flows of any table.
    pub const MOST: usize = Index::MOST;

    /// A table for at most `capacity` live flows (at least 1). Reserves address space for all of
    /// them; memory is used as flows arrive.
    pub fn new(capacity: usize, metering: &Metering, hash_key: HashKey, paths: Arc<Paths>) -> Self {
        let capacity = capacity.clamp(1, Self::MOST);
        let cut_ns = metering.cut_ns.unwrap_or(0);
        let parts = if cut_ns > 0 { capacity } else { 0 };
        Self {
            v4: Shelf::new(capacity, parts),
            v6: Shelf::new(capacity, parts),
            capacity,
            vlans: metering.vlan_in_key.then(|| Vlans::new(Arc::clone(&paths))),
            rules: Rules::new(&metering.timeouts, metering.uniflow, cut_ns, paths),
            hash_key,
            facts: FactCounts::default(),
            sides: Vec::new(),
            fact_room: usize::MAX,
            swept_v4: false,
        }
    }

    /// The same table with `bytes` of memory for the facts of live flows.
    pub fn with_fact_room(self, bytes: usize) -> Self {
        Self { fact_room: bytes, ..self }
    }

    /// The same table; records get their applications from the list.
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.rules.names = Some(names);
        self
    }

    /// Records get their applications from another list, if they have applications.
    pub fn set_names(&mut self, names: &Arc<Names>) {
        self.rules.names.iter_mut().for_each(|own| *own = Arc::clone(names));
    }

    /// The same table; the performance of TCP connections is measured, from the segments of packets, and response times.
    pub fn with_tcp(mut self, measured: bool) -> Self {
        self.rules.tcp = measured;
        if measured {
            self.v4.reserve_tcp(self.capacity);
            self.v6.reserve_tcp(self.capacity);
        }
        self
    }

    /// The same table; flows are sliced ([`Observer::slice`]) by intervals of this length since 1970, nanoseconds, if there
    /// is one.
    pub fn with_slices(mut self, every_ns: Option<u64>) -> Self {
        self.rules.slice_ns = every_ns.unwrap_or(0);
        if self.rules.slice_ns > 0 {
            self.rules.has_more = true;
            self.v4.reserve_slices(self.capacity);
            self.v6.reserve_slices(self.capacity);
        }
        self
    }

    /// The same table; records have statistics, with at most this number of first packets, if there is one, and this number
    /// of first octets of the payload of a direction, from attachments of [`Kind::OCTETS`]. The lists of live flows may take
    /// `room` bytes.
    pub fn with_statistics(mut self, packets: Option<u8>, octets: u16, room: usize) -> Self {
        let octets = if packets.is_some() { octets } else { 0 };
        self.rules.measure = Measure { packets, octets, room: Room::new(room) };
        if packets.is_some() {
            self.rules.has_more = true;
            self.v4.reserve_statistics(self.capacity, &self.rules.measure);
            self.v6.reserve_statistics(self.capacity, &self.rules.measure);
        }
        self
    }

    /// Items of the last burst with facts whose kind depends on the side, of flows whose SYN was seen, in order; and
    /// whether the client sent them.
    pub fn sides(&self) -> &[(usize, bool)] {
        &self.sides
    }

    /// Counters of facts so far.
    pub fn fact_counts(&self) -> &FactCounts {
        &self.facts
    }

    /// Live flows.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// True if no flow is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts packets on their flows, in order. Packets without addresses are ignored: those
    /// without IP, and those whose IP header is unusable. The attachments of a packet are facts of
    /// its flow, by the number of their [`Kind`].
    pub fn burst(
        &mut self,
        packets: &[PacketRecord],
        attachments: &Attachments,
        observer: &mut impl Observer,
    ) {
        self.sides.clear();
        let mut facts = attachments.cursor();
        if let (0, Some(first)) = (self.rules.calm_until_ns, packets.first()) {
            self.rules.calm_until_ns = first.ts_ns.saturating_add(self.rules.tick_ns);
        }
        // The rest is the pipeline drawn at the top of the file; a stage belongs to a group while
        // the group is in it.
        let group = |number: usize| Some((number % 3, packets.chunks(GROUP).nth(number)?));
        let mut stages = [[Slot::default(); GROUP]; 3];
        for number in 0..packets.len().div_ceil(GROUP) + 2 {
            if let Some((at, packets)) = group(number) {
                self.hash_all(packets, &mut stages[at]);
            }
            if let Some((at, packets)) = number.checked_sub(1).and_then(group) {
                self.find_all(packets, &mut stages[at]);
            }
            if let Some((at, packets)) = number.checked_sub(2).and_then(group) {
                let first = (number - 2) * GROUP;
                let mut from = 0;
                // Facts are added as soon as their packet is counted, because the next packet may
                // end the flow.
                while let Some(upto) = facts.next_item().checked_sub(first)
                    && upto < packets.len()
                {
                    let segment =
                        facts.take_kind(first + upto, Segment::KIND).and_then(Segment::from_bytes);
                    let octets = facts.take_kind(first + upto, Kind::OCTETS).unwrap_or_default();
                    // If TCP is measured, a packet with attachments is counted alone.
                    let alone = if self.rules.tcp { upto } else { upto + 1 };
                    let attached = (segment, facts.next_item() == first + upto);
                    self.count_all(from..alone, packets, &stages[at], (None, false), observer);
                    self.count_all(alone..upto + 1, packets, &stages[at], attached, observer);
                    let item = first + upto;
                    let slot = &stages[at][upto];
                    self.add_facts(&packets[upto], slot, item, octets, &mut facts, observer);
                    from = upto + 1;
                }
                self.count_all(from..packets.len(), packets, &stages[at], (None, false), observer);
            }
            if (self.rules.measure.packets.is_some()
                || self.v4.has_many_counts()
                || self.v6.has_many_counts())
                && let Some((at, packets)) = number.checked_sub(1).and_then(group)
            {
                self.prefetch_behind(packets, &stages[at]);
            }
        }
    }

    /// Adds the facts of an item of the burst, and its octets of payload, to the flow of its packet, which was just counted.
    #[cold]
    fn add_facts(
        &mut self,
        packet: &PacketRecord,
        slot: &Slot,
        item: usize,
        octets: &[u8],
        facts: &mut Cursor<'_>,
        observer: &mut impl Observer,
    ) {
        if !packet.is_ip() || packet.flags.contains(Flags::BAD_HEADER) {
            return facts.skip_to(item + 1);
        }
        let Slot { ports, hash, likely } = *slot;
        let arrival =
            &Arrival { packet, ports, hash, likely, segment: None, has_facts: true, alike: &[] };
        let Self { v4, v6, rules, vlans, sides, .. } = self;
        let mut vlan = |path| vlans.as_mut().map(|vlans| vlans.of(path));
        let wanted = vlan(packet.path);
        let same = |path| vlan(path) == wanted;
        let is_v6 = is_v6(packet);
        let place = if is_v6 {
            v6.place_of(arrival, rules, same)
        } else {
            v4.place_of(arrival, rules, same)
        };
        if let Some((at, direction)) = place {
            match is_v6 {
                true => v6.add_octets(at, direction, octets, &rules.measure),
                false => v4.add_octets(at, direction, octets, &rules.measure),
            }
        }
        let mut messages = 0;
        let began_ns = if rules.tcp { facts.find(item, Kind::BEGAN) } else { None };
        let mut began_ns = began_ns.and_then(Kind::time).unwrap_or(packet.ts_ns);
        while let Some((kind, value)) = facts.take(item) {
            let Some(mut kind) = Kind::from_number(kind) else { continue };
            messages += u32::from(kind == Kind::Protocol);
            if messages > 1 {
                began_ns = packet.ts_ns;
            }
            if let Some((at, direction)) = place.filter(|_| rules.tcp) {
                let fact = (kind, value);
                let times = [began_ns, packet.ts_ns];
                match is_v6 {
                    true => v6.on_message(at, direction, fact, times, rules, observer),
                    false => v4.on_message(at, direction, fact, times, rules, observer),
                }
            }
            // The others are in events alone.
            if kind.most() == 0 {
                continue;
            }
            if kind.has_side() {
                let client = place.and_then(|(at, direction)| match is_v6 {
                    true => v6.is_client(at, direction, rules),
                    false => v4.is_client(at, direction, rules),
                });
                if let Some(client) = client {
                    kind = kind.of_side(client);
                    sides.push((item, client));
                }
            }
            let room = self.fact_room.saturating_sub(v4.fact_bytes + v6.fact_bytes);
            let added = place.and_then(|(at, _)| match is_v6 {
                true => v6.add_fact(at, (kind, value), room),
                false => v4.add_fact(at, (kind, value), room),
            });
            match added {
                Some(Added::New(_)) => self.facts.kept[kind as usize] += 1,
                Some(Added::Known | Added::Replaced { .. } | Added::NotKept) => {}
                Some(Added::Beyond) => self.facts.beyond += 1,
                None => self.facts.no_room += 1,
            }
        }
    }

    #[inline(always)]
    fn hash_all(&mut self, packets: &[PacketRecord], stage: &mut Stage) {
        let is_plain = !self.rules.uniflow && self.vlans.is_none();
        let moving = self.v4.is_moving() || self.v6.is_moving();
        for (packet, slot) in packets.iter().zip(stage) {
            let (src, dst) = FlowKey::ports_of(packet);
            slot.ports = u32::from(src) << 16 | u32::from(dst);
            slot.hash = if is_plain {
                self.hash_key.flow(packet.pair_hash, src, dst, packet.protocol)
            } else {
                self.hash(packet, src, dst)
            };
            if is_v6(packet) {
                self.v6.prefetch_word(slot.hash, moving);
            } else {
                self.v4.prefetch_word(slot.hash, moving);
            }
        }
    }

    #[inline(always)]
    fn find_all(&self, packets: &[PacketRecord], stage: &mut Stage) {
        let has_beside = self.rules.has_more || self.rules.tcp;
        for (packet, slot) in packets.iter().zip(stage) {
            slot.likely = if is_v6(packet) {
                self.v6.prefetch_entry(slot.hash, has_beside)
            } else {
                self.v4.prefetch_entry(slot.hash, has_beside)
            };
        }
    }

    /// Prefetches what lies behind the statistics and the connections of the flows of a group.
    fn prefetch_behind(&self, packets: &[PacketRecord], stage: &Stage) {
        for (packet, slot) in packets.iter().zip(stage) {
            match slot.likely {
                Some(at) if is_v6(packet) => self.v6.prefetch_behind(at),
                Some(at) => self.v4.prefetch_behind(at),
                None => {}
            }
        }
    }

    /// Counts packets of a group. Of the only one with attachments: its segment, if that is not in its record, and whether
    /// there are facts.
    #[inline(always)]
    fn count_all(
        &mut self,
        range: Range<usize>,
        group: &[PacketRecord],
        stage: &Stage,
        (attached, has_facts): (Option<Segment>, bool),
        observer: &mut impl Observer,
    ) {
        let (group, stage) = (&group[..range.end], &stage[..range.end]);
        let mut next = range.start;
        while next < range.end {
            let (packet, Slot { ports, hash, likely }) = (&group[next], stage[next]);
            next += 1;
            // Consecutive packets of one flow are counted as a run.
            let alike = match stage.get(next) {
                Some(slot) if slot.hash == hash && !measured(packet) => {
                    run_of(packet, &group[next..])
                }
                _ => &[],
            };
            let segment = if self.rules.tcp { Segment::of(packet).or(attached) } else { None };
            let arrival = Arrival { packet, ports, hash, likely, segment, has_facts, alike };
            let kind = packet.flags.0 & (Flags::IPV4.0 | Flags::IPV6.0 | Flags::BAD_HEADER.0);
            let Self { v4, v6, capacity, rules, vlans, .. } = self;
            next += if kind == Flags::IPV4.0 {
                count(v4, v6, *capacity, rules, vlans, &arrival, observer)
            } else if kind == Flags::IPV6.0 {
                count(v6, v4, *capacity, rules, vlans, &arrival, observer)
            } else {
                0
            };
        }
    }

    fn hash(&mut self, packet: &PacketRecord, src_port: u16, dst_port: u16) -> u32 {
        let mut pair = packet.pair_hash;
        // The two directions of a conversation, and its VLANs, have homes of their own.
        if self.rules.uniflow || self.vlans.is_some() {
            let descends = self.rules.uniflow && !ascending(packet);
            let tags = self.vlans.as_mut().map_or(0, |vlans| vlans.of(packet.path));
            pair = self.hash_key.scoped(pair, tags << 1 | u32::from(descends));
        }
        self.hash_key.flow(pair, src_port, dst_port, packet.protocol)
    }

    /// Every live flow: its key, its stamp, and the time of its latest packet.
    pub fn each_live(&self, mut each: impl FnMut(&FlowKey, u16, u64)) {
        self.v4.each_live(&mut each);
        self.v6.each_live(&mut each);
    }

    /// The record of every live flow, as if it were forced to end, with its class; without its application.
    pub fn each_record(&self, mut each: impl FnMut(FlowRecord, Class)) {
        self.v4.each_record(&self.rules, &mut each);
        self.v6.each_record(&self.rules, &mut each);
    }

    /// The record of every live flow, with its application and the packets that no slice has; only those with any.
    pub fn each_unsliced(&self, mut each: impl FnMut(&FlowRecord)) {
        self.v4.each_unsliced(&self.rules, &mut each);
        self.v6.each_unsliced(&self.rules, &mut each);
    }

    /// Ends every flow that has expired by `now_ns`, checking up to `most` entries a call. Returns
    /// true when all have been checked; until then the caller repeats the call and does nothing in
    /// between.
    pub fn sweep(&mut self, now_ns: u64, most: usize, observer: &mut impl Observer) -> bool {
        self.rules.calm_until_ns = now_ns.saturating_add(self.rules.tick_ns);
        if !self.swept_v4 {
            self.swept_v4 = self.v4.sweep(now_ns, most, &self.rules, observer);
            return self.swept_v4 && self.v6.len() == 0 && std::mem::take(&mut self.swept_v4);
        }
        let done = self.v6.sweep(now_ns, most, &self.rules, observer);
        self.swept_v4 = !done;
        done
    }

    /// Ends all flows, up to `most` a call: expired and closed ones with their reason, all others
    /// as forced. Returns the number of flows that had not expired. The caller repeats the call
    /// until the table is empty, and does nothing in between.
    pub fn drain(&mut self, now_ns: u64, most: usize, observer: &mut impl Observer) -> u64 {
        self.drain_or_keep(now_ns, most, observer, None)
    }

    /// As [`FlowTable::drain`], but flows that have not expired go to `keep`, for another run.
    pub fn keep(
        &mut self,
        now_ns: u64,
        most: usize,
        observer: &mut impl Observer,
        keep: &mut dyn FnMut(OpenFlow),
    ) -> u64 {
        self.drain_or_keep(now_ns, most, observer, Some(keep))
    }

    fn drain_or_keep(
        &mut self,
        now_ns: u64,
        most: usize,
        observer: &mut impl Observer,
        keep: Option<&mut dyn FnMut(OpenFlow)>,
    ) -> u64 {
        if self.v4.len() > 0 {
            self.v4.drain(now_ns, most, &self.rules, observer, keep)
        } else {
            self.v6.drain(now_ns, most, &self.rules, observer, keep)
        }
    }

    /// Takes up a flow that [`FlowTable::keep`] gave another run; false if the table is full, or if one of both runs cuts
    /// flows and the other does not. The caller gives no flow twice.
    pub fn restore(&mut self, flow: &OpenFlow) -> bool {
        let record = &flow.record;
        if self.len() >= self.capacity || record.part.is_some() != (self.rules.cut_ns > 0) {
            return false;
        }
        let FlowKey { version, src, dst, src_port, dst_port, protocol } = record.key;
        let is_v6 = version == IpVersion::V6;
        let path = self.rules.ways.number(&record.path);
        let back = flow.back.as_ref().map(|back| self.rules.ways.number(back));
        let packet = PacketRecord {
            src,
            dst,
            protocol,
            path,
            flags: if is_v6 { Flags::IPV6 } else { Flags::IPV4 },
            pair_hash: self.hash_key.pair(&src, &dst),
            ..PacketRecord::EMPTY
        };
        let (hash, paths) = (self.hash(&packet, src_port, dst_port), (path, back));
        let ports = u32::from(src_port) << 16 | u32::from(dst_port);
        if is_v6 {
            self.v6.restore(flow, &Key::of(&packet, ports), hash, paths, &self.rules);
        } else {
            self.v4.restore(flow, &Key::of(&packet, ports), hash, paths, &self.rules);
        }
        true
    }
}

/// Counts a packet on its flow in `own`; if the table is full, a new flow replaces another. Returns
/// how many of the packets that are alike were counted with it: all or none.
#[inline(always)]
fn count<E: Ends, F: Ends>(
    own: &mut Shelf<E>,
    other: &mut Shelf<F>,
    capacity: usize,
    rules: &Rules,
    vlans: &mut Option<Vlans>,
    arrival: &Arrival<'_>,
    observer: &mut impl Observer,
) -> usize {
    let key = Key::of(arrival.packet, arrival.ports);
    let found = match vlans {
        None => own.find(&key, arrival, rules, |_| true),
        Some(vlans) => {
            let wanted = vlans.of(arrival.packet.path);
            own.find(&key, arrival, rules, |path| vlans.of(path) == wanted)
        }
    };
    let (at, direction) = match found {
        Some((at, direction)) => (at, own.update(at, direction, arrival.packet, rules, observer)),
        None => {
            let full = own.len() + other.len() >= capacity;
            if full && own.len() > 0 {
                own.evict(rules, observer);
            } else if full {
                other.evict(rules, observer);
            }
            own.begin(key, arrival.packet, arrival.hash, rules, observer)
        }
    };
    if let Some(segment) = arrival.segment {
        own.measure(at, direction, arrival, &segment, rules, observer);
    }
    if arrival.alike.is_empty() || !own.extend(at, direction, arrival.alike, rules, observer) {
        return 0;
    }
    arrival.alike.len()
}

/// The packets at the beginning of `rest` that differ from `first` only in time and length, in
/// ascending time.
fn run_of<'a>(first: &PacketRecord, rest: &'a [PacketRecord]) -> &'a [PacketRecord] {
    let mut now_ns = first.ts_ns;
    let alike = |packet: &&PacketRecord| {
        let goes_on = packet.ts_ns >= now_ns;
        now_ns = packet.ts_ns;
        let PacketRecord { ts_ns, ip_len, wire_len, .. } = **packet;
        goes_on && **packet == PacketRecord { ts_ns, ip_len, wire_len, ..*first }
    };
    &rest[..rest.iter().take_while(alike).count()]
}

/// Whether each packet is needed, for its segment.
#[inline(always)]
fn measured(packet: &PacketRecord) -> bool {
    packet.flags.contains(Flags::SEGMENT)
}

#[inline(always)]
fn is_v6(packet: &PacketRecord) -> bool {
    packet.flags.contains(Flags::IPV6)
}

fn ascending(packet: &PacketRecord) -> bool {
    if is_v6(packet) { V6::of(packet).ascending() } else { V4::of(packet).ascending() }
}

/// The two outermost VLANs of a path, looked up once.
struct Vlans {
    paths: Arc<Paths>,
    known: Vec<u32>,
}

impl Vlans {
    /// Above any tag value.
    const UNKNOWN: u32 = u32::MAX;

    fn new(paths: Arc<Paths>) -> Self {
        Self { paths, known: vec![Self::UNKNOWN; Paths::MOST + 1] }
    }

    /// The tags and their number: 26 bits.
    #[inline(always)]
    fn of(&mut self, path: u16) -> u32 {
        let known = &mut self.known[usize::from(path)];
        if *known == Self::UNKNOWN {
            let path = self.paths.get(path);
            let [outer, inner] = path.vlans.map(u32::from);
            *known = outer | inner << 12 | u32::from(path.vlan_tags.min(2)) << 24;
        }
        *known
    }
}

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod tests;
