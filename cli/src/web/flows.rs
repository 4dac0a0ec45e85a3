//! The flows of the last minutes, and their packets by minute, in bounded memory.
//!
//! ```text
//! worker ──▶ Keeper: a block of rows ── full, or at a mark ──▶ channel ──▶ Flows: the latest blocks
//! ```
//!
//! A row is a flow that ended, a slice of a flow, or a flow in one slice, which is both. What is summed up over time is
//! that of slices. A flow that begins is listed as live until its end comes.
//!
//! A worker never waits: a block is lost and counted if too many rows are on their way.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hashbrown::HashMap;
use ringtap_base::Network;
use ringtap_flow::{FlowKey, FlowRecord, Kind, Label, Origin, RecordSink, ResponseTimes, Slice};
use ringtap_monitor::report::Time;

use super::view::View;

/// Rows of a block.
const BLOCK: usize = 512;
/// Most rows kept.
pub(super) const MOST: usize = 200_000;
/// Most bytes of names kept.
const MOST_TEXT: usize = 16 << 20;
/// Most rows on their way to the page.
const WAITING: u64 = MOST as u64;
/// Most blocks on their way; with the rows of most of them there is no room for more rows.
const BLOCKS: usize = 4_096;
/// A block is handed on at a mark if none of the same worker is on its way, or if it has so many rows, or after so long a
/// time, nanoseconds, with fewer on their way than this.
const WORTH: usize = 64;
const LATE_NS: u64 = 10_000_000_000;
const FEW: u32 = 64;
/// The application of flows without a label.
const UNKNOWN: &str = "unknown";
/// Longest kept part of a name, bytes.
const NAME: usize = 200;
/// The bit of TCP's flags.
const SYN: u8 = 2;
/// Most live flows that are listed.
const MOST_LIVE: usize = 50_000;
/// Most bytes of their names.
const MOST_LIVE_TEXT: usize = 8 << 20;

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A flow in one slice.
    Both,
    /// A flow whose slices have rows of their own.
    Flow,
    /// The first slice of a flow.
    First,
    /// A later one.
    Slice,
    /// The first packet of a flow.
    Begin,
}

/// What is kept of a flow record; index 0 of pairs is the initiator's direction.
#[derive(Clone, Debug)]
pub(super) struct Row {
    of: Of,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) packets: [u64; 2],
    pub(super) octets: [u64; 2],
    pub(super) key: FlowKey,
    pub(super) server_port: u16,
    /// Microseconds of a round trip to the server: from SYN to SYN-ACK.
    pub(super) round_trip_us: Option<u32>,
    pub(super) responses: Option<ResponseTimes>,
    /// Microseconds from a question of DNS to its answer.
    pub(super) dns_us: Option<u32>,
    /// [`Label::EMPTY`] without one.
    pub(super) label: Label,
    /// Country and autonomous system of source and destination; zero if unknown.
    pub(super) countries: [[u8; 2]; 2],
    pub(super) systems: [u32; 2],
    /// Whether the initiator sent a SYN and nothing came back.
    pub(super) is_failed: bool,
    /// Lengths of the names in [`Flow`], which follow each other in the text of the block.
    lengths: [u8; 7],
}

impl Row {
    fn names_len(&self) -> usize {
        self.lengths.iter().map(|&length| usize::from(length)).sum()
    }

    /// The row with its names, which are this text.
    fn with_names<'a>(&'a self, mut text: &'a str) -> Flow<'a> {
        let [server, lookup, failure, from, to, from_as, to_as] = self.lengths.map(|length| {
            let (name, after) = text.split_at(length.into());
            text = after;
            name
        });
        let (networks, organisations) = ([from, to], [from_as, to_as]);
        Flow { row: self, server, lookup, failure, networks, organisations }
    }

    /// Whether the flow counts where this slice is.
    pub(super) fn is_first(&self) -> bool {
        matches!(self.of, Of::Both | Of::First)
    }
}

