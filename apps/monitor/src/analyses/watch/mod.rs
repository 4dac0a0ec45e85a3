//! Hosts that reached entries of the list of `--watch`.
//!
//! ```text
//! packet ── addresses ──▶ first sight of (entry, host) ──▶ alert of the entry at the next mark
//!                         and a hit of the entry, by second (hits.rs)
//! message ─ facts ──────▶ the same, and a match ─┐
//! flow record ─ addresses ─▶ a match ────────────┴──▶ rows: matches, first, last
//! ```
//!
//! The host is the other end of a flow with a watched address, or the client of a watched message. Matches are exact,
//! and so are all rows while there is room. The addresses of a pair are looked up once, as long as it stays among the
//! recent ones (recent.rs).

mod hits;
mod recent;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ringtap_enrich::{EntryKind, Stage, WatchList};
use ringtap_flow::{Event, FlowKey, FlowRecord, Kind};
use ringtap_stage::Shard;
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use ringtap_wire::{Flags, PacketRecord};
use serde::Serialize;

use self::hits::{CELL_BYTES, CELLS, Hits, end_ns, second};
use self::recent::Recent;
use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use crate::alerts::{Signal, Subject};
use crate::flow_ends::FlowEnds;
use crate::time::Time;
use crate::volume::is_zero;

/// Hosts that reached watched entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// In order of time; 10,000 at most.
    pub rows: Vec<WatchedRow>,
    /// Number of further rows.
    #[serde(skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Matches without room in memory; 0 means that all are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub matches_ignored: u64,
}

/// A watched entry and a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WatchedRow {
    /// The first match.
    pub first: Time,
    /// The last match; of a flow its end.
    pub last: Time,
    /// The other end of a flow with a watched address, or the client of a watched message.
    pub host: IpAddr,
    /// The entry.
    pub entry: String,
    /// What the entry is.
    #[serde(skip)]
    pub kind: EntryKind,
    /// Its label.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What matched first: the name of a field.
    pub field: &'static str,
    /// The flow of the first match.
    pub flow: FlowEnds,
    /// Flow records with a watched address, and messages.
    pub matches: u64,
}

/// Most rows of a worker.
const ROWS: usize = 1 << 15;
/// Memory of a row in the tables of a worker, with its share of their free places, and in the merger.
const ROW_BYTES: u64 = 400;
/// Most rows of the report, and of its text.
const LISTED: usize = 10_000;
const SHOWN: usize = 50;
/// Most columns of an entry and its label.
const TITLE: usize = 36;

/// An entry and a host.
type Key = (u32, IpAddr);

/// Where an entry was seen. The order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sight {
    time_ns: u64,
    flow: FlowKey,
    field: Field,
}

/// What matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Source,
    Destination,
    Fact(Kind),
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Source => "sourceAddress",
            Self::Destination => "destinationAddress",
            Self::Fact(kind) => kind.name(),
        }
    }
}

/// The matches of an entry by a host.
#[derive(Clone, Debug)]
struct Row {
    first: Option<Sight>,
    last_ns: u64,
    matches: u64,
}

/// The matches of one shard.
pub struct WatchTable {
    list: Arc<WatchList>,
    /// Pairs whose addresses were looked up.
    recent: Recent,
    networks: bool,
    rows: HashMap<Key, Row>,
    /// Rows whose alert was not handed over.
    sights: HashMap<Key, Sight>,
    /// Not handed over.
    hits: Hits,
    /// A host or a hit had no room.
    full: bool,
    ignored: u64,
}

/// A worker's partial result.
#[derive(Default)]
pub struct WatchFindings {
    sights: Vec<(Key, Sight)>,
    hits: Vec<hits::Cell>,
    full: bool,
    /// At the end.
    rows: Vec<(Key, Row)>,
    ignored: u64,
}

