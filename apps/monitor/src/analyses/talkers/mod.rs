//! Talkers: sums by source, destination, pair and port, from records of ended flows; in a part of a state from slices.
//! Every IP packet is in exactly one record, and in one slice, so the sums are those of the packets.
//!
//! ```text
//! record ─┬─▶ ports
//!         └─▶ recent pairs, both directions ──┬─▶ pairs        at the end, or when there are too many of them
//!                                             └─▶ hosts
//! ```
//!
//! They are exact while there is room. A full table drops the smaller half of its rows, as
//! Misra–Gries does (`room.rs`); the largest possible error of a row is known and reported.

mod rank;
mod room;
pub(crate) mod rows;
mod sums;
mod text;

use std::collections::BTreeMap;

use ringtap_enrich::Stage;
use ringtap_flow::{FlowKey, FlowRecord, IpVersion};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows, Schema};
use ringtap_terminal::page::Page;
use ringtap_wire::HashKey;

use rank::{By, Top};
use sums::{Ends, Found, HostKey, Sums};

use super::analysis::{About, Analysis, Context, Merge, Scope, Section, Signals};
use crate::volume::Volume;
use rows::{Crowds, HostOrigin, HostRow, PairRow, PortRow, Rankings, Talkers};

/// Most rows of a table under any options; less than it holds, because it exceeds its capacity.
const MOST: usize = ringtap_flow::MOST_ROWS * 3 / 4;

/// Version and addresses of a pair, the lower first; packets and octets from the lower and from the higher, and the
/// lowest and the highest number of the runs that saw it; at last, in states without slices, the number of its live flows,
/// which add no volume.
pub(crate) static PAIRS: Schema =
    Schema::new("pairs", 33, &[Op::Add, Op::Add, Op::Add, Op::Add, Op::Min, Op::Max, Op::Add]);

/// Protocol and port; packets and octets.
static PORTS: Schema = Schema::new("ports", 3, &[Op::Add; 2]);

/// Sums of one shard.
pub struct TalkerTable {
    /// The run, in a state.
    run: u64,
    /// Whether records add volumes; otherwise slices and the rows of states have them.
    takes_records: bool,
    v4: Sums<[u8; 4]>,
    v6: Sums<[u8; 16]>,
    /// Most pairs of both IP versions, and most hosts.
    capacity: usize,
    /// Most recent pairs, and least room for records.
    recent_most: usize,
    room: usize,
    ports: Ports,
    /// The largest of the pairs that are complete.
    largest: [Top<Ends>; 2],
}

/// The volume of each direction.
#[inline(always)]
fn volumes(record: &FlowRecord) -> [Volume; 2] {
    [0, 1].map(|side| Volume { packets: record.packets[side], octets: record.octets[side] })
}

/// The server port of a record, and its volume in both directions; `None` without a port.
#[inline(always)]
fn port_of(record: &FlowRecord) -> Option<((u8, u16), Volume)> {
    let port = record.server_port();
    let [mut both, back] = volumes(record);
    both.add(back);
    (port > 0).then_some(((record.key.protocol, port), both))
}

/// Adds a port to the rows of a state.
fn save_port((protocol, port): (u8, u16), volume: Volume, rows: &mut Rows) {
    let key: [&[u8]; 2] = [&[protocol], &port.to_be_bytes()];
    rows.push(&key, &[volume.packets, volume.octets], &[]);
}

/// Adds the pair of a record to the rows of a state.
fn save_pair(record: &FlowRecord, run: u64, rows: &mut Rows) {
    let FlowKey { version, src, dst, .. } = record.key;
    let [there, back] = volumes(record);
    let [(low, up), (high, down)] =
        if src <= dst { [(src, there), (dst, back)] } else { [(dst, back), (src, there)] };
    let numbers = [up.packets, up.octets, down.packets, down.octets, run, run, 0];
    rows.push(&[&[version as u8], &low, &high], &numbers, &[]);
}

