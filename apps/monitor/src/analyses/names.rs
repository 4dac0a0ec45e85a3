//! Names: flow records and octets by the server that clients ask for, and by the name that DNS looks up.
//!
//! Rows are exact while there is room; values without room are counted. A name has one row whatever the order of
//! records, so the section does not depend on the arrangement.

use std::cmp::Reverse;
use std::collections::HashMap;

use ringtap_base::text;
use ringtap_enrich::Stage;
use ringtap_flow::{FlowRecord, Kind};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows as StateRows, Schema};
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use serde::Serialize;

use super::analysis::{About, Analysis, Context, Merge, Scope, Section, Signals};
use crate::volume::is_zero;

/// Names in payloads, from flow records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    /// Server names of TLS, QUIC and HTTP, the largest by octets first.
    pub servers: Vec<NameRow>,
    /// Names that DNS looked up, by flow records.
    pub dns: Vec<DnsNameRow>,
    /// Names whose look-ups failed, by failures.
    pub dns_failed: Vec<DnsNameRow>,
    /// Distinct server names.
    pub server_names: u64,
    /// Distinct names of DNS.
    pub dns_names: u64,
    /// Values that are in no row, because there was no room for another name.
    #[serde(skip_serializing_if = "is_zero")]
    pub values_ignored: u64,
}

/// A server name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameRow {
    /// As sent; invalid UTF-8 is replaced.
    pub name: String,
    /// Flow records.
    pub flows: u64,
    /// Their layer 3 octets, in both directions.
    pub octets: u64,
}

/// A name that DNS looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DnsNameRow {
    /// As sent; invalid UTF-8 is replaced.
    pub name: String,
    /// Flow records.
    pub flows: u64,
    /// Flow records whose first name it was, and whose first answer had another code than NOERROR.
    pub failed: u64,
}

/// Memory of a row besides its name and its sums, bytes: the map's entry, the allocation.
const ROW_BYTES: usize = 64;

/// Longest name in a text report, characters.
const SHOWN: usize = 60;

/// The name; flows and octets.
static SERVERS: Schema = Schema::new("servers", 0, &[Op::Add; 2]);
/// The name; octets of slices.
static SLICES: Schema = Schema::new("servers_by_time", 0, &[Op::Add; 1]);
/// The name; flows and failures.
static LOOKUPS: Schema = Schema::new("lookups", 0, &[Op::Add; 2]);

/// Sums by name.
pub(super) struct Rows<V> {
    rows: HashMap<Box<[u8]>, V>,
    /// Bytes that are free for further names.
    room: usize,
    /// Values whose name had no room.
    pub(super) ignored: u64,
}

impl<V: Copy + Default> Rows<V> {
    pub(super) fn new(room: usize) -> Self {
        Self { rows: HashMap::new(), room, ignored: 0 }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// All rows, in any order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], &V)> {
        self.rows.iter().map(|(name, sums)| (&**name, sums))
    }

    /// The rows with the largest numbers, then by name.
    pub(super) fn largest(self, top: usize, number: impl Fn(&V) -> u64) -> Vec<(Box<[u8]>, V)> {
        largest(self.rows, top, number)
    }

    /// Changes the row of a name, which stands for `values` values.
    pub(super) fn add(&mut self, name: &[u8], values: u64, change: impl FnOnce(&mut V)) {
        if let Some(row) = self.rows.get_mut(name) {
            return change(row);
        }
        let bytes = name.len() + ROW_BYTES + size_of::<V>();
        if bytes > self.room {
            self.ignored += values;
            return;
        }
        self.room -= bytes;
        change(self.rows.entry(name.into()).or_default());
    }
}

#[derive(Clone, Copy, Default)]
struct Server {
    flows: u64,
    octets: u64,
}

#[derive(Clone, Copy, Default)]
struct Lookup {
    flows: u64,
    failed: u64,
}

/// The sums of one shard.
pub struct NameTable {
    scope: Scope,
    servers: Rows<Server>,
    lookups: Rows<Lookup>,
    /// In a part of a state: the octets of slices, by the names that a flow had then.
    slices: Rows<u64>,
}