impl WatchTable {
    fn new(list: &Arc<WatchList>) -> Self {
        Self {
            list: Arc::clone(list),
            recent: Recent::new(),
            networks: list.count(EntryKind::Network) > 0,
            rows: HashMap::new(),
            sights: HashMap::new(),
            hits: Hits::default(),
            full: false,
            ignored: 0,
        }
    }

    /// The entries of both addresses, each with the host at the other end.
    fn ends(&self, key: &FlowKey) -> impl Iterator<Item = (Key, Field)> + use<> {
        let (source, destination) = (key.source(), key.destination());
        let of_source = self.list.address(source).map(|own| ((own, destination), Field::Source));
        let of_destination =
            self.list.address(destination).map(|own| ((own, source), Field::Destination));
        of_source.into_iter().chain(of_destination)
    }

    /// An entry was seen; returns its row, if there is room.
    fn see(&mut self, key: Key, sight: Sight) -> Option<&mut Row> {
        if self.rows.len() >= ROWS && !self.rows.contains_key(&key) {
            self.full = true;
            return None;
        }
        match self.rows.get(&key) {
            None => {
                self.sights.insert(key, sight);
            }
            Some(_) => {
                if let Some(own) = self.sights.get_mut(&key) {
                    *own = sight.min(*own);
                }
            }
        }
        Some(self.rows.entry(key).or_insert(Row { first: None, last_ns: 0, matches: 0 }))
    }

    fn count(&mut self, key: Key, sight: Sight, last_ns: u64) {
        match self.see(key, sight) {
            Some(row) => row.add(&Row { first: Some(sight), last_ns, matches: 1 }),
            None => self.ignored += 1,
        }
    }

    /// A packet whose addresses were not looked up, or which is earlier.
    fn look_up(&mut self, packet: &PacketRecord) {
        let flow = FlowKey::of(packet);
        for (key, field) in self.ends(&flow) {
            self.see(key, Sight { time_ns: packet.ts_ns, flow, field });
        }
        let entries = [flow.source(), flow.destination()].map(|end| self.list.address(end));
        let Self { recent, hits, full, .. } = self;
        recent.found(packet, entries, &mut |entry, second, packets| {
            *full |= !hits.add(second, entry, packets);
        });
    }

    /// All hits since the last call.
    fn take_hits(&mut self) -> Vec<hits::Cell> {
        let Self { recent, hits, full, .. } = self;
        recent.flush(|entry, second, packets| *full |= !hits.add(second, entry, packets));
        hits.take()
    }
}

impl Row {
    fn add(&mut self, more: &Self) {
        self.first = match (self.first, more.first) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.last_ns = self.last_ns.max(more.last_ns);
        self.matches += more.matches;
    }
}

/// The client of a message: the receiver of an answer, else the sender.
fn client(event: &Event) -> IpAddr {
    let values = &event.values;
    let is_answer = [
        (Kind::DnsKind, "answer"),
        (Kind::HttpKind, "response"),
        (Kind::TlsKind, "server"),
        (Kind::TlsKind, "certificate"),
        (Kind::TlsKind, "resumption"),
    ]
    .iter()
    .any(|(kind, answer)| values.first(*kind) == Some(answer.as_bytes()))
        || values.first(Kind::SshServer).is_some()
        || values.first(Kind::TlsServerAlerts).is_some();
    if is_answer { event.key.destination() } else { event.key.source() }
}

impl Analysis for WatchTable {
    const IS_FINDING: bool = true;
    const IN_ALL: bool = false;
    const TAKES_RECORDS: bool = true;
    const TAKES_EVENTS: bool = true;
    const WORKER_BYTES: u64 = ROWS as u64 * ROW_BYTES + CELLS as u64 * CELL_BYTES + Recent::BYTES;

    type Found = Box<WatchFindings>;
    type Merger = WatchMerger;

    fn new(context: &Context, _: Shard) -> Self {
        Self::new(&context.watch.clone().unwrap_or_default())
    }

