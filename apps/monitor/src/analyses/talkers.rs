//! Talkers: sums by source, destination, pair and port, taken from flow records as they
//! end. Every IP packet is in exactly one record, so the sums are those of the packets.
//!
//! They are exact while there is room. A table that is full forgets the lesser half of its rows, as Misra–Gries does
//! (`room.rs`); how much any row may be short for that is known, and the report says so.

mod room;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ringtap_flow::{Dense, FlowKey, FlowRecord, IpVersion};
use ringtap_stage::Shard;
use ringtap_terminal::page::Page;
use ringtap_wire::HashKey;

use room::make_room;

use super::{About, Analysis, Merge, Section};
use crate::report::{HostRow, PairRow, PortRow, Rankings, Talkers, Volume};
use crate::{Alert, Setup};

/// Records whose look-ups are made to overlap.
const GROUP: usize = 16;

type Address = (IpVersion, [u8; 16]);
/// The lower address first.
type Addresses = (IpVersion, [u8; 16], [u8; 16]);

struct Host {
    address: Address,
    sent: Volume,
    received: Volume,
}

struct Pair {
    addresses: Addresses,
    volume: Volume,
}

impl Host {
    fn sums(&self) -> [u64; 4] {
        [self.sent.packets, self.sent.octets, self.received.packets, self.received.octets]
    }

    fn hash(&self, key: &HashKey) -> u32 {
        host_hash(key, &self.address.1)
    }
}

impl Pair {
    fn sums(&self) -> [u64; 2] {
        [self.volume.packets, self.volume.octets]
    }

    fn hash(&self, key: &HashKey) -> u32 {
        key.pair(&self.addresses.1, &self.addresses.2)
    }
}

fn host_hash(key: &HashKey, address: &[u8; 16]) -> u32 {
    (key.address(address) >> 32) as u32
}

/// Sums of one shard, or of all when merged.
pub struct TalkerTable {
    key: HashKey,
    capacity: usize,
    hosts: Dense<Host>,
    pairs: Dense<Pair>,
    /// The pairs of other shards: a pair has one owner, so there is nothing to add up.
    others_pairs: Vec<Vec<Pair>>,
    /// TCP and UDP by port number; other protocols with ports are rare.
    tcp: Vec<Volume>,
    udp: Vec<Volume>,
    other_ports: BTreeMap<(u8, u16), Volume>,
    /// What any host may have lost: sent packets and octets, received packets and octets.
    hosts_lost: [u64; 4],
    /// What any pair may have lost: packets and octets.
    pairs_lost: [u64; 2],
    /// Records not yet added: they are, a group at a time.
    waiting: Vec<Waiting>,
}

/// What counts of a flow record.
struct Waiting {
    key: FlowKey,
    packets: [u64; 2],
    octets: [u64; 2],
}

impl TalkerTable {
    pub(crate) fn new(key: HashKey, capacity: usize) -> Self {
        Self {
            key,
            capacity: capacity.clamp(1, Dense::<Host>::MOST),
            hosts: Dense::new(),
            pairs: Dense::new(),
            others_pairs: Vec::new(),
            tcp: vec![Volume::default(); 1 << 16],
            udp: vec![Volume::default(); 1 << 16],
            other_ports: BTreeMap::new(),
            hosts_lost: [0; 4],
            pairs_lost: [0; 2],
            waiting: Vec::with_capacity(GROUP),
        }
    }

    #[inline]
    fn take(&mut self, record: &FlowRecord) {
        let &FlowRecord { key, packets, octets, .. } = record;
        self.waiting.push(Waiting { key, packets, octets });
        if self.waiting.len() == GROUP {
            self.add_waiting();
        }
    }

