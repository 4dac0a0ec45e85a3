//! Sums over flows: hosts, applications, names, failures, round trips, answer times of DNS. Packets and octets are those of
//! slices.

use std::cmp::Reverse;
use std::net::IpAddr;

use hashbrown::HashMap;
use ringtap_flow::Label;

use super::flows::Flow;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) flows: u64,
    pub(super) packets: u64,
    pub(super) octets: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) flows: u64,
    /// Octets.
    pub(super) sent: u64,
    pub(super) received: u64,
}

impl Host {
    /// In both directions.
    pub(super) fn octets(&self) -> u64 {
        self.sent.saturating_add(self.received)
    }
}

/// Times from a packet to the one that answers it, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) number: u64,
    sum: u64,
    pub(super) longest: u64,
}

impl Waits {
    fn add(&mut self, us: u64) {
        self.number += 1;
        self.sum = self.sum.saturating_add(us);
        self.longest = self.longest.max(us);
    }

    pub(super) fn mean(&self) -> u64 {
        self.sum / self.number.max(1)
    }
}

/// The entries with the largest numbers, those of equal numbers in order of their keys.
pub(super) struct First<K, V> {
    pub(super) entries: Vec<(K, V)>,
    /// The number of all entries.
    pub(super) all: usize,
}

/// The sums of the flows of a view.
#[derive(Debug, Default)]
pub(super) struct Sums<'a> {
    pub(super) all: Volume,
    hosts: HashMap<IpAddr, Host>,
    applications: HashMap<Label, Volume>,
    servers: HashMap<&'a str, Volume>,
    /// By name and response code.
    failures: HashMap<(&'a str, &'a str), u64>,
    /// By address and port.
    round_trips: HashMap<(IpAddr, u16), Waits>,
    dns: HashMap<(IpAddr, u16), Waits>,
}

impl<'a> Sums<'a> {
    /// Adds a flow that ended, without its packets.
    pub(super) fn add_flow(&mut self, flow: Flow<'a>) {
        let (row, [source, target]) = (flow.row, flow.hosts());
        let hosts = [source, target].map(|host| (host, [0; 2]));
        self.add(flow, Volume { flows: 1, ..Volume::default() }, hosts);
        if !flow.failure.is_empty() {
            *self.failures.entry((flow.lookup, flow.failure)).or_default() += 1;
        }
        for (waits, us) in [(&mut self.round_trips, row.round_trip_us), (&mut self.dns, row.dns_us)]
        {
            if let Some(us) = us {
                waits.entry((target, row.key.dst_port)).or_default().add(us.into());
            }
        }
    }

    /// Adds the packets of a slice.
    pub(super) fn add_slice(&mut self, slice: Flow<'a>) {
        let (row, [source, target]) = (slice.row, slice.hosts());
        let [there, back] = row.octets;
        let more = Volume {
            flows: 0,
            packets: row.packets.iter().sum(),
            octets: there.saturating_add(back),
        };
        self.add(slice, more, [(source, [there, back]), (target, [back, there])]);
    }

    /// Adds a volume; `hosts` sent and received that many octets of it.
    fn add(&mut self, flow: Flow<'a>, more: Volume, hosts: [(IpAddr, [u64; 2]); 2]) {
        add(&mut self.all, more);
        for (host, [sent, received]) in hosts {
            let own = self.hosts.entry(host).or_default();
            own.flows += more.flows;
            own.sent = own.sent.saturating_add(sent);
            own.received = own.received.saturating_add(received);
        }
        add(self.applications.entry(flow.row.label).or_default(), more);
        if !flow.server.is_empty() {
            add(self.servers.entry(flow.server).or_default(), more);
        }
    }

    /// The hosts with most octets.
    pub(super) fn hosts(&self, rows: usize) -> First<IpAddr, Host> {
        first(&self.hosts, rows, Host::octets)
    }

    /// The labels with most octets.
    pub(super) fn applications(&self, rows: usize) -> First<Label, Volume> {
        first(&self.applications, rows, |volume| volume.octets)
    }

    /// The names of servers with most octets.
    pub(super) fn servers(&self, rows: usize) -> First<&'a str, Volume> {
        first(&self.servers, rows, |volume| volume.octets)
    }

    /// The most frequent failures of lookups.
    pub(super) fn failures(&self, rows: usize) -> First<(&'a str, &'a str), u64> {
        first(&self.failures, rows, |number| *number)
    }

    /// The servers with the longest mean round trip.
    pub(super) fn round_trips(&self, rows: usize) -> First<(IpAddr, u16), Waits> {
        first(&self.round_trips, rows, Waits::mean)
    }

    /// The servers of DNS with the longest mean time to answer.
    pub(super) fn dns(&self, rows: usize) -> First<(IpAddr, u16), Waits> {
        first(&self.dns, rows, Waits::mean)
    }
}

fn add(own: &mut Volume, more: Volume) {
    own.flows += more.flows;
    own.packets = own.packets.saturating_add(more.packets);
    own.octets = own.octets.saturating_add(more.octets);
}

fn first<K: Copy + Ord, V: Copy>(
    all: &HashMap<K, V>,
    rows: usize,
    number: impl Fn(&V) -> u64,
) -> First<K, V> {
    let mut entries: Vec<_> = all.iter().map(|(key, value)| (*key, *value)).collect();
    let order = |(key, value): &(K, V)| (Reverse(number(value)), *key);
    if entries.len() > rows {
        entries.select_nth_unstable_by_key(rows, order);
        entries.truncate(rows);
    }
    entries.sort_unstable_by_key(order);
    First { entries, all: all.len() }
}

#[cfg(test)]
mod tests {
    use super::super::flows::Flows;
    use super::super::flows::tests::{keep, named, record};
    use super::super::view::View;
    use super::*;
    use ringtap_flow::RecordSink;

    #[test]
    fn sums_are_those_of_the_flows() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        for second in 1..=20 {
            keep(&mut keepers[0], &record(second, 1, (2, 80)));
            keep(&mut keepers[0], &named(second, (second % 3) as u8 + 10, (4, 443), "a.example"));
        }
        keepers[0].finish();
        flows.receive();
        let (view, mut sums) = (View::default(), Sums::default());
        flows.of(&view, 0, u64::MAX).for_each(|flow| sums.add_flow(flow));
        flows.slices(&view, (0, u64::MAX)).for_each(|slice| sums.add_slice(slice));
        assert_eq!(sums.all, Volume { flows: 40, packets: 80, octets: 80_000 });
        let First { entries: hosts, all } = sums.hosts(2);
        assert_eq!(all, 6);
        let expected = Host { flows: 20, sent: 20_000, received: 20_000 };
        assert_eq!(hosts.iter().map(|(_, host)| *host).collect::<Vec<_>>(), [expected; 2]);
        assert_eq!(hosts[0].0.to_string(), "10.0.0.1");
        assert_eq!(sums.servers(9).entries[0].1.flows, 20);
        assert_eq!(sums.failures(9).entries, [(("lookup.example", "NXDOMAIN"), 20)]);
        assert!(sums.round_trips(9).entries.is_empty());
        let answers = sums.dns(9).entries;
        assert_eq!(
            (answers[0].1.mean(), answers[0].1.longest, answers[0].1.number),
            (1500, 1500, 20)
        );
    }
}
