//! Talkers: exact sums by source, destination, pair and port, taken from flow records as they
//! end. Every IP packet is in exactly one record, so the sums are those of the packets.
//!
//! Memory is bounded: what finds no room is summed up in `left_out`, which is then how far any
//! row can be short, and the report says so.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashTable;
use ringtap_flow::{FlowRecord, IpVersion};
use ringtap_wire::HashKey;

use crate::report::{HostRow, PairRow, PortRow, Rankings, Talkers, Volume};

type Address = (IpVersion, [u8; 16]);

struct Host {
    address: Address,
    sent: Volume,
    received: Volume,
}

struct Pair {
    /// The lower address first.
    addresses: (IpVersion, [u8; 16], [u8; 16]),
    volume: Volume,
}

/// Sums of one shard, or of all when merged.
pub(crate) struct TalkerTable {
    key: HashKey,
    capacity: usize,
    hosts: HashTable<Host>,
    pairs: HashTable<Pair>,
    /// TCP and UDP by port number; other protocols with ports are rare.
    tcp: Vec<Volume>,
    udp: Vec<Volume>,
    other_ports: BTreeMap<(u8, u16), Volume>,
    /// Octets that found no room among the hosts or the pairs.
    left_out: [u64; 2],
}

impl TalkerTable {
    pub(crate) fn new(key: HashKey, capacity: usize) -> Self {
        Self {
            key,
            capacity: capacity.max(1),
            hosts: HashTable::new(),
            pairs: HashTable::new(),
            tcp: vec![Volume::default(); 1 << 16],
            udp: vec![Volume::default(); 1 << 16],
            other_ports: BTreeMap::new(),
            left_out: [0; 2],
        }
    }

    pub(crate) fn on_record(&mut self, record: &FlowRecord) {
        let key = &record.key;
        let there = Volume { packets: record.packets[0], octets: record.octets[0] };
        let back = Volume { packets: record.packets[1], octets: record.octets[1] };
        self.add_host((key.version, key.src), there, back);
        self.add_host((key.version, key.dst), back, there);
        let mut both = there;
        both.add(back);
        let (low, high) = if key.src <= key.dst { (key.src, key.dst) } else { (key.dst, key.src) };
        self.add_pair((key.version, low, high), both);
        if (key.src_port, key.dst_port) != (0, 0) {
            self.add_port(key.protocol, key.src_port, both);
            if key.dst_port != key.src_port {
                self.add_port(key.protocol, key.dst_port, both);
            }
        }
    }

    fn add_host(&mut self, address: Address, sent: Volume, received: Volume) {
        let key = self.key;
        let hash = |a: &Address| key.address(&a.1);
        if let Some(host) = self.hosts.find_mut(hash(&address), |h| h.address == address) {
            host.sent.add(sent);
            host.received.add(received);
        } else if self.hosts.len() < self.capacity {
            let host = Host { address, sent, received };
            self.hosts.insert_unique(hash(&address), host, |h| hash(&h.address));
        } else {
            self.left_out[0] += sent.octets.max(received.octets);
        }
    }

    fn add_pair(&mut self, addresses: (IpVersion, [u8; 16], [u8; 16]), volume: Volume) {
        let key = self.key;
        let hash = |a: &(IpVersion, [u8; 16], [u8; 16])| {
            key.word(key.address(&a.1).wrapping_add(key.address(&a.2)))
        };
        if let Some(pair) = self.pairs.find_mut(hash(&addresses), |p| p.addresses == addresses) {
            pair.volume.add(volume);
        } else if self.pairs.len() < self.capacity {
            let pair = Pair { addresses, volume };
            self.pairs.insert_unique(hash(&addresses), pair, |p| hash(&p.addresses));
        } else {
            self.left_out[1] += volume.octets;
        }
    }

