//! Volumes: packets and octets, in all, by protocol and by interval. Of what tunnels carry only the number of packets.
//!
//! The interval of a packet is a pure function of its own timestamp. The counters of the current
//! interval are dense arrays; when time moves on they are folded into a sorted map, so late
//! packets are added to the interval they belong to.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use ringtap_wire::{Flags, PacketRecord};

use crate::report::{Conversations, Interval, Octets, Packets, Time, Volume};

/// Intervals kept in a report. The earliest are kept, so which they are does not depend on who
/// counted them.
const MOST_INTERVALS: usize = 65_536;

/// Counters of one stretch of time.
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

/// One interval in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    packets: Packets,
    octets: Octets,
    protocols: BTreeMap<u8, Volume>,
    /// TCP, UDP.
    conversations: [u64; 2],
    first_ns: u64,
    last_ns: u64,
}

impl Tally {
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
        for (&protocol, &volume) in &other.protocols {
            self.protocols.entry(protocol).or_default().add(volume);
        }
        for (own, more) in self.conversations.iter_mut().zip(other.conversations) {
            *own += more;
        }
    }
}

/// All volumes of one shard, or of all when merged.
pub(crate) struct Volumes {
    interval_ns: Option<u64>,
    /// Number of the interval that `dense` counts, and its bounds in time.
    current: u64,
    bounds: std::ops::Range<u64>,
    dense: Dense,
    total: Tally,
    intervals: BTreeMap<u64, Tally>,
    further: u64,
}

impl Volumes {
    pub(crate) fn new(interval_ns: Option<u64>) -> Self {
        let bounds = if interval_ns.is_some() { 0..0 } else { 0..u64::MAX };
        Self {
            interval_ns,
            current: 0,
            bounds,
            dense: Dense::new(),
            total: Tally::default(),
            intervals: BTreeMap::new(),
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

    /// The interval a time belongs to.
    #[inline(always)]
    pub(crate) fn interval_of(&self, ts_ns: u64) -> u64 {
        match self.interval_ns {
            None => 0,
            Some(_) if self.bounds.contains(&ts_ns) => self.current,
            Some(interval_ns) => Self::number(ts_ns, interval_ns),
        }
    }

    /// Never `u64::MAX`, so that whoever adds one to it need not fear.
    fn number(ts_ns: u64, interval_ns: u64) -> u64 {
        (ts_ns / interval_ns).min(u64::MAX - 1)
    }

    /// Counts conversations as seen in an interval.
    pub(crate) fn count_conversations(&mut self, interval: u64, protocol: usize, n: u64) {
        if self.interval_ns.is_some() {
            self.tally(interval).conversations[protocol] += n;
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
        let mut tally = Tally {
            packets: dense.packets,
            octets: dense.octets,
            protocols: BTreeMap::new(),
            conversations: [0; 2],
            first_ns: dense.first_ns,
            last_ns: dense.last_ns,
        };
        tally.packets.non_ip = dense.packets.handled - dense.packets.ipv4 - dense.packets.ipv6;
        for (protocol, &volume) in (0..=u8::MAX).zip(dense.protocols.iter()) {
            if volume.packets > 0 {
                tally.protocols.insert(protocol, volume);
                tally.octets.ip += volume.octets;
            }
        }
        self.total.merge(&tally);
        self.tally(self.current).merge(&tally);
        self.trim();
    }

    fn tally(&mut self, interval: u64) -> &mut Tally {
        self.intervals.entry(interval).or_default()
    }

    /// Drops the latest intervals beyond the bound. Their packets stay in the total.
    fn trim(&mut self) {
        while self.intervals.len() > MOST_INTERVALS {
            if let Some((_, gone)) = self.intervals.pop_last() {
                self.further += gone.packets.handled;
            }
        }
    }

    /// Hands over the intervals that lie wholly before `time_ns`. What comes for them later is handed over later.
    pub(crate) fn take_before(&mut self, time_ns: u64) -> Self {
        let mut before = Self::new(self.interval_ns);
        if let Some(interval_ns) = self.interval_ns {
            let number = Self::number(time_ns, interval_ns);
            if self.current < number {
                self.fold();
            }
            let later = self.intervals.split_off(&number);
            before.intervals = std::mem::replace(&mut self.intervals, later);
        }
        before
    }

    /// Ends counting in this shard.
    pub(crate) fn end(&mut self) {
        self.fold();
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.total.merge(&other.total);
        self.further += other.further;
        for (interval, tally) in &other.intervals {
            self.tally(*interval).merge(tally);
        }
        self.trim();
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
        self.total.protocols.clone()
    }

    /// The rows of the report. `all` are the conversations of the whole run.
    pub(crate) fn intervals(&self, all: Conversations) -> Vec<Interval> {
        self.rows(.., all)
    }

    /// The rows of intervals with these numbers.
    pub(crate) fn rows(&self, numbers: impl RangeBounds<u64>, all: Conversations) -> Vec<Interval> {
        let row = |(&number, tally): (&u64, &Tally)| Interval {
            start: Time(self.interval_ns.map_or(tally.first_ns, |ns| number * ns)),
            end: Time(
                self.interval_ns.map_or(tally.last_ns, |ns| (number * ns).saturating_add(ns)),
            ),
            packets: tally.packets,
            octets: tally.octets,
            protocols: tally.protocols.clone(),
            conversations: match self.interval_ns {
                None => all,
                Some(_) => Conversations {
                    tcp: tally.conversations[0],
                    udp: tally.conversations[1],
                    exact: all.exact,
                },
            },
        };
        self.intervals.range(numbers).map(row).collect()
    }
}

#[cfg(test)]
mod tests;