/// A row and its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow<'a> {
    pub(super) row: &'a Row,
    /// The server's name, or nothing.
    pub(super) server: &'a str,
    /// The name that DNS looked up, or nothing.
    pub(super) lookup: &'a str,
    /// The response code of a failed lookup, or nothing.
    pub(super) failure: &'a str,
    /// The networks of source and destination, as the user names them.
    pub(super) networks: [&'a str; 2],
    /// The organisations of their autonomous systems.
    pub(super) organisations: [&'a str; 2],
}

impl<'a> Flow<'a> {
    /// The name of the server, otherwise that which DNS looked up.
    pub(super) fn name(&self) -> &'a str {
        if self.server.is_empty() { self.lookup } else { self.server }
    }

    /// Source and destination.
    pub(super) fn hosts(&self) -> [IpAddr; 2] {
        [self.row.key.source(), self.row.key.destination()]
    }

    fn matches(&self, view: &View) -> bool {
        let key = &self.row.key;
        view.host.is_none_or(|network| self.hosts().iter().any(|host| within(network, *host)))
            && view.port.is_none_or(|port| [key.src_port, key.dst_port].contains(&port))
            && view
                .application
                .as_ref()
                .is_none_or(|label| application(&self.row.label).eq_ignore_ascii_case(label))
            && view.name.as_ref().is_none_or(|name| {
                [self.server, self.lookup].iter().any(|own| own.to_lowercase().contains(&**name))
            })
    }
}

/// The name of a label on the page and in its filter.
pub(super) fn application(label: &Label) -> &str {
    if *label == Label::EMPTY { UNKNOWN } else { label.as_str() }
}

/// Whether an address is in a network.
pub(super) fn within(network: Network, host: IpAddr) -> bool {
    host.is_ipv4() == network.address.is_ipv4()
        && Network::around(host, network.length).address == network.address
}

/// A time in answers.
pub(super) fn iso(ns: u64) -> String {
    Time(ns / 1_000_000 * 1_000_000).to_string()
}

/// Rows in the order of their ends, roughly.
#[derive(Debug, Default)]
struct Block {
    rows: Vec<Row>,
    /// Rows that are flows.
    flows: u64,
    text: String,
    /// The blocks of the same worker that are on their way.
    on_way: Arc<AtomicU32>,
}

impl Block {
    fn push(&mut self, of: Of, record: &FlowRecord) {
        let facts = &record.facts;
        let first = |kind| facts.values(kind).next();
        let server = first(Kind::TlsServerName).or_else(|| first(Kind::HttpHost));
        let failure = first(Kind::DnsResponseCode).filter(|code| *code != b"NOERROR");
        let origin = |side: usize| record.origins.as_ref().map(|both| &both[side]);
        let text = |side: usize, of: fn(&Origin) -> Option<&str>| {
            origin(side).and_then(of).map(str::as_bytes)
        };
        let network: fn(&Origin) -> Option<&str> = |one| one.network.as_deref();
        let organisation: fn(&Origin) -> Option<&str> = |one| one.as_name.as_deref();
        let names = [
            server,
            first(Kind::DnsQueryName),
            failure,
            text(0, network),
            text(1, network),
            text(0, organisation),
            text(1, organisation),
        ];
        let lengths = names.map(|name| self.push_name(name.unwrap_or_default()));
        let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
        self.flows += u64::from(matches!(of, Of::Both | Of::Flow));
        self.rows.push(Row {
            of,
            first_ns: record.first_ns,
            last_ns: record.last_ns,
            packets: record.packets,
            octets: record.octets,
            key: record.key,
            server_port: record.server_port(),
            round_trip_us: record.tcp.as_ref().and_then(|tcp| tcp.handshake_us[0]),
            responses: record.responses,
            dns_us: first(Kind::DnsResponseTime).and_then(number),
            label: record.application.map_or(Label::EMPTY, |application| application.label),
            countries: [0, 1]
                .map(|side| origin(side).and_then(|one| one.country).unwrap_or([0; 2])),
            systems: [0, 1].map(|side| origin(side).and_then(|one| one.as_number).unwrap_or(0)),
            is_failed: record.key.protocol == 6
                && record.tcp_flags[0] & SYN != 0
                && record.packets[1] == 0,
            lengths,
        });
    }

