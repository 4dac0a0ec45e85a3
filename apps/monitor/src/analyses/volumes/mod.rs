//! Volumes: packets and octets, in total, by protocol and by interval. Of inner packets only the
//! number.
//!
//! The interval of a packet is a pure function of its own timestamp. The counters of the current
//! interval are dense arrays; when time moves on they are added to a sorted map, so late packets
//! reach their own interval.
//!
//! Memory is bounded: the map keeps the earliest intervals for which there is room. Of the others
//! only the packets are counted. The choice does not depend on the distribution of packets: an
//! interval without room in a part has none in the whole.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeBounds;

use ringtap_state::{Op, Row, Rows, Schema};
use ringtap_wire::{Flags, PacketRecord};

use crate::time::Time;
use crate::volume::{Conversations, Interval, Octets, Packets, Volume};

/// The interval, the protocol; packets and octets.
pub(crate) static PROTOCOLS: Schema = Schema::new("protocols", 9, &[Op::Add; 2]);

/// The interval, or the largest number for the sum of all; packets by kind and octets by layer; the first and the last
/// time.
pub(crate) static INTERVALS: Schema = Schema::new(
    "intervals",
    8,
    &[
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Add,
        Op::Min,
        Op::Max,
    ],
);

/// Most intervals in a report.
pub(crate) const MOST_INTERVALS: usize = 65_536;

/// Units of room for the row of an interval; each protocol in it takes 1 more.
pub(crate) const ROW_UNITS: usize = 8;

/// In a state, the number of all intervals together; no interval has it.
const TOTAL: u64 = u64::MAX;

/// Counters of a period.
#[derive(Clone)]
struct Dense {
    packets: Packets,
    octets: Octets,
    protocols: Box<[Volume; 256]>,
    first_ns: u64,
    last_ns: u64,
}

impl Dense {
    fn new() -> Self {
        Self {
            packets: Packets::default(),
            octets: Octets::default(),
            protocols: Box::new([Volume::default(); 256]),
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    #[inline(always)]
    fn count(&mut self, packet: &PacketRecord) {
        if packet.flags.contains(Flags::INNER) {
            self.packets.inner += 1;
            return;
        }
        let has = |flag: Flags| u64::from(packet.flags.contains(flag));
        self.packets.handled += 1;
        self.packets.ipv4 += has(Flags::IPV4);
        self.packets.ipv6 += has(Flags::IPV6);
        self.packets.fragments += has(Flags::FRAGMENT);
        self.packets.truncated += has(Flags::TRUNCATED);
        self.octets.wire += u64::from(packet.wire_len);
        let protocol = &mut self.protocols[usize::from(packet.protocol)];
        protocol.packets += u64::from(packet.is_ip());
        protocol.octets += u64::from(packet.ip_len);
        self.first_ns = self.first_ns.min(packet.ts_ns);
        self.last_ns = self.last_ns.max(packet.ts_ns);
    }
}

/// The counters of one interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeCounts {
    packets: Packets,
    octets: Octets,
    /// Sorted by protocol.
    protocols: Vec<(u8, Volume)>,
    /// TCP, UDP.
    conversations: [u64; 2],
    first_ns: u64,
    last_ns: u64,
}

impl VolumeCounts {
    fn merge(&mut self, other: &Self) {
        if self.packets.handled == 0 {
            (self.first_ns, self.last_ns) = (other.first_ns, other.last_ns);
        } else if other.packets.handled > 0 {
            self.first_ns = self.first_ns.min(other.first_ns);
            self.last_ns = self.last_ns.max(other.last_ns);
        }
        let (own, more) = (&mut self.packets, &other.packets);
        own.handled += more.handled;
        own.ipv4 += more.ipv4;
        own.ipv6 += more.ipv6;
        own.non_ip += more.non_ip;
        own.fragments += more.fragments;
        own.truncated += more.truncated;
        own.inner += more.inner;
        self.octets.wire += other.octets.wire;
        self.octets.ip += other.octets.ip;
        for &(protocol, volume) in &other.protocols {
            match self.protocols.binary_search_by_key(&protocol, |&(own, _)| own) {
                Ok(at) => self.protocols[at].1.add(volume),
                Err(at) => {
                    // There are many rows, and most do not grow: no spare capacity.
                    self.protocols.reserve_exact(1);
                    self.protocols.insert(at, (protocol, volume));
                }
            }
        }
        for (own, more) in self.conversations.iter_mut().zip(other.conversations) {
            *own += more;
        }
    }

    /// Units of room that it takes.
    fn units(&self) -> usize {
        ROW_UNITS + self.protocols.len()
    }
}

/// All volumes of one shard, or of all when merged.
pub(crate) struct Volumes {
    interval_ns: Option<u64>,
    /// Number of the interval that `dense` counts, and its bounds in time.
    current: u64,
    bounds: std::ops::Range<u64>,
    dense: Dense,
    total: VolumeCounts,
    intervals: BTreeMap<u64, VolumeCounts>,
    /// The room of `intervals`, and the units in use.
    room: usize,
    units: usize,
    /// The first interval without room; later ones have none either.
    ceiling: u64,
    further: u64,
}

impl Volumes {
    /// No packets yet; `room` is for the rows of intervals, in [`ROW_UNITS`].
    pub(crate) fn new(interval_ns: Option<u64>, room: usize) -> Self {
        let bounds = if interval_ns.is_some() { 0..0 } else { 0..u64::MAX };
        Self {
            interval_ns,
            current: 0,
            bounds,
            dense: Dense::new(),
            total: VolumeCounts::default(),
            intervals: BTreeMap::new(),
            room,
            units: 0,
            ceiling: u64::MAX,
            further: 0,
        }
    }