    fn add_port(&mut self, protocol: u8, port: u16, volume: Volume) {
        match protocol {
            6 => self.tcp[usize::from(port)].add(volume),
            17 => self.udp[usize::from(port)].add(volume),
            _ => self.other_ports.entry((protocol, port)).or_default().add(volume),
        }
    }

    /// Unites two shards' sums.
    pub(crate) fn merge(&mut self, mut other: Self) {
        if other.hosts.len() > self.hosts.len() {
            std::mem::swap(&mut self.hosts, &mut other.hosts);
        }
        for host in other.hosts {
            self.add_host(host.address, host.sent, host.received);
        }
        if other.pairs.len() > self.pairs.len() {
            std::mem::swap(&mut self.pairs, &mut other.pairs);
        }
        for pair in other.pairs {
            self.add_pair(pair.addresses, pair.volume);
        }
        for (own, more) in
            self.tcp.iter_mut().chain(&mut self.udp).zip(other.tcp.into_iter().chain(other.udp))
        {
            own.add(more);
        }
        for ((protocol, port), volume) in other.other_ports {
            self.add_port(protocol, port, volume);
        }
        for (own, more) in self.left_out.iter_mut().zip(other.left_out) {
            *own += more;
        }
    }

    pub(crate) fn finish(&self, top: usize) -> Talkers {
        Talkers {
            by_octets: self.rank(top, |v| (v.octets, v.packets)),
            by_packets: self.rank(top, |v| (v.packets, v.octets)),
            error_bound: self.left_out.into_iter().max().unwrap_or(0),
        }
    }

    fn rank(&self, top: usize, by: fn(&Volume) -> (u64, u64)) -> Rankings {
        let hosts = |volume: fn(&Host) -> Volume| {
            let rows = largest(self.hosts.iter().map(|h| (h.address, volume(h))), top, by);
            rows.into_iter()
                .map(|((version, address), volume)| HostRow {
                    address: version.address(&address),
                    volume,
                })
                .collect()
        };
        let pairs = largest(self.pairs.iter().map(|p| (p.addresses, p.volume)), top, by);
        let numbered = |protocol, volumes| {
            (0..=u16::MAX).zip(volumes).map(move |(port, &volume)| ((protocol, port), volume))
        };
        let ports = numbered(6, &self.tcp)
            .chain(numbered(17, &self.udp))
            .chain(self.other_ports.iter().map(|(&port, &volume)| (port, volume)));
        Rankings {
            source: hosts(|h| h.sent),
            destination: hosts(|h| h.received),
            pair: pairs
                .into_iter()
                .map(|((version, low, high), volume)| PairRow {
                    addresses: [version.address(&low), version.address(&high)],
                    volume,
                })
                .collect(),
            port: largest(ports, top, by)
                .into_iter()
                .map(|((protocol, port), volume)| PortRow { protocol, port, volume })
                .collect(),
        }
    }
}

/// The `top` rows of largest volume, largest first, equal ones by key. Rows of nothing are not
/// listed.
fn largest<K: Ord + Copy>(
    rows: impl Iterator<Item = (K, Volume)>,
    top: usize,
    by: fn(&Volume) -> (u64, u64),
) -> Vec<(K, Volume)> {
    let order = |(key, volume): &(K, Volume)| (Reverse(by(volume)), *key);
    let mut best: Vec<(K, Volume)> = Vec::with_capacity(2 * top + 1);
    // Gathers twice as many as asked and cuts back to the best: no copy of the whole table. Once
    // cut, only what beats the last of the best is worth gathering.
    let mut bar = None;
    for row in rows.filter(|(_, volume)| volume.packets > 0) {
        if bar.as_ref().is_some_and(|bar| order(&row) >= *bar) {
            continue;
        }
        best.push(row);
        if best.len() > 2 * top {
            best.sort_unstable_by_key(order);
            best.truncate(top);
            bar = best.last().map(order);
        }
    }
    best.sort_unstable_by_key(order);
    best.truncate(top);
    best
}