    #[inline(always)]
    fn on_packets(&mut self, packets: &[PacketRecord]) {
        if !self.networks {
            return;
        }
        for packet in packets {
            let Self { recent, hits, full, .. } = self;
            let mut hit = |entry, second, packets| *full |= !hits.add(second, entry, packets);
            if packet.is_ip()
                && !packet.flags.contains(Flags::BAD_HEADER)
                && !recent.has(packet, &mut hit)
            {
                self.look_up(packet);
            }
        }
    }

    fn on_record(&mut self, record: &FlowRecord) {
        if self.networks {
            for (key, field) in self.ends(&record.key) {
                let sight = Sight { time_ns: record.first_ns, flow: record.key, field };
                self.count(key, sight, record.last_ns);
            }
        }
    }

    /// Each entry counts once a message.
    fn on_event(&mut self, event: &Event) {
        let mut entries: Vec<(u32, Kind)> = Vec::new();
        for (kind, value) in event.values.all() {
            if let Some(entry) = self.list.value(kind, value)
                && entries.iter().all(|(own, _)| *own != entry)
            {
                entries.push((entry, kind));
            }
        }
        for (entry, kind) in entries {
            let sight = Sight { time_ns: event.time_ns, flow: event.key, field: Field::Fact(kind) };
            self.count((entry, client(event)), sight, event.time_ns);
            self.full |= !self.hits.add(second(event.time_ns), entry, 1);
        }
    }

    fn adopt(&mut self, context: &Context, _: Shard) {
        let Self { list, recent, networks, hits, full, .. } = self;
        // What was looked up is of the list before.
        recent.flush(|entry, second, packets| *full |= !hits.add(second, entry, packets));
        *recent = Recent::new();
        *list = context.watch.clone().unwrap_or_default();
        *networks = list.count(EntryKind::Network) > 0;
    }

    fn on_tick(&mut self, _: u64) -> Option<Box<WatchFindings>> {
        let sights: Vec<_> = self.sights.drain().collect();
        let hits = self.take_hits();
        if sights.is_empty() && hits.is_empty() {
            return None;
        }
        let full = self.full;
        Some(Box::new(WatchFindings { sights, hits, full, ..WatchFindings::default() }))
    }

    fn end(mut self) -> Box<WatchFindings> {
        Box::new(WatchFindings {
            hits: self.take_hits(),
            sights: self.sights.into_iter().collect(),
            full: self.full,
            rows: self.rows.into_iter().collect(),
            ignored: self.ignored,
        })
    }
}

/// Adds up the workers' matches.
pub struct WatchMerger {
    list: Arc<WatchList>,
    /// Reported when all workers have passed a mark.
    sights: HashMap<Key, Sight>,
    hits: Hits,
    /// Of the end.
    last_sights: Vec<(Key, Sight)>,
    last_hits: Vec<hits::Cell>,
    /// The time of the last report.
    time_ns: u64,
    alerted: HashSet<Key>,
    full: bool,
    last_full: bool,
    rows: HashMap<Key, Row>,
    ignored: u64,
}

impl WatchMerger {
    fn new(list: Arc<WatchList>) -> Self {
        Self {
            list,
            sights: HashMap::new(),
            hits: Hits::default(),
            last_sights: Vec::new(),
            last_hits: Vec::new(),
            time_ns: 0,
            alerted: HashSet::new(),
            full: false,
            last_full: false,
            rows: HashMap::new(),
            ignored: 0,
        }
    }

    fn add_sights(&mut self, sights: Vec<(Key, Sight)>) {
        for (key, sight) in sights {
            let own = self.sights.entry(key).or_insert(sight);
            *own = sight.min(*own);
        }
    }

    fn add_hits(&mut self, hits: Vec<hits::Cell>) {
        for ((second, entry), number) in hits {
            self.full |= !self.hits.add(second, entry, number);
        }
    }