    /// Appends a name to the text; returns its length.
    fn push_name(&mut self, name: &[u8]) -> u8 {
        let before = self.text.len();
        let name = String::from_utf8_lossy(name);
        self.text += &name[..name.floor_char_boundary(NAME)];
        (self.text.len() - before) as u8
    }

    /// All rows, with their names.
    fn rows(&self) -> impl Iterator<Item = Flow<'_>> {
        let mut rest = &self.text[..];
        self.rows.iter().map(move |row| {
            let (own, after) = rest.split_at(row.names_len());
            rest = after;
            row.with_names(own)
        })
    }
}

/// A worker's sink.
pub(super) struct Keeper {
    block: Block,
    /// Whether the next record is a flow in one slice.
    is_whole: bool,
    sender: SyncSender<Block>,
    counts: Arc<Counts>,
    /// The time at the last mark, and when a block was handed on last.
    time_ns: u64,
    handed_ns: u64,
}

/// Rows, counted by both ends of the channel.
#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicU64,
    lost: AtomicU64,
    /// Lost rows that are flows.
    lost_flows: AtomicU64,
}

impl Keeper {
    fn hand_on(&mut self) {
        if self.block.rows.is_empty() {
            return;
        }
        let on_way = Arc::clone(&self.block.on_way);
        let next = Block { on_way, ..Block::default() };
        let mut block = std::mem::replace(&mut self.block, next);
        block.rows.shrink_to_fit();
        block.text.shrink_to_fit();
        let (rows, flows) = (block.rows.len() as u64, block.flows);
        // Relaxed: counters order no other data. Workers may exceed the limit by a block each.
        let has_room = self.counts.waiting.fetch_add(rows, Ordering::Relaxed) + rows <= WAITING;
        self.block.on_way.fetch_add(1, Ordering::Relaxed);
        self.handed_ns = self.time_ns;
        if !has_room || self.sender.try_send(block).is_err() {
            self.block.on_way.fetch_sub(1, Ordering::Relaxed);
            self.counts.waiting.fetch_sub(rows, Ordering::Relaxed);
            self.counts.lost.fetch_add(rows, Ordering::Relaxed);
            self.counts.lost_flows.fetch_add(flows, Ordering::Relaxed);
        }
    }

    fn push(&mut self, of: Of, record: &FlowRecord) {
        self.block.push(of, record);
        if self.block.rows.len() == BLOCK {
            self.hand_on();
        }
    }
}

impl RecordSink for Keeper {
    fn take(&mut self, record: &FlowRecord) {
        // Parts are not shown.
        if record.part.is_none() {
            self.whole(record);
        }
    }

    fn whole(&mut self, record: &FlowRecord) {
        let is_whole = std::mem::take(&mut self.is_whole);
        self.push(if is_whole { Of::Both } else { Of::Flow }, record);
    }

    fn begun(&mut self, key: &FlowKey, ts_ns: u64, octets: u64) {
        let mut record = FlowRecord::new(*key);
        (record.first_ns, record.last_ns) = (ts_ns, ts_ns);
        (record.packets, record.octets) = ([1, 0], [octets, 0]);
        self.push(Of::Begin, &record);
    }

    fn slice(&mut self, record: &FlowRecord, of: Slice) {
        self.is_whole = of == Slice::Whole;
        match of {
            Slice::Whole => {}
            Slice::First => self.push(Of::First, record),
            Slice::Later { .. } => self.push(Of::Slice, record),
        }
    }