    /// Adds what waits; nothing is missing afterwards.
    pub(crate) fn add_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut hashes = [[0; 3]; GROUP];
        let mut words = [[0; 3]; GROUP];
        for ((record, hash), word) in waiting.iter().zip(&mut hashes).zip(&mut words) {
            let (src, dst) = (self.host_hash(&record.key.src), self.host_hash(&record.key.dst));
            let pair = self.pair_hash(&record.key.src, &record.key.dst);
            *hash = [src, dst, pair];
            *word = [self.hosts.home(src), self.hosts.home(dst), self.pairs.home(pair)];
        }
        // Touch the rows: independent loads, so their misses overlap.
        let mut touched = 0;
        for (hash, word) in hashes.iter().zip(&words).take(waiting.len()) {
            for side in 0..2 {
                touched ^= self.hosts.hint(word[side], hash[side]).map_or(0, |h| h.sent.octets);
            }
            touched ^= self.pairs.hint(word[2], hash[2]).map_or(0, |p| p.volume.octets);
        }
        std::hint::black_box(touched);
        for (record, &hash) in waiting.iter().zip(&hashes) {
            self.add(record, hash);
        }
        self.waiting = waiting;
        self.waiting.clear();
    }

    fn add(&mut self, record: &Waiting, [src_hash, dst_hash, pair_hash]: [u32; 3]) {
        let key = &record.key;
        let there = Volume { packets: record.packets[0], octets: record.octets[0] };
        let back = Volume { packets: record.packets[1], octets: record.octets[1] };
        self.add_host(src_hash, (key.version, key.src), there, back);
        self.add_host(dst_hash, (key.version, key.dst), back, there);
        let mut both = there;
        both.add(back);
        let (low, high) = if key.src <= key.dst { (key.src, key.dst) } else { (key.dst, key.src) };
        self.add_pair(pair_hash, (key.version, low, high), both);
        if (key.src_port, key.dst_port) != (0, 0) {
            self.add_port(key.protocol, key.src_port, both);
            if key.dst_port != key.src_port {
                self.add_port(key.protocol, key.dst_port, both);
            }
        }
    }

    fn host_hash(&self, address: &[u8; 16]) -> u32 {
        host_hash(&self.key, address)
    }

    /// Symmetric in its addresses.
    fn pair_hash(&self, a: &[u8; 16], b: &[u8; 16]) -> u32 {
        self.key.pair(a, b)
    }

    fn add_host(&mut self, hash: u32, address: Address, sent: Volume, received: Volume) {
        if let Some(at) = self.hosts.find(hash, |host| host.address == address) {
            let host = self.hosts.row_mut(at);
            host.sent.add(sent);
            host.received.add(received);
        } else {
            if self.hosts.len() >= self.capacity {
                let key = self.key;
                make_room(&mut self.hosts, &mut self.hosts_lost, Host::sums, |host| {
                    host.hash(&key)
                });
            }
            self.hosts.insert(hash, Host { address, sent, received });
        }
    }

    fn add_pair(&mut self, hash: u32, addresses: Addresses, volume: Volume) {
        if let Some(at) = self.pairs.find(hash, |pair| pair.addresses == addresses) {
            self.pairs.row_mut(at).volume.add(volume);
        } else {
            if self.pairs.len() >= self.capacity {
                let key = self.key;
                make_room(&mut self.pairs, &mut self.pairs_lost, Pair::sums, |pair| {
                    pair.hash(&key)
                });
            }
            self.pairs.insert(hash, Pair { addresses, volume });
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
        // Each shard had its part of the room; together they have all of it.
        self.capacity = (self.capacity + other.capacity).min(Dense::<Host>::MOST);
        if other.hosts.len() > self.hosts.len() {
            std::mem::swap(&mut self.hosts, &mut other.hosts);
        }
        for host in other.hosts.into_rows() {
            let hash = self.host_hash(&host.address.1);
            self.add_host(hash, host.address, host.sent, host.received);
        }
        self.others_pairs.push(other.pairs.into_rows());
        for (own, more) in
            self.tcp.iter_mut().chain(&mut self.udp).zip(other.tcp.into_iter().chain(other.udp))
        {
            own.add(more);
        }
        for ((protocol, port), volume) in other.other_ports {
            self.add_port(protocol, port, volume);
        }
        // A host may have lost something in each shard, a pair only where it belongs.
        for (own, more) in self.hosts_lost.iter_mut().zip(other.hosts_lost) {
            *own += more;
        }
        for (own, more) in self.pairs_lost.iter_mut().zip(other.pairs_lost) {
            *own = (*own).max(more);
        }
    }

    pub(crate) fn finish(&self, top: usize) -> Talkers {
        Talkers {
            by_octets: self.rank(top, |v| (v.octets, v.packets)),
            by_packets: self.rank(top, |v| (v.packets, v.octets)),
            error_bound: self.hosts_lost[1].max(self.hosts_lost[3]).max(self.pairs_lost[1]),
            packets_error_bound: self.hosts_lost[0].max(self.hosts_lost[2]).max(self.pairs_lost[0]),
        }
    }

    fn rank(&self, top: usize, by: fn(&Volume) -> (u64, u64)) -> Rankings {
        let hosts = |volume: fn(&Host) -> Volume| {
            let rows = largest(self.hosts.rows().iter().map(|h| (h.address, volume(h))), top, by);
            rows.into_iter()
                .map(|((version, address), volume)| HostRow {
                    address: version.address(&address),
                    volume,
                })
                .collect()
        };
        let all_pairs = self.pairs.rows().iter().chain(self.others_pairs.iter().flatten());
        let pairs = largest(all_pairs.map(|p| (p.addresses, p.volume)), top, by);
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

impl Analysis for TalkerTable {
    const TAKES_RECORDS: bool = true;
    const FLOW_BYTES: u64 = 224;

    type Message = ();
    type Found = Box<Self>;
    type Merger = TalkerMerger;

    fn new(setup: &Setup, shard: Shard) -> Self {
        Self::new(setup.hash_key, setup.capacity_of(shard))
    }

    #[inline(always)]
    fn on_record(&mut self, record: &FlowRecord) {
        self.take(record);
    }

    fn end(mut self) -> Box<Self> {
        self.add_waiting();
        Box::new(self)
    }
}

/// The tables of all shards as one.
pub struct TalkerMerger {
    all: Option<Box<TalkerTable>>,
    top: usize,
}

impl Merge<TalkerTable> for TalkerMerger {
    type Section = Talkers;

    fn new(setup: &Setup) -> Self {
        Self { all: None, top: setup.options.top }
    }

    fn merge(&mut self, found: Box<TalkerTable>) {
        match &mut self.all {
            Some(all) => all.merge(*found),
            none => *none = Some(found),
        }
    }

    fn end(self, _: &mut dyn FnMut(&Alert)) -> Talkers {
        self.all.map(|all| all.finish(self.top)).unwrap_or_default()
    }
}

impl Section for Talkers {
    fn losses(&self) -> Vec<(&'static str, u64)> {
        vec![("octets uncertain among the talkers", self.error_bound)]
    }

    fn warnings(&self) -> Vec<String> {
        let count = self.error_bound;
        let warning = format!(
            "the talkers' octets may be short by up to {count} for lack of memory: raise --memory or --max-flows"
        );
        (count > 0).then_some(warning).into_iter().collect()
    }

    fn show(&self, page: &mut Page, _: &About<'_>) {
        text::show(self, page);
    }
}

#[cfg(test)]
mod tests;