    pub(crate) fn on_burst(&mut self, burst: &[PacketRecord]) {
        for packet in burst {
            if !self.bounds.contains(&packet.ts_ns) {
                self.turn_to(packet.ts_ns);
            }
            self.dense.count(packet);
        }
    }

    /// The interval of a time.
    #[inline(always)]
    pub(crate) fn interval_of(&self, ts_ns: u64) -> u64 {
        match self.interval_ns {
            None => 0,
            Some(_) if self.bounds.contains(&ts_ns) => self.current,
            Some(interval_ns) => Self::number(ts_ns, interval_ns),
        }
    }

    /// Never `u64::MAX`, so adding one cannot overflow.
    fn number(ts_ns: u64, interval_ns: u64) -> u64 {
        (ts_ns / interval_ns).min(u64::MAX - 1)
    }

    /// Counts conversations in an interval.
    pub(crate) fn count_conversations(&mut self, interval: u64, protocol: usize, n: u64) {
        if self.interval_ns.is_some() {
            let mut counts = VolumeCounts::default();
            counts.conversations[protocol] = n;
            self.add(interval, counts);
        }
    }

    #[cold]
    fn turn_to(&mut self, ts_ns: u64) {
        let Some(interval_ns) = self.interval_ns else {
            // Only a timestamp of u64::MAX lies outside the whole run's bounds.
            return;
        };
        self.fold();
        self.current = Self::number(ts_ns, interval_ns);
        let start = self.current * interval_ns;
        self.bounds = start..start.saturating_add(interval_ns);
    }

    /// Moves the dense counters to the total and to their interval.
    fn fold(&mut self) {
        if self.dense.packets.handled + self.dense.packets.inner == 0 {
            return;
        }
        let dense = std::mem::replace(&mut self.dense, Dense::new());
        let mut counts = VolumeCounts {
            packets: dense.packets,
            octets: dense.octets,
            protocols: Vec::new(),
            conversations: [0; 2],
            first_ns: dense.first_ns,
            last_ns: dense.last_ns,
        };
        counts.packets.non_ip = dense.packets.handled - dense.packets.ipv4 - dense.packets.ipv6;
        let protocols = || (0..=u8::MAX).zip(dense.protocols.iter().copied());
        let seen = |(_, volume): &(u8, Volume)| volume.packets > 0;
        counts.protocols.reserve_exact(protocols().filter(seen).count());
        counts.protocols.extend(protocols().filter(seen));
        counts.octets.ip = counts.protocols.iter().map(|(_, volume)| volume.octets).sum();
        self.total.merge(&counts);
        self.add(self.current, counts);
    }

    /// Adds to the row of an interval, or counts the packets if there is no room for it.
    fn add(&mut self, interval: u64, counts: VolumeCounts) {
        if interval >= self.ceiling {
            self.further += counts.packets.handled;
            return;
        }
        match self.intervals.entry(interval) {
            Entry::Vacant(vacant) => self.units += vacant.insert(counts).units(),
            Entry::Occupied(row) => {
                let row = row.into_mut();
                let before = row.units();
                row.merge(&counts);
                self.units += row.units() - before;
            }
        }
        self.trim();
    }

    /// Drops the latest intervals beyond the room. Their packets stay in the total.
    fn trim(&mut self) {
        while self.units > self.room || self.intervals.len() > MOST_INTERVALS {
            let Some((number, gone)) = self.intervals.pop_last() else { break };
            self.units -= gone.units();
            self.further += gone.packets.handled;
            self.ceiling = number;
        }
    }

    /// Drops the intervals from this one on.
    fn lower_ceiling(&mut self, ceiling: u64) {
        if ceiling < self.ceiling {
            self.ceiling = ceiling;
            for (_, gone) in self.intervals.split_off(&ceiling) {
                self.units -= gone.units();
                self.further += gone.packets.handled;
            }
        }
    }

    /// Hands over the intervals that end before `time_ns`, and the total so far. Late packets for them are handed over
    /// later.
    pub(crate) fn take_before(&mut self, time_ns: u64) -> Self {
        let mut before = Self::new(self.interval_ns, self.room);
        if let Some(interval_ns) = self.interval_ns {
            let number = Self::number(time_ns, interval_ns);
            if self.current < number {
                self.fold();
            }
            let later = self.intervals.split_off(&number);
            before.intervals = std::mem::replace(&mut self.intervals, later);
            before.units = before.intervals.values().map(VolumeCounts::units).sum();
            self.units -= before.units;
            let all = std::mem::take(&mut self.total);
            (before.total, self.total) = self.totals(all, &before);
        }
        before
    }