    fn time(&mut self, time_ns: u64) {
        self.time_ns = time_ns;
    }

    fn mark(&mut self) {
        // Marks may be frequent; small blocks take more memory.
        let is_late = self.time_ns.saturating_sub(self.handed_ns) >= LATE_NS;
        let on_way = self.block.on_way.load(Ordering::Relaxed);
        if self.block.rows.len() >= WORTH || on_way == 0 || is_late && on_way < FEW {
            self.hand_on();
        }
    }

    fn finish(&mut self) {
        self.hand_on();
    }
}

/// The latest rows.
pub(super) struct Flows {
    /// The length of slices, nanoseconds.
    slice_ns: u64,
    receiver: Receiver<Block>,
    counts: Arc<Counts>,
    blocks: VecDeque<Block>,
    rows: usize,
    text: usize,
    /// Live flows with their names, by their ends in order.
    live: HashMap<FlowKey, (Row, String)>,
    live_text: usize,
    /// Flows that began and found no room among them.
    pub(super) unlisted: u64,
    /// All flows that ended, without those lost.
    pub(super) ended: u64,
    /// All rows that ended until then may be missing.
    pub(super) complete_after_ns: u64,
    /// Beginning of the earliest flow, and end of the latest.
    pub(super) earliest_ns: u64,
    pub(super) latest_ns: u64,
}

impl Flows {
    /// An empty list for slices of this length, nanoseconds, and a sink for each of the workers.
    pub(super) fn new(slice_ns: u64, workers: usize) -> (Self, Vec<Keeper>) {
        let (sender, receiver) = sync_channel(BLOCKS);
        let counts = Arc::<Counts>::default();
        let keeper = |_| Keeper {
            block: Block::default(),
            is_whole: false,
            sender: sender.clone(),
            counts: Arc::clone(&counts),
            time_ns: 0,
            handed_ns: 0,
        };
        let keepers = (0..workers).map(keeper).collect();
        let flows = Self {
            slice_ns: slice_ns.max(1),
            receiver,
            counts,
            blocks: VecDeque::new(),
            rows: 0,
            text: 0,
            live: HashMap::new(),
            live_text: 0,
            unlisted: 0,
            ended: 0,
            complete_after_ns: 0,
            earliest_ns: u64::MAX,
            latest_ns: 0,
        };
        (flows, keepers)
    }