/// Halves of the memory for names that a table takes in a part of a state.
pub(crate) const HALVES_OF_PART: u64 = 3;

/// The names of servers in a record, and its octets.
fn servers_of(record: &FlowRecord) -> (impl Iterator<Item = &[u8]>, u64) {
    let facts = &record.facts;
    let names = facts.values(Kind::TlsServerName).chain(facts.values(Kind::HttpHost));
    (names, record.octets.iter().sum())
}

impl NameTable {
    /// A table whose names of each kind take at most half of these bytes.
    fn with_room(scope: Scope, bytes: usize) -> Self {
        let slices = if scope == Scope::Part { bytes / 2 } else { 0 };
        Self {
            scope,
            servers: Rows::new(bytes / 2),
            lookups: Rows::new(bytes / 2),
            slices: Rows::new(slices),
        }
    }

    #[cold]
    fn take(&mut self, record: &FlowRecord) {
        let facts = &record.facts;
        let by_time = self.scope == Scope::SomeParts;
        let (names, octets) = servers_of(record);
        let octets = if by_time { 0 } else { octets };
        for name in names {
            self.servers.add(name, 1, |row| {
                row.flows += 1;
                row.octets += octets;
            });
        }
        let failed = |code: &[u8]| code != b"NOERROR";
        let failed = facts.values(Kind::DnsResponseCode).next().is_some_and(failed);
        for (at, name) in facts.values(Kind::DnsQueryName).enumerate() {
            self.lookups.add(name, 1, |row| {
                row.flows += 1;
                // The code is that of the first answer.
                row.failed += u64::from(failed && at == 0);
            });
        }
    }

    fn merge(&mut self, other: Self) {
        for (name, more) in other.servers.rows {
            self.servers.add(&name, more.flows, |row| {
                row.flows += more.flows;
                row.octets += more.octets;
            });
        }
        for (name, more) in other.lookups.rows {
            self.lookups.add(&name, more.flows, |row| {
                row.flows += more.flows;
                row.failed += more.failed;
            });
        }
        self.servers.ignored += other.servers.ignored;
        self.lookups.ignored += other.lookups.ignored;
    }

    fn report(self, top: usize) -> Names {
        let values_ignored = self.servers.ignored + self.lookups.ignored;
        let server_names = self.servers.rows.len() as u64;
        let dns_names = self.lookups.rows.len() as u64;
        let servers = self.servers.largest(top, |row| row.octets);
        let looked_up = largest(self.lookups.rows.clone(), top, |row| row.flows);
        let mut failing = self.lookups.rows;
        failing.retain(|_, row| row.failed > 0);
        let failing = largest(failing, top, |row| row.failed);
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let dns = |(name, row): (Box<[u8]>, Lookup)| DnsNameRow {
            name: text(&name),
            flows: row.flows,
            failed: row.failed,
        };
        let server = |(name, row): (Box<[u8]>, Server)| NameRow {
            name: text(&name),
            flows: row.flows,
            octets: row.octets,
        };
        Names {
            servers: servers.into_iter().map(server).collect(),
            dns: looked_up.into_iter().map(dns).collect(),
            dns_failed: failing.into_iter().map(dns).collect(),
            server_names,
            dns_names,
            values_ignored,
        }
    }
}

/// The rows with the largest numbers, then by name.
fn largest<V: Copy>(
    rows: HashMap<Box<[u8]>, V>,
    top: usize,
    number: impl Fn(&V) -> u64,
) -> Vec<(Box<[u8]>, V)> {
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_unstable_by(|(a, one), (b, other)| {
        (Reverse(number(one)), a).cmp(&(Reverse(number(other)), b))
    });
    rows.truncate(top);
    rows
}