    /// Reports new hosts and these hits, in order of time.
    fn report_alerts(&mut self, hits: Vec<hits::Cell>, signals: Signals<'_>) {
        let mut sights: Vec<_> = self.sights.drain().map(|(key, sight)| (sight, key)).collect();
        sights.retain(|(_, key)| self.alerted.insert(*key));
        sights.sort_unstable();
        let mut sights = sights.into_iter().peekable();
        for ((second, entry), hits) in hits {
            let time_ns = end_ns(second);
            while let Some(sight) = sights.next_if(|(sight, _)| sight.time_ns < time_ns) {
                signals(self.sighted(sight));
            }
            let entry = self.list.text(entry).to_owned();
            signals(Signal::Hits { time: Time(time_ns), entry, hits });
        }
        sights.for_each(|sight| signals(self.sighted(sight)));
    }

    /// A host has reached an entry for the first time.
    fn sighted(&mut self, (sight, (entry, host)): (Sight, Key)) -> Signal {
        let Sight { time_ns, flow, field } = sight;
        let subject = Subject::Watched {
            entry: self.list.text(entry).to_owned(),
            kind: self.list.kind(entry),
            label: self.list.label(entry).to_owned(),
            host,
            hosts: vec![host],
            hits: 0,
            at_least: self.full,
            field: field.name(),
            flow,
        };
        Signal::New { time: Time(time_ns), subject }
    }
}

impl Merge<WatchTable> for WatchMerger {
    type Section = Watched;

    /// Alerts begin and continue in the order in which hosts are first seen.
    const IN_ORDER: bool = true;

    fn new(context: &Context) -> Self {
        Self::new(context.watch.clone().unwrap_or_default())
    }

    /// Entries keep their numbers in the next list.
    fn adopt(&mut self, context: &Context) {
        self.list = context.watch.clone().unwrap_or_default();
    }

    fn merge(&mut self, found: Box<WatchFindings>) {
        self.add_sights(found.sights);
        self.add_hits(found.hits);
        self.full |= found.full;
    }

    fn bytes(found: &Box<WatchFindings>) -> usize {
        size_of::<WatchFindings>() + size_of_val(&*found.sights) + size_of_val(&*found.hits)
    }

    fn merge_end(&mut self, found: Box<WatchFindings>) {
        self.last_sights.extend(found.sights);
        self.last_hits.extend(found.hits);
        self.last_full |= found.full;
        for (key, row) in found.rows {
            match self.rows.get_mut(&key) {
                Some(own) => own.add(&row),
                None => {
                    self.rows.insert(key, row);
                }
            }
        }
        self.ignored += found.ignored;
    }

    fn on_time(&mut self, time_ns: u64, signals: Signals<'_>) {
        // A clock was set back: seconds after it have ended, too.
        let is_back = time_ns < std::mem::replace(&mut self.time_ns, time_ns);
        let hits = if is_back { self.hits.take() } else { self.hits.take_before(time_ns) };
        self.report_alerts(hits, signals);
    }

    fn end(mut self, signals: Signals<'_>) -> Watched {
        let last = std::mem::take(&mut self.last_sights);
        self.add_sights(last);
        let last = std::mem::take(&mut self.last_hits);
        self.add_hits(last);
        self.full |= self.last_full;
        let hits = self.hits.take();
        self.report_alerts(hits, signals);
        let list = self.list;
        let row = |((entry, host), row): (Key, Row)| {
            let Sight { time_ns, flow, field } = row.first?;
            Some(WatchedRow {
                first: Time(time_ns),
                last: Time(row.last_ns),
                host,
                entry: list.text(entry).to_owned(),
                kind: list.kind(entry),
                label: list.label(entry).to_owned(),
                field: field.name(),
                flow: FlowEnds::of(&flow),
                matches: row.matches,
            })
        };
        let mut rows: Vec<_> = self.rows.into_iter().filter_map(row).collect();
        rows.sort_unstable();
        let further = rows.len().saturating_sub(LISTED) as u64;
        rows.truncate(LISTED);
        Watched { rows, further, matches_ignored: self.ignored }
    }
}