    /// Rows lost on their way, because more came at once than the page could take.
    pub(super) fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::Relaxed)
    }

    /// All flows that ended, also those lost.
    pub(super) fn all(&self) -> u64 {
        self.ended + self.counts.lost_flows.load(Ordering::Relaxed)
    }

    /// Number of rows kept.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Takes what the workers have handed on.
    pub(super) fn receive(&mut self) {
        while let Ok(mut block) = self.receiver.try_recv() {
            self.counts.waiting.fetch_sub(block.rows.len() as u64, Ordering::Relaxed);
            block.on_way.fetch_sub(1, Ordering::Relaxed);
            self.list(&block);
            // They have no names.
            block.rows.retain(|row| row.of != Of::Begin);
            self.rows += block.rows.len();
            self.text += block.text.len();
            self.ended += block.flows;
            let latest = block.rows.iter().map(|row| row.last_ns).max().unwrap_or(0);
            self.latest_ns = self.latest_ns.max(latest);
            let earliest = block.rows.iter().map(|row| row.first_ns).min().unwrap_or(u64::MAX);
            self.earliest_ns = self.earliest_ns.min(earliest);
            self.blocks.push_back(block);
            while self.rows > MOST || self.text > MOST_TEXT {
                let Some(oldest) = self.blocks.pop_front() else { break };
                self.rows -= oldest.rows.len();
                self.text -= oldest.text.len();
                let ended = oldest.rows.iter().map(|row| row.last_ns).max().unwrap_or(0);
                self.complete_after_ns = self.complete_after_ns.max(ended);
            }
        }
    }

    /// Keeps the list of live flows up to date.
    fn list(&mut self, block: &Block) {
        for flow in block.rows() {
            let row = flow.row;
            let key = unordered(&row.key);
            let own = match row.of {
                Of::Both | Of::Flow => {
                    if let Some((_, names)) = self.live.remove(&key) {
                        self.live_text -= names.len();
                    }
                    continue;
                }
                Of::Begin if self.live.len() >= MOST_LIVE => {
                    self.unlisted += 1;
                    continue;
                }
                Of::Begin => {
                    let before = self.live.insert(key, (row.clone(), String::new()));
                    self.live_text -= before.map_or(0, |(_, names)| names.len());
                    continue;
                }
                Of::First | Of::Slice => self.live.get_mut(&key),
            };
            let Some((own, names)) = own else { continue };
            let (first_ns, octets, packets) = (own.first_ns, own.octets, own.packets);
            *own = Row { first_ns, ..row.clone() };
            if row.of == Of::Slice {
                let add = |one: [u64; 2], more: [u64; 2]| {
                    [one[0].saturating_add(more[0]), one[1].saturating_add(more[1])]
                };
                (own.octets, own.packets) = (add(octets, row.octets), add(packets, row.packets));
            }
            self.live_text -= names.len();
            names.clear();
            if self.live_text + own.names_len() > MOST_LIVE_TEXT {
                own.lengths = [0; 7];
                continue;
            }
            names.extend([flow.server, flow.lookup, flow.failure]);
            names.extend(flow.networks.into_iter().chain(flow.organisations));
            self.live_text += names.len();
        }
    }

    /// The live flows of a view, in no order.
    pub(super) fn live<'a>(&'a self, view: &'a View) -> Vec<Flow<'a>> {
        let flows = self.live.values().map(|(row, names)| row.with_names(names));
        flows.filter(|flow| flow.matches(view)).collect()
    }

    /// Drops live flows without packets since a time: their ends were lost on their way.
    pub(super) fn drop_before(&mut self, ns: u64) {
        if self.lost() > 0 {
            self.live.retain(|_, (row, names)| {
                let stays = row.last_ns >= ns;
                self.live_text -= if stays { 0 } else { names.len() };
                stays
            });
        }
    }

    /// The flows of a view that ended after `from_ns` and not after `until_ns`, the latest block first.
    pub(super) fn of<'a>(
        &'a self,
        view: &'a View,
        from_ns: u64,
        until_ns: u64,
    ) -> impl Iterator<Item = Flow<'a>> {
        let flows = self.blocks.iter().rev().flat_map(Block::rows);
        let within = move |row: &Row| {
            matches!(row.of, Of::Both | Of::Flow)
                && from_ns < row.last_ns
                && row.last_ns <= until_ns
        };
        flows.filter(move |flow| within(flow.row) && flow.matches(view))
    }

    /// The time of whole slices that this time is in: from the first, until before the second.
    pub(super) fn slices_in(&self, from_ns: u64, until_ns: u64) -> (u64, u64) {
        let whole = |ns: u64| ns - ns % self.slice_ns;
        (whole(from_ns), until_ns.checked_next_multiple_of(self.slice_ns).unwrap_or(u64::MAX))
    }

    /// The packets of a view in these slices of flows, the latest block first.
    pub(super) fn slices<'a>(
        &'a self,
        view: &'a View,
        (from_ns, until_ns): (u64, u64),
    ) -> impl Iterator<Item = Flow<'a>> {
        let slices = self.blocks.iter().rev().flat_map(Block::rows);
        let within = move |row: &Row| {
            row.of != Of::Flow
                && from_ns <= row.last_ns
                && (row.last_ns < until_ns || until_ns == u64::MAX)
        };
        slices.filter(move |slice| within(slice.row) && slice.matches(view))
    }
}