impl Analysis for NameTable {
    const TAKES_RECORDS: bool = true;
    const TAKES_SLICES: bool = true;
    const TABLES: &'static [&'static Schema] = &[&SERVERS, &LOOKUPS];
    const SLICE_TABLES: &'static [&'static Schema] = &[&SLICES];

    type Found = Box<Self>;
    type Merger = NameMerger;

    fn new(context: &Context, shard: Shard) -> Self {
        Self::with_room(context.scope, context.part(context.name_bytes, shard))
    }

    #[inline]
    fn on_record(&mut self, record: &FlowRecord) {
        if !record.facts.is_empty() {
            self.take(record);
        }
    }

    #[inline]
    fn on_slice(&mut self, slice: &FlowRecord) {
        if !slice.facts.is_empty() {
            let (names, octets) = servers_of(slice);
            names.for_each(|name| self.slices.add(name, 1, |row| *row += octets));
        }
    }

    fn save(&mut self, table: &'static Schema, rows: &mut StateRows) {
        if *table == SLICES && self.scope == Scope::Part {
            self.slices.rows.iter().for_each(|(name, octets)| rows.push(&[], &[*octets], name));
        } else if *table == SLICES {
            // The records of a run have the packets of all of its slices but those of live flows.
            let all = self.servers.rows.iter();
            all.for_each(|(name, row)| rows.push(&[], &[row.octets], name));
        } else if *table == SERVERS {
            for (name, row) in &self.servers.rows {
                rows.push(&[], &[row.flows, row.octets], name);
            }
        } else {
            for (name, row) in &self.lookups.rows {
                rows.push(&[], &[row.flows, row.failed], name);
            }
        }
    }

    fn save_slice(_: &'static Schema, slice: &FlowRecord, _: u64, rows: &mut StateRows) {
        let (names, octets) = servers_of(slice);
        names.for_each(|name| rows.push(&[], &[octets], name));
    }

    fn load(&mut self, table: &'static Schema, row: &Row<'_>) -> Option<()> {
        let by_time = self.scope == Scope::SomeParts;
        if *table == SLICES {
            let [octets] = row.numbers();
            if by_time {
                self.servers.add(row.tail, 1, |row| row.octets += octets);
            }
            return Some(());
        }
        let [flows, other] = row.numbers();
        if *table == SERVERS {
            self.servers.add(row.tail, flows, |row| {
                row.flows += flows;
                row.octets += if by_time { 0 } else { other };
            });
        } else {
            self.lookups.add(row.tail, flows, |row| {
                row.flows += flows;
                row.failed += other;
            });
        }
        Some(())
    }

    fn end(self) -> Box<Self> {
        Box::new(self)
    }
}

/// The sums of all shards.
pub struct NameMerger {
    all: NameTable,
    top: usize,
}

impl Merge<NameTable> for NameMerger {
    type Section = Names;

    fn new(context: &Context) -> Self {
        Self {
            all: NameTable::with_room(context.scope, context.name_bytes as usize),
            top: context.top,
        }
    }

    fn merge(&mut self, found: Box<NameTable>) {
        self.all.merge(*found);
    }

    fn end(self, _: Signals<'_>) -> Names {
        self.all.report(self.top)
    }
}

/// A name for people, cut if it has more characters.
pub(super) fn short(name: &str, most: usize) -> String {
    let shown = text::shown(name);
    let mut text: String = shown.chars().take(most).collect();
    if shown.chars().nth(most).is_some() {
        text.push('…');
    }
    text
}

impl Section for Names {
    fn pass(&mut self, stage: &mut Stage) {
        if !stage.replaces() {
            return;
        }
        self.servers.iter_mut().for_each(|row| stage.replace_host(&mut row.name));
        self.servers.sort_by(|a, b| (b.octets, &a.name).cmp(&(a.octets, &b.name)));
        for rows in [&mut self.dns, &mut self.dns_failed] {
            rows.iter_mut().for_each(|row| stage.replace_name(&mut row.name));
        }
        self.dns.sort_by(|a, b| (b.flows, &a.name).cmp(&(a.flows, &b.name)));
        self.dns_failed.sort_by(|a, b| (b.failed, &a.name).cmp(&(a.failed, &b.name)));
    }