/// Sums by protocol and port.
struct Ports {
    tcp: ByPort,
    udp: ByPort,
    /// Other protocols with ports are rare.
    others: BTreeMap<(u8, u16), Volume>,
}

impl Ports {
    fn new() -> Self {
        Self { tcp: ByPort::new(), udp: ByPort::new(), others: BTreeMap::new() }
    }

    #[inline(always)]
    fn add(&mut self, protocol: u8, port: u16, volume: Volume) {
        match protocol {
            6 => self.tcp.add(port, volume),
            17 => self.udp.add(port, volume),
            _ => self.others.entry((protocol, port)).or_default().add(volume),
        }
    }

    fn merge(&mut self, other: Self) {
        other.rows().for_each(|((protocol, port), volume)| self.add(protocol, port, volume));
    }

    fn rows(&self) -> impl Iterator<Item = ((u8, u16), Volume)> {
        let tcp = self.tcp.rows().map(|(port, volume)| ((6, port), volume));
        let udp = self.udp.rows().map(|(port, volume)| ((17, port), volume));
        tcp.chain(udp).chain(self.others.iter().map(|(&port, &volume)| (port, volume)))
    }
}

/// Ports of a block.
const BLOCK: usize = 64;

/// Sums by port number. Blocks without packets are never touched, so they take no memory and no time.
struct ByPort {
    volumes: Vec<Volume>,
    /// A bit for each block: whether it has any.
    used: [u64; (1 << 16) / BLOCK / 64],
}

impl ByPort {
    fn new() -> Self {
        Self { volumes: vec![Volume::default(); 1 << 16], used: [0; _] }
    }

    #[inline(always)]
    fn add(&mut self, port: u16, volume: Volume) {
        let block = usize::from(port) / BLOCK;
        self.used[block / 64] |= 1 << (block % 64);
        self.volumes[usize::from(port)].add(volume);
    }

    /// The ports of used blocks, in order.
    fn rows(&self) -> impl Iterator<Item = (u16, Volume)> {
        let blocks = (0..=u16::MAX).step_by(BLOCK).zip(self.volumes.chunks(BLOCK)).enumerate();
        let used = blocks.filter(|(block, _)| self.used[block / 64] >> (block % 64) & 1 != 0);
        used.flat_map(|(_, (first, volumes))| (first..=u16::MAX).zip(volumes.iter().copied()))
    }
}

impl TalkerTable {
    pub(crate) fn new(key: HashKey, capacity: usize, top: usize) -> Self {
        let capacity = capacity.clamp(1, MOST);
        Self {
            run: 0,
            takes_records: true,
            v4: Sums::new(key, capacity),
            v6: Sums::new(key, capacity),
            capacity,
            recent_most: capacity,
            room: capacity,
            ports: Ports::new(),
            largest: By::ALL.map(|by| Top::new(top, by)),
        }
    }