/// The key of both directions.
fn unordered(key: &FlowKey) -> FlowKey {
    let reversed = FlowKey {
        src: key.dst,
        dst: key.src,
        src_port: key.dst_port,
        dst_port: key.src_port,
        ..*key
    };
    if reversed < *key { reversed } else { *key }
}

#[cfg(test)]
pub(super) mod tests {
    use ringtap_flow::IpVersion;

    use super::*;

    /// A TCP flow of two packets, a kilobyte each way, between hosts given by numbers.
    pub(crate) fn record(last_s: u64, from: u8, to: (u8, u16)) -> FlowRecord {
        let mut key = FlowKey {
            version: IpVersion::V4,
            src: [0; 16],
            dst: [0; 16],
            src_port: 40_000,
            dst_port: to.1,
            protocol: 6,
        };
        key.src[..4].copy_from_slice(&[10, 0, 0, from]);
        key.dst[..4].copy_from_slice(&[10, 0, 0, to.0]);
        let mut record = FlowRecord::new(key);
        record.first_ns = last_s * 1_000_000_000 - 500_000_000;
        record.last_ns = last_s * 1_000_000_000;
        (record.packets, record.octets) = ([1, 1], [1000, 1000]);
        record
    }

    /// A TCP flow with a name of a server, and a lookup that failed.
    pub(crate) fn named(last_s: u64, from: u8, to: (u8, u16), name: &str) -> FlowRecord {
        let mut record = record(last_s, from, to);
        let mut add = |kind, value: &str| {
            record.facts.add(kind, value.as_bytes(), 2_000).unwrap();
        };
        add(Kind::TlsServerName, name);
        add(Kind::DnsQueryName, "lookup.example");
        add(Kind::DnsResponseCode, "NXDOMAIN");
        add(Kind::DnsResponseTime, "1500");
        record
    }

    /// Hands on a flow in one slice.
    pub(crate) fn keep(keeper: &mut Keeper, record: &FlowRecord) {
        keeper.slice(record, Slice::Whole);
        keeper.take(record);
    }

    fn view(query: &str) -> View {
        View::parse(query).unwrap()
    }