impl Section for Watched {
    fn pass(&mut self, stage: &mut Stage) {
        for row in &mut self.rows {
            stage.replace(&mut row.host);
            stage.replace(&mut row.flow.source);
            stage.replace(&mut row.flow.destination);
            stage.replace_entry(row.kind, &mut row.entry);
        }
        self.rows.sort_unstable();
    }

    /// Shows the most frequent.
    fn show(&self, page: &mut Page, about: &About) {
        page.heading("Watched entries");
        if self.rows.is_empty() {
            page.line("none seen");
        }
        let mut rows: Vec<&WatchedRow> = self.rows.iter().collect();
        // Stable: equal ones stay in the order of time.
        rows.sort_by_key(|row| Reverse(row.matches));
        let mut table = Table::with_head(&[
            ("entry", Left),
            ("host", Left),
            ("matches", Right),
            ("first", Left),
            ("field", Left),
        ]);
        for row in rows.iter().take(SHOWN) {
            table.row([
                title(row).into(),
                row.host.to_string().into(),
                Cell::count(row.matches),
                about.times.short(row.first).into(),
                row.field.into(),
            ]);
        }
        page.table(table);
        let more = rows.len().saturating_sub(SHOWN) as u64 + self.further;
        if more > 0 {
            page.line(&format!("and {} more; --report json has up to 10,000", count(more)));
        }
    }
}