    #[inline]
    fn take(&mut self, record: &FlowRecord) {
        let key = record.key;
        let [there, back] = volumes(record);
        match key.version {
            IpVersion::V4 => self.v4.add(&key.src, &key.dst, there, back),
            IpVersion::V6 => self.v6.add(&key.src, &key.dst, there, back),
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
        if let Some(((protocol, port), both)) = port_of(record) {
            self.ports.add(protocol, port, both);
        }
    }

    /// Adds recent pairs to their hosts if there are too many.
    #[cold]
    fn make_room(&mut self) {
        let mut recent = self.v4.settle() + self.v6.settle();
        if recent * 2 > self.recent_most {
            // Each IP version gets room in proportion to its pairs.
            let [v4, all] = [self.v4.pairs(), self.v4.pairs() + self.v6.pairs()];
            let v4 = (self.capacity as u128 * v4 as u128 / all.max(1) as u128) as usize;
            self.v4.unload(v4.max(1));
            self.v6.unload((self.capacity - v4).max(1));
            // From now on both kinds of pairs take memory.
            self.recent_most = (self.capacity / 4).max(1);
            recent = 0;
        }
        self.room = (self.recent_most - recent).max(1);
    }

    /// Hosts, and the largest pairs: a pair has one owner, so these include the largest of all.
    fn finish(self) -> TalkersFound {
        let mut pairs = self.largest;
        let v4 = self.v4.finish(&mut pairs);
        let v6 = self.v6.finish(&mut pairs);
        TalkersFound { v4, v6, ports: self.ports, pairs }
    }
}

/// A worker's result.
pub struct TalkersFound {
    v4: Found<[u8; 4]>,
    v6: Found<[u8; 16]>,
    ports: Ports,
    pairs: [Top<Ends>; 2],
}

impl TalkersFound {
    /// Adds another shard's sums.
    fn merge(&mut self, other: Self) {
        self.v4.merge(other.v4);
        self.v6.merge(other.v6);
        self.ports.merge(other.ports);
        for (own, more) in self.pairs.iter_mut().zip(other.pairs) {
            own.merge(more);
        }
    }

    fn report(self, top: usize) -> Talkers {
        let Self { v4, v6, ports, pairs } = self;
        let mut hosts = By::ALL.map(|by| [Top::new(top, by), Top::new(top, by)]);
        v4.rank(&mut hosts);
        v6.rank(&mut hosts);
        let mut numbers = By::ALL.map(|by| Top::new(top, by));
        for (port, volume) in ports.rows() {
            numbers.iter_mut().for_each(|numbers| numbers.add(port, volume));
        }
        let [packets_error_bound, error_bound] =
            [0, 1].map(|sum| v4.lost()[sum].max(v6.lost()[sum]));
        let ([octets, packets], [octet_pairs, packet_pairs], [octet_ports, packet_ports]) =
            (hosts, pairs, numbers);
        let by_octets = rankings(octets, octet_pairs, octet_ports);
        let by_packets = rankings(packets, packet_pairs, packet_ports);
        Talkers { by_octets, by_packets, error_bound, packets_error_bound }
    }
}

/// The rows of lists of the same order.
fn rankings(
    [source, destination]: [Top<HostKey>; 2],
    pair: Top<Ends>,
    port: Top<(u8, u16)>,
) -> Rankings {
    let host = |((version, address), volume): (HostKey, Volume)| HostRow {
        address: version.address(&address),
        origin: HostOrigin::default(),
        volume,
    };
    let pair_row = |((version, low, high), volume): (Ends, Volume)| PairRow {
        addresses: [version.address(&low), version.address(&high)],
        volume,
    };
    let port_row = |((protocol, port), volume)| PortRow { protocol, port, volume };
    let (source, sources) = source.rows_and_crowd();
    let (destination, destinations) = destination.rows_and_crowd();
    let (pair, pairs) = pair.rows_and_crowd();
    Rankings {
        source: source.map(host).collect(),
        destination: destination.map(host).collect(),
        pair: pair.map(pair_row).collect(),
        port: port.rows().map(port_row).collect(),
        crowds: Crowds { source: sources, destination: destinations, pair: pairs },
    }
}

impl Analysis for TalkerTable {
    const TAKES_RECORDS: bool = true;
    const TAKES_SLICES: bool = true;
    const FLOW_BYTES: u64 = 232;
    const TABLES: &'static [&'static Schema] = &[&PAIRS, &PORTS];
    const SLICE_TABLES: &'static [&'static Schema] = &[&PAIRS, &PORTS];

    type Found = Box<TalkersFound>;
    type Merger = TalkerMerger;

    fn new(context: &Context, shard: Shard) -> Self {
        let (run, takes_records) = (context.run, context.scope == Scope::Run);
        Self {
            run,
            takes_records,
            ..Self::new(context.hash_key, context.capacity_of(shard), context.top)
        }
    }

    #[inline(always)]
    fn on_record(&mut self, record: &FlowRecord) {
        if self.takes_records {
            self.take(record);
        }
    }

    #[inline(always)]
    fn on_slice(&mut self, slice: &FlowRecord) {
        self.take(slice);
    }

    fn save(&mut self, table: &'static Schema, rows: &mut Rows) {
        if *table == PAIRS {
            self.v4.save(self.run, rows);
            self.v6.save(self.run, rows);
            return;
        }
        for (port, volume) in self.ports.rows().filter(|(_, own)| own.packets > 0) {
            save_port(port, volume, rows);
        }
    }

    fn save_slice(table: &'static Schema, slice: &FlowRecord, run: u64, rows: &mut Rows) {
        if *table == PAIRS {
            save_pair(slice, run, rows);
            return;
        }
        if let Some((port, volume)) = port_of(slice) {
            save_port(port, volume, rows);
        }
    }

    fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        if *table == PORTS {
            let (&[protocol], port) = row.key().split_first_chunk()?;
            let [packets, octets] = row.numbers();
            let port = u16::from_be_bytes(*port.first_chunk()?);
            self.ports.add(protocol, port, Volume { packets, octets });
            return Some(());
        }
        let (&[byte], rest) = row.key().split_first_chunk()?;
        let (low, rest) = rest.split_first_chunk()?;
        let high = rest.first_chunk()?;
        let version = IpVersion::from_number(byte)?;
        let [packets, octets, packets_back, octets_back, _, _, live] = row.numbers();
        let up = Volume { packets, octets };
        let down = Volume { packets: packets_back, octets: octets_back };
        if live == 0 {
            match version {
                IpVersion::V4 => self.v4.add_complete(low, high, up, down, &mut self.largest),
                IpVersion::V6 => self.v6.add_complete(low, high, up, down, &mut self.largest),
            }
            return Some(());
        }
        if (up, down) == Default::default() {
            return Some(());
        }
        match version {
            IpVersion::V4 => self.v4.add(low, high, up, down),
            IpVersion::V6 => self.v6.add(low, high, up, down),
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
        Some(())
    }

    fn end(self) -> Box<TalkersFound> {
        Box::new(self.finish())
    }
}