    /// Of a total, that of the intervals handed over and that of the later ones here, of which packets are ahead of time.
    /// Packets of intervals without room are handed over.
    fn totals(&self, all: VolumeCounts, before: &Self) -> (VolumeCounts, VolumeCounts) {
        let sum = |rows: &BTreeMap<u64, VolumeCounts>| {
            let mut sum = VolumeCounts::default();
            rows.values().for_each(|row| sum.merge(row));
            VolumeCounts { conversations: [0; 2], ..sum }
        };
        let later = sum(&self.intervals);
        let packets = |one: &VolumeCounts| [one.packets.handled, one.packets.inner];
        if packets(&later) == [0; 2] {
            return (all, later);
        }
        let own = sum(&before.intervals);
        let with_room = [0, 1].map(|kind| packets(&own)[kind] + packets(&later)[kind]);
        if with_room == packets(&all) { (own, later) } else { (all, VolumeCounts::default()) }
    }

    /// Ends counting in this shard.
    pub(crate) fn end(&mut self) {
        self.fold();
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.total.merge(&other.total);
        self.further += other.further;
        self.lower_ceiling(other.ceiling);
        for (interval, counts) in other.intervals {
            self.add(interval, counts);
        }
    }

    /// Adds the rows of a table of a state.
    pub(crate) fn save(&self, table: &'static Schema, rows: &mut Rows) {
        let all = self.intervals.iter().map(|(&number, counts)| (number, counts));
        let all = all.chain([(TOTAL, &self.total)]);
        for (number, counts) in all {
            let number = number.to_be_bytes();
            if *table == PROTOCOLS {
                for (protocol, Volume { packets, octets }) in &counts.protocols {
                    rows.push(&[&number, &[*protocol]], &[*packets, *octets], &[]);
                }
            } else if counts.packets.handled + counts.packets.inner > 0 {
                let Packets { handled, ipv4, ipv6, non_ip, fragments, truncated, inner } =
                    counts.packets;
                let Octets { wire, ip } = counts.octets;
                let sums = [handled, ipv4, ipv6, non_ip, fragments, truncated, inner, wire, ip];
                let times = [counts.first_ns, counts.last_ns];
                rows.push(&[&number], &[&sums[..], &times].concat(), &[]);
            }
        }
    }

    /// Adds a row of a state; `None` if there is no such row.
    pub(crate) fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        let (number, rest) = row.key().split_first_chunk()?;
        let number = u64::from_be_bytes(*number);
        let mut counts = VolumeCounts::default();
        if *table == PROTOCOLS {
            let [packets, octets] = row.numbers();
            counts.protocols.push((*rest.first()?, Volume { packets, octets }));
        } else {
            let [handled, ipv4, ipv6, non_ip, fragments, truncated, inner, ..] =
                row.numbers::<11>();
            let [.., wire, ip, first_ns, last_ns] = row.numbers::<11>();
            counts.packets = Packets { handled, ipv4, ipv6, non_ip, fragments, truncated, inner };
            counts.octets = Octets { wire, ip };
            (counts.first_ns, counts.last_ns) = (first_ns, last_ns);
        }
        if number == TOTAL {
            self.total.merge(&counts);
        } else {
            number.checked_mul(self.interval_ns.unwrap_or(1))?;
            self.add(number, counts);
        }
        Some(())
    }

    /// The number of packets, and the time of the first one, or the largest.
    pub(crate) fn handled(&self) -> (u64, u64) {
        let VolumeCounts { packets, first_ns, .. } = &self.total;
        (packets.handled, if packets.handled > 0 { *first_ns } else { u64::MAX })
    }

    pub(crate) fn packets(&self) -> Packets {
        self.total.packets
    }

    pub(crate) fn octets(&self) -> Octets {
        self.total.octets
    }

    pub(crate) fn further(&self) -> u64 {
        self.further
    }

    pub(crate) fn protocols(&self) -> BTreeMap<u8, Volume> {
        self.total.protocols.iter().copied().collect()
    }

    /// The rows of the report. `all` are the conversations of the whole run.
    pub(crate) fn intervals(&self, all: Conversations) -> Vec<Interval> {
        self.rows(.., all)
    }

    /// The rows of intervals with these numbers.
    pub(crate) fn rows(&self, numbers: impl RangeBounds<u64>, all: Conversations) -> Vec<Interval> {
        let row = |(&number, counts): (&u64, &VolumeCounts)| Interval {
            start: Time(self.interval_ns.map_or(counts.first_ns, |ns| number * ns)),
            end: Time(
                self.interval_ns.map_or(counts.last_ns, |ns| (number * ns).saturating_add(ns)),
            ),
            packets: counts.packets,
            octets: counts.octets,
            protocols: counts.protocols.iter().copied().collect(),
            conversations: match self.interval_ns {
                None => all,
                Some(_) => Conversations {
                    tcp: counts.conversations[0],
                    udp: counts.conversations[1],
                    exact: all.exact,
                },
            },
        };
        self.intervals.range(numbers).map(row).collect()
    }
}

#[cfg(test)]
mod tests;