/// The entry with its label, cut to fit the page.
fn title(row: &WatchedRow) -> String {
    let label = if row.label.is_empty() { String::new() } else { format!(" ({})", row.label) };
    let mut title = format!("{}{label}", row.entry);
    if let Some((end, _)) = title.char_indices().nth(TITLE) {
        title.truncate(end);
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{IpVersion, Values};

    use super::*;

    fn list(text: &str) -> Arc<WatchList> {
        Arc::new(WatchList::parse(text.as_bytes()).unwrap())
    }

    fn key(source: u8, destination: u8) -> FlowKey {
        let address = |last| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&[10, 0, 0, last]);
            bytes
        };
        FlowKey {
            version: IpVersion::V4,
            src: address(source),
            dst: address(destination),
            src_port: 1000,
            dst_port: 53,
            protocol: 17,
        }
    }

    fn event(key: FlowKey, time_ns: u64, facts: &[(Kind, &str)]) -> Event {
        let mut values = Values::default();
        facts.iter().for_each(|(kind, value)| values.push(*kind, value.as_bytes()));
        Event { key, time_ns, ingress: 0, values }
    }

    fn merged(list: &Arc<WatchList>, parts: Vec<WatchTable>) -> (Watched, Vec<Signal>) {
        let mut merger = WatchMerger::new(Arc::clone(list));
        parts.into_iter().for_each(|part| merger.merge_end(part.end()));
        let mut alerts = Vec::new();
        let section = merger.end(&mut |signal| alerts.push(signal));
        (section, alerts)
    }

    #[test]
    fn matches_add_up_over_shards_in_any_order() {
        let list = list("evil.example bad\n10.0.0.9");
        let events = [
            event(key(1, 53), 30, &[(Kind::DnsQueryName, "a.evil.example")]),
            event(
                key(53, 1),
                40,
                &[
                    (Kind::DnsKind, "answer"),
                    (Kind::DnsQueryName, "a.evil.example"),
                    (Kind::DnsAnswers, "evil.example"),
                ],
            ),
            event(key(2, 53), 20, &[(Kind::DnsQueryName, "other.example")]),
        ];
        let record = |source, destination, times: [u64; 2]| FlowRecord {
            first_ns: times[0],
            last_ns: times[1],
            ..FlowRecord::new(key(source, destination))
        };
        let records = [record(3, 9, [5, 60]), record(9, 3, [7, 8]), record(3, 4, [1, 2])];
        let of = |orders: [&[usize]; 2]| {
            let parts = orders.map(|order| {
                let mut part = WatchTable::new(&list);
                for &number in order {
                    part.on_event(&events[number]);
                    part.on_record(&records[number]);
                }
                part
            });
            merged(&list, parts.into())
        };
        let (section, alerts) = of([&[0, 1, 2], &[]]);
        assert_eq!(of([&[2, 1], &[0]]), (section.clone(), alerts.clone()));
        let rows: Vec<_> = section.rows.iter().map(|row| (&row.entry[..], row.matches)).collect();
        assert_eq!(rows, [("10.0.0.9", 2), ("evil.example", 2)]);
        let row = &section.rows[1];
        assert_eq!((row.host, &row.label[..]), (IpAddr::from([10, 0, 0, 1]), "bad"));
        assert_eq!((row.first, row.last, row.field), (Time(30), Time(40), "dnsQueryName"));
        let changes = alerts.iter().map(|signal| match signal {
            Signal::New { time, .. } => (*time, 0),
            Signal::Hits { time, hits, .. } => (*time, *hits),
            other => panic!("{other:?}"),
        });
        // The packets of the flow are no part of this test.
        let expected = [(Time(5), 0), (Time(30), 0), (Time(end_ns(0)), 2)];
        assert_eq!(changes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_alert_comes_once_for_an_entry_and_a_host() {
        let list = list("10.0.0.0/8");
        let mut table = WatchTable::new(&list);
        let mut merger = WatchMerger::new(Arc::clone(&list));
        let mut packet = PacketRecord { flags: Flags::IPV4, ts_ns: 7, ..PacketRecord::EMPTY };
        packet.src[..4].copy_from_slice(&[192, 0, 2, 1]);
        packet.dst[..4].copy_from_slice(&[10, 0, 0, 1]);
        let (mut alerts, mut hits) = (0, Vec::new());
        let mut take = |signal| match signal {
            Signal::Hits { time, hits: number, .. } => hits.push((time.0, number)),
            _ => alerts += 1,
        };
        for mark in 1..=3 {
            table.on_packets(&[packet; 4]);
            table.on_record(&FlowRecord::new(FlowKey::of(&packet)));
            let found = table.on_tick(0).unwrap();
            assert_eq!(found.sights.is_empty(), mark > 1);
            merger.merge(found);
            // The second has ended at the last of these marks.
            merger.on_time([0, 999_999_999, 1_000_000_000][mark - 1], &mut take);
        }
        assert!(table.on_tick(0).is_none());
        packet.ts_ns = 2_000_000_000;
        table.on_packets(&[packet; 2]);
        merger.merge_end(table.end());
        assert_eq!(merger.end(&mut take).rows[0].matches, 3);
        assert_eq!((alerts, hits), (1, vec![(1_000_000_000, 12), (3_000_000_000, 2)]));
    }

    /// The place of a pair may be taken by another pair at any packet.
    #[test]
    fn a_sight_is_the_earliest_packet_whatever_pairs_are_recent() {
        let list = list("10.0.0.0/8");
        let packet = |source: u8, ts_ns, src_port| {
            let flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
            let mut packet = PacketRecord { flags, ts_ns, src_port, ..PacketRecord::EMPTY };
            packet.src[..4].copy_from_slice(&[192, 0, 2, source]);
            packet.dst[..4].copy_from_slice(&[10, 0, 0, source]);
            packet
        };
        let own =
            [packet(1, 7, 5), packet(1, 9, 4), packet(1, 3, 6), packet(1, 3, 2), packet(1, 8, 1)];
        // The same hash: they take each other's place.
        let other = packet(2, 4, 1);
        let sights = |packets: &[PacketRecord]| {
            let mut table = WatchTable::new(&list);
            table.on_packets(packets);
            let found = table.on_tick(0).unwrap();
            let hits: u64 = found.hits.iter().map(|(_, hits)| hits).sum();
            assert_eq!(
                hits,
                packets.iter().filter(|packet| !packet.flags.contains(Flags::BAD_HEADER)).count()
                    as u64
            );
            let mut sights = found.sights;
            sights.sort_unstable();
            sights
        };
        let expected = sights(&[&own[..], &[other]].concat());
        assert_eq!(expected.len(), 2);
        assert_eq!((expected[0].1.time_ns, expected[0].1.flow.src_port), (3, 2));
        for at in 0..own.len() {
            let (before, after) = own.split_at(at);
            assert_eq!(sights(&[before, &[other], after].concat()), expected, "{at}");
        }
        let each: Vec<_> = own.iter().flat_map(|packet| [*packet, other]).collect();
        assert_eq!(sights(&each), expected);
        // A damaged header does not hide the pair.
        let damaged = PacketRecord { flags: Flags(own[0].flags.0 | Flags::BAD_HEADER.0), ..own[0] };
        assert_eq!(sights(&[&[damaged], &own[..], &[other]].concat()), expected);
    }

    #[test]
    fn what_a_worker_hands_over_at_its_end_is_reported_at_the_end() {
        let list = list("10.0.0.9");
        let table = || {
            let mut table = WatchTable::new(&list);
            table.on_record(&FlowRecord::new(key(1, 9)));
            table
        };
        let mut merger = WatchMerger::new(Arc::clone(&list));
        merger.merge_end(table().end());
        merger.on_time(0, &mut |signal| panic!("{signal:?}"));
        let mut signals = 0;
        merger.end(&mut |_| signals += 1);
        assert_eq!(signals, 1);
    }

    #[test]
    fn hosts_are_counted_in_the_order_of_time_in_any_shards() {
        let list = list("evil.example\n10.0.0.0/8");
        let of = |shards: usize| {
            let mut merger = WatchMerger::new(Arc::clone(&list));
            let mut tables: Vec<_> = (0..shards).map(|_| WatchTable::new(&list)).collect();
            let mut found = Vec::new();
            for mark in 0..2_u8 {
                for host in 0..20 {
                    let time_ns = 1_000 * u64::from(mark) + u64::from(90 - host);
                    let flow = key(40 * mark + host, 200);
                    let facts = [(Kind::HttpHost, "evil.example")];
                    tables[usize::from(host) % shards].on_event(&event(flow, time_ns, &facts));
                }
                for table in &mut tables {
                    table.on_tick(0).into_iter().for_each(|found| merger.merge(found));
                }
                merger.on_time(0, &mut |signal| match signal {
                    Signal::New { time, .. } => found.push(time.0),
                    other => panic!("{other:?}"),
                });
            }
            found
        };
        let expected: Vec<_> = (71..=90).chain(1_071..=1_090).collect();
        assert_eq!((of(1), of(3)), (expected.clone(), expected));
    }

    #[test]
    fn rows_are_bounded_and_the_rest_is_counted() {
        let list = list("evil.example");
        let mut table = WatchTable::new(&list);
        for number in 0..ROWS as u32 + 5 {
            let mut key = key(0, 0);
            key.src[..4].copy_from_slice(&number.to_be_bytes());
            table.on_event(&event(key, 1, &[(Kind::HttpHost, "evil.example")]));
        }
        let (section, signals) = merged(&list, vec![table]);
        let [new @ .., hits] = &signals[..] else { panic!("{signals:?}") };
        let is_at_least = |signal: &Signal| {
            matches!(signal, Signal::New { subject: Subject::Watched { at_least: true, .. }, .. })
        };
        assert!(new.len() == ROWS && new.iter().all(is_at_least), "{}", new.len());
        assert!(matches!(hits, Signal::Hits { hits, .. } if *hits == ROWS as u64 + 5), "{hits:?}");
        assert_eq!((section.rows.len(), section.further), (LISTED, (ROWS - LISTED) as u64));
        assert_eq!(section.matches_ignored, 5);
    }
}