/// The sums of all shards.
pub struct TalkerMerger {
    all: Option<Box<TalkersFound>>,
    top: usize,
}

impl Merge<TalkerTable> for TalkerMerger {
    type Section = Talkers;

    fn new(context: &Context) -> Self {
        Self { all: None, top: context.top }
    }

    fn merge(&mut self, found: Box<TalkersFound>) {
        match &mut self.all {
            Some(all) => all.merge(*found),
            none => *none = Some(found),
        }
    }

    fn end(self, _: Signals<'_>) -> Talkers {
        self.all.map(|all| all.report(self.top)).unwrap_or_default()
    }
}

/// Adds origins and passes addresses through the stage; rows of equal volume are in the order of the new addresses.
fn pass(rankings: &mut Rankings, by: By, stage: &mut Stage) {
    let Rankings { source, destination, pair, port: _, crowds: _ } = rankings;
    for rows in [source, destination] {
        for row in &mut *rows {
            row.origin = HostOrigin::of(stage.origin(row.address));
            stage.replace(&mut row.address);
        }
        rows.sort_unstable_by_key(|row| by.order(row.address, &row.volume));
    }
    for row in &mut *pair {
        row.addresses.iter_mut().for_each(|address| stage.replace(address));
        row.addresses.sort_unstable();
    }
    pair.sort_unstable_by_key(|row| by.order(row.addresses, &row.volume));
}

impl Section for Talkers {
    fn pass(&mut self, stage: &mut Stage) {
        pass(&mut self.by_octets, By::Octets, stage);
        pass(&mut self.by_packets, By::Packets, stage);
    }

    fn show(&self, page: &mut Page, _: &About) {
        text::show(self, page);
    }
}

#[cfg(test)]
mod tests;