    fn show(&self, page: &mut Page, _: &About) {
        let mut servers =
            Table::with_head(&[("server name", Left), ("octets", Right), ("flows", Right)]);
        for row in &self.servers {
            servers.row([
                short(&row.name, SHOWN).into(),
                Cell::bytes(row.octets),
                Cell::count(row.flows),
            ]);
        }
        page.section("Server names", servers);
        let further = |page: &mut Page, all: u64, listed: usize| {
            if all > listed as u64 {
                page.line(&format!("({} further)", count(all - listed as u64)));
            }
        };
        further(page, self.server_names, self.servers.len());
        let mut dns = Table::with_head(&[("name", Left), ("flows", Right), ("failed", Right)]);
        for row in &self.dns {
            let failed = match row.failed {
                0 => "".into(),
                failed => Cell::count(failed),
            };
            dns.row([short(&row.name, SHOWN).into(), Cell::count(row.flows), failed]);
        }
        page.section("DNS names", dns);
        further(page, self.dns_names, self.dns.len());
        let mut failed = Table::with_head(&[("name", Left), ("failed", Right), ("flows", Right)]);
        for row in &self.dns_failed {
            let [failures, flows] = [row.failed, row.flows].map(Cell::count);
            failed.row([short(&row.name, SHOWN).into(), failures, flows]);
        }
        page.section("DNS failures", failed);
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{FlowKey, IpVersion};

    use super::*;

    fn record(facts: &[(Kind, &str)], octets: u64) -> FlowRecord {
        let version = IpVersion::V6;
        let (src, dst) = ([1; 16], [2; 16]);
        let key = FlowKey { version, src, dst, src_port: 1, dst_port: 2, protocol: 17 };
        let mut record = FlowRecord { octets: [octets, 0], ..FlowRecord::new(key) };
        for (kind, value) in facts {
            record.facts.add(*kind, value.as_bytes(), usize::MAX).unwrap();
        }
        record
    }

    #[test]
    fn names_are_sorted_and_their_failures_counted() {
        use Kind::{DnsQueryName, DnsResponseCode, HttpHost, TlsServerName};
        let records = [
            record(&[(TlsServerName, "a")], 10),
            record(&[(HttpHost, "b"), (HttpHost, "a")], 5),
            record(&[(DnsQueryName, "x"), (DnsResponseCode, "NXDOMAIN")], 1),
            record(&[(DnsQueryName, "y"), (DnsQueryName, "x"), (DnsResponseCode, "NOERROR")], 1),
            record(&[], 99),
        ];
        let mut parts =
            [NameTable::with_room(Scope::Run, 2000), NameTable::with_room(Scope::Run, 2000)];
        for (number, record) in records.iter().enumerate() {
            parts[number % 2].on_record(record);
        }
        let [mut one, other] = parts;
        one.merge(other);
        let report = one.report(10);
        let servers: Vec<_> =
            report.servers.iter().map(|row| (row.name.as_str(), row.flows, row.octets)).collect();
        assert_eq!(servers, [("a", 2, 15), ("b", 1, 5)]);
        let dns: Vec<_> =
            report.dns.iter().map(|row| (row.name.as_str(), row.flows, row.failed)).collect();
        assert_eq!(dns, [("x", 2, 1), ("y", 1, 0)]);
        assert_eq!((report.dns_failed.len(), report.values_ignored), (1, 0));
        let mut small = NameTable::with_room(Scope::Run, 2 * (ROW_BYTES + 32));
        records.iter().for_each(|record| small.on_record(record));
        let report = small.report(1);
        assert_eq!((report.servers.len(), report.server_names, report.values_ignored), (1, 1, 2));
    }

    #[test]
    fn a_name_cannot_control_the_terminal_and_is_cut() {
        assert_eq!(short("a\u{1b}[2J", SHOWN), "a\\u{1b}[2J");
        assert_eq!(short(&"\u{9b}".repeat(SHOWN), SHOWN).chars().count(), SHOWN + 1);
    }
}