    #[test]
    fn flows_are_found_by_host_port_name_and_time() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 2);
        keep(&mut keepers[0], &record(10, 1, (2, 80)));
        keep(&mut keepers[1], &named(20, 3, (4, 443), "www.Example.org"));
        keepers.iter_mut().for_each(Keeper::mark);
        flows.receive();
        let found = |query: &str, from_s: u64, until_s: u64| {
            let view = view(query);
            flows
                .of(&view, from_s * 1_000_000_000, until_s * 1_000_000_000)
                .map(|flow| flow.row.key.dst_port)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("", 0, 100), [443, 80]);
        assert_eq!(found("", 10, 20), [443]);
        assert_eq!(found("", 9, 10), [80]);
        assert_eq!(found("host=10.0.0.2", 0, 100), [80]);
        assert_eq!(found("host=10.0.0.3&port=443", 0, 100), [443]);
        assert_eq!(found("port=40000", 0, 100), [443, 80]);
        assert_eq!(found("name=example.org", 0, 100), [443]);
        assert_eq!(found("name=LOOKUP", 0, 100), [443]);
        assert_eq!(found("application=dns", 0, 100), [0; 0]);
        assert_eq!(found("application=unknown", 0, 100), [443, 80]);
        let view = view("port=443");
        let flow = flows.of(&view, 0, u64::MAX).next().unwrap();
        assert_eq!(
            (flow.server, flow.lookup, flow.failure, flow.row.dns_us),
            ("www.Example.org", "lookup.example", "NXDOMAIN", Some(1500))
        );
        assert_eq!(flow.hosts()[1].to_string(), "10.0.0.4");
    }

    #[test]
    fn the_packets_of_a_flow_count_in_their_minutes_and_the_flow_when_it_ends() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        let whole =
            FlowRecord { first_ns: 50_000_000_000, packets: [9, 9], ..record(130, 1, (2, 80)) };
        for (minute, packets) in [(0, 3), (1, 5), (2, 1)] {
            let ns = 60_000_000_000 * minute;
            let (first_ns, last_ns) =
                (ns.max(whole.first_ns), whole.last_ns.min(ns + 59_999_999_999));
            let packets = [packets; 2];
            let of = if minute == 0 { Slice::First } else { Slice::Later { flow_first_ns: 0 } };
            keepers[0].slice(&FlowRecord { first_ns, last_ns, packets, ..whole.clone() }, of);
        }
        keepers[0].whole(&whole);
        keep(&mut keepers[0], &record(70, 1, (2, 443)));
        keepers[0].finish();
        flows.receive();
        let all = View::default();
        let packets = |from_s: u64, until_s: u64| {
            let time = flows.slices_in(from_s * 1_000_000_000, until_s * 1_000_000_000);
            flows.slices(&all, time).map(|slice| slice.row.packets[0]).collect::<Vec<_>>()
        };
        assert_eq!(packets(0, 60), [3]);
        // A minute of which a part is shown counts as a whole.
        assert_eq!(packets(61, 119), [5, 1]);
        assert_eq!(packets(120, u64::MAX / 1_000_000_000), [1]);
        assert_eq!(packets(0, 180), [3, 5, 1, 1]);
        let ended = |from: u64, until: u64| {
            flows.of(&all, from * 1_000_000_000, until * 1_000_000_000).count()
        };
        assert_eq!((ended(0, 69), ended(69, 70), ended(70, 130), flows.all()), (0, 1, 1, 2));
    }

    #[test]
    fn memory_is_bounded_and_what_is_missing_is_known() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        for second in 1..=(MOST + 3 * BLOCK) as u64 {
            keep(&mut keepers[0], &record(second, 1, (2, 80)));
            if second.is_multiple_of(64 * BLOCK as u64) {
                flows.receive();
            }
        }
        keepers[0].finish();
        flows.receive();
        assert!(flows.len() <= MOST && flows.len() > MOST - BLOCK, "{}", flows.len());
        assert_eq!(flows.lost(), 0);
        let missing = flows.ended - flows.len() as u64;
        assert_eq!(flows.complete_after_ns, missing * 1_000_000_000);
        let all = View::default();
        let found = flows.of(&all, flows.complete_after_ns, u64::MAX).count();
        assert_eq!(found, flows.len());
        // Long names count as well; text that is no UTF-8 is replaced.
        let name = "n".repeat(1000);
        for second in 1..=100_000 {
            keep(&mut keepers[0], &named(second, 1, (2, 80), &name));
            flows.receive();
        }
        assert!(flows.text <= MOST_TEXT && flows.text > MOST_TEXT / 2, "{}", flows.text);
    }

    #[test]
    fn a_slow_page_loses_flows_and_counts_them() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        let many = WAITING + 3 * BLOCK as u64;
        (1..=many).for_each(|second| keep(&mut keepers[0], &record(second, 1, (2, 80))));
        keepers[0].finish();
        flows.receive();
        assert!((1..=4 * BLOCK as u64).contains(&flows.lost()), "{}", flows.lost());
        assert_eq!((flows.ended + flows.lost(), flows.all()), (many, many));
    }

    /// At marks, one flow or few are handed on only if none is on its way.
    #[test]
    fn frequent_marks_lose_no_flows_and_make_few_blocks() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        for second in 1..=100_000 {
            keep(&mut keepers[0], &record(second, 1, (2, 80)));
            keepers[0].mark();
        }
        keepers[0].finish();
        flows.receive();
        assert_eq!((flows.lost(), flows.len()), (0, 100_000));
        assert!(flows.blocks.len() < 100_000 / WORTH + 3, "{}", flows.blocks.len());
        assert_eq!((flows.earliest_ns, flows.latest_ns), (500_000_000, 100_000_000_000_000));
    }
}
