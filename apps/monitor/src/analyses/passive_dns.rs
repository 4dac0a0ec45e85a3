//! Passive DNS: which names led to which addresses and names, from all answers.
//!
//! ```text
//! answer ── records with a target ──▶ owner, type, target: answers, first, last
//! ```
//!
//! Names are in lower case, because servers repeat the case of a question. Rows are exact while there is room; records
//! without room are counted. A row is the same whatever the order of answers, so the section does not depend on the
//! arrangement.

use std::cmp::Reverse;

use ringtap_base::text;
use ringtap_enrich::Stage;
use ringtap_flow::{DnsRecord, Event, Kind, unescaped};
use ringtap_stage::Shard;
use ringtap_state::{Op, Row, Rows as StateRows, Schema};
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use serde::Serialize;

use super::analysis::{About, Analysis, Context, Merge, Section, Signals};
use super::names::{Rows, short};
use crate::time::Time;
use crate::volume::is_zero;

/// Names and what they led to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassiveDns {
    /// The most frequent by answers first.
    pub rows: Vec<PassiveDnsRow>,
    /// Distinct records.
    pub records: u64,
    /// Records of answers that are in no row, because there was no room for another one.
    #[serde(skip_serializing_if = "is_zero")]
    pub records_ignored: u64,
}

/// A name, and an address or a name that it led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassiveDnsRow {
    /// The owner, in lower case; invalid UTF-8 is replaced.
    pub name: String,
    /// The type, such as `A`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address or the name, in lower case.
    pub data: String,
    /// Answers with this record.
    pub answers: u64,
    /// The first answer.
    pub first: Time,
    /// The last answer.
    pub last: Time,
}

/// Longest name and longest data in a text report, characters.
const SHOWN_NAME: usize = 25;
const SHOWN_DATA: usize = 34;

/// The owner, type and target, separated by spaces; answers, and the times of the first and the last.
static RECORDS: Schema = Schema::new("dns_records", 0, &[Op::Add, Op::Min, Op::Max]);

/// Answers with a record.
#[derive(Clone, Copy)]
struct Seen {
    answers: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { answers: 0, first_ns: u64::MAX, last_ns: 0 }
    }
}

impl Seen {
    fn add(&mut self, more: Self) {
        self.answers += more.answers;
        self.first_ns = self.first_ns.min(more.first_ns);
        self.last_ns = self.last_ns.max(more.last_ns);
    }
}

/// The records of one shard.
pub struct PassiveDnsTable {
    records: Rows<Seen>,
    /// Room for a row's key.
    key: Vec<u8>,
}

impl PassiveDnsTable {
    /// A table whose rows take at most these bytes.
    fn with_room(bytes: usize) -> Self {
        Self { records: Rows::new(bytes), key: Vec::new() }
    }

    fn add(&mut self, key: &[u8], seen: Seen) {
        self.records.add(key, seen.answers, |row| row.add(seen));
    }

    fn report(self, top: usize) -> PassiveDns {
        let (records, records_ignored) = (self.records.len(), self.records.ignored);
        let rows = self.records.largest(top, |row| row.answers);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let row = |(key, seen): (Box<[u8]>, Seen)| {
            let mut parts = key.splitn(3, |&byte| byte == b' ').map(text);
            let [name, kind, data] = std::array::from_fn(|_| parts.next().unwrap_or_default());
            PassiveDnsRow {
                name: text(&unescaped(name.as_bytes())),
                kind,
                data,
                answers: seen.answers,
                first: Time(seen.first_ns),
                last: Time(seen.last_ns),
            }
        };
        PassiveDns { rows: rows.into_iter().map(row).collect(), records, records_ignored }
    }
}

impl Analysis for PassiveDnsTable {
    const IN_ALL: bool = false;
    const TAKES_EVENTS: bool = true;
    const TABLES: &'static [&'static Schema] = &[&RECORDS];

    type Found = Box<Self>;
    type Merger = PassiveDnsMerger;

    fn new(context: &Context, shard: Shard) -> Self {
        Self::with_room(context.part(context.name_bytes, shard))
    }

    fn on_event(&mut self, event: &Event) {
        if event.values.first(Kind::DnsKind) != Some(b"answer") {
            return;
        }
        let seen = Seen { answers: 1, first_ns: event.time_ns, last_ns: event.time_ns };
        for record in event.values.of(Kind::DnsRecords).filter_map(DnsRecord::of) {
            let Some(target) = record.target().filter(|_| record.class.is_none()) else { continue };
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            key.extend(record.owner.iter().map(u8::to_ascii_lowercase));
            key.push(b' ');
            key.extend_from_slice(record.kind);
            key.push(b' ');
            key.extend(target.iter().map(u8::to_ascii_lowercase));
            self.add(&key, seen);
            self.key = key;
        }
    }

    fn save(&mut self, _: &'static Schema, rows: &mut StateRows) {
        for (key, seen) in self.records.all() {
            rows.push(&[], &[seen.answers, seen.first_ns, seen.last_ns], key);
        }
    }

    fn load(&mut self, _: &'static Schema, row: &Row<'_>) -> Option<()> {
        let [answers, first_ns, last_ns] = row.numbers();
        self.add(row.tail, Seen { answers, first_ns, last_ns });
        Some(())
    }

    fn end(self) -> Box<Self> {
        Box::new(self)
    }
}

/// The records of all shards.
pub struct PassiveDnsMerger {
    all: PassiveDnsTable,
    top: usize,
}

impl Merge<PassiveDnsTable> for PassiveDnsMerger {
    type Section = PassiveDns;

    fn new(context: &Context) -> Self {
        let all = PassiveDnsTable::with_room(context.name_bytes as usize);
        Self { all, top: context.top }
    }

    fn merge(&mut self, found: Box<PassiveDnsTable>) {
        found.records.all().for_each(|(key, seen)| self.all.add(key, *seen));
        self.all.records.ignored += found.records.ignored;
    }

    fn end(self, _: Signals<'_>) -> PassiveDns {
        self.all.report(self.top)
    }
}

impl Section for PassiveDns {
    fn pass(&mut self, stage: &mut Stage) {
        if !stage.replaces() {
            return;
        }
        for row in &mut self.rows {
            stage.replace_name(&mut row.name);
            stage.replace_name(&mut row.data);
        }
        self.rows.sort_by(|a, b| {
            let order = |row: &PassiveDnsRow| Reverse(row.answers);
            let text = |row: &PassiveDnsRow| [&row.name, &row.kind, &row.data].map(String::clone);
            (order(a), text(a)).cmp(&(order(b), text(b)))
        });
    }

    fn show(&self, page: &mut Page, about: &About) {
        let mut table = Table::with_head(&[
            ("name", Left),
            ("type", Left),
            ("address or name", Left),
            ("answers", Right),
            ("first", Left),
        ]);
        for row in &self.rows {
            table.row([
                short(&row.name, SHOWN_NAME).into(),
                text::shown(&row.kind).into_owned().into(),
                short(&row.data, SHOWN_DATA).into(),
                Cell::count(row.answers),
                about.times.short(row.first).into(),
            ]);
        }
        page.section("Passive DNS", table);
        let further = self.records - self.rows.len() as u64;
        if further > 0 {
            page.line(&format!("({} further)", count(further)));
        }
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{FlowKey, IpVersion, Values};

    use super::*;

    fn event(time_ns: u64, kind: &str, records: &[&str]) -> Event {
        let (src, dst) = ([1; 16], [2; 16]);
        let version = IpVersion::V6;
        let key = FlowKey { version, src, dst, src_port: 53, dst_port: 2, protocol: 17 };
        let mut values = Values::default();
        values.push(Kind::Protocol, b"dns");
        values.push(Kind::DnsKind, kind.as_bytes());
        records.iter().for_each(|record| values.push(Kind::DnsRecords, record.as_bytes()));
        Event { key, time_ns, ingress: 0, values }
    }

    fn events() -> Vec<Event> {
        vec![
            event(50, "answer", &["A.example A 60 192.0.2.1", "a.example A 60 192.0.2.2"]),
            event(10, "answer", &["a.EXAMPLE A 5 192.0.2.1", "example MX 5 10 Mail.example"]),
            event(90, "answer", &["a.example A 60 192.0.2.1"]),
            event(95, "query", &["a.example A 60 192.0.2.9"]),
            event(96, "answer", &["v.bind CH/A 60 192.0.2.9", "example TXT 1 text", "odd"]),
            event(97, "answer", &[r"b\032c.local PTR 1 My Printer.local", "a HTTPS 1 1 . alpn=h3"]),
        ]
    }

    fn merged(parts: Vec<PassiveDnsTable>, room: usize) -> PassiveDns {
        let mut merger = PassiveDnsMerger { all: PassiveDnsTable::with_room(room), top: 10 };
        parts.into_iter().for_each(|part| merger.merge(Box::new(part)));
        merger.end(&mut |_| ())
    }

    #[test]
    fn records_have_their_answers_and_times_in_any_order() {
        let expected = [
            ("a.example", "A", "192.0.2.1", 3, 10, 90),
            ("a.example", "A", "192.0.2.2", 1, 50, 50),
            ("b c.local", "PTR", "my printer.local", 1, 97, 97),
            ("example", "MX", "mail.example", 1, 10, 10),
        ];
        for shards in [1, 3] {
            let mut parts: Vec<_> =
                (0..shards).map(|_| PassiveDnsTable::with_room(10_000)).collect();
            for (number, event) in events().iter().rev().enumerate() {
                parts[number % shards].on_event(event);
            }
            let report = merged(parts, 10_000);
            let rows: Vec<_> = report
                .rows
                .iter()
                .map(|row| {
                    let (name, kind, data) = (&row.name[..], &row.kind[..], &row.data[..]);
                    (name, kind, data, row.answers, row.first.0, row.last.0)
                })
                .collect();
            assert_eq!(rows, expected);
            assert_eq!((report.records, report.records_ignored), (4, 0));
        }
    }

    #[test]
    fn records_without_room_are_counted() {
        let mut table = PassiveDnsTable::with_room(20_000);
        for number in 0..1_000_u64 {
            table.on_event(&event(number, "answer", &[&format!("h{number} A 1 192.0.2.1")]));
        }
        let rows = table.records.len();
        assert!(rows > 100 && rows + table.records.ignored == 1_000, "{rows}");
        // The oldest rows stay, and go on.
        table.on_event(&event(5, "answer", &["h0 A 1 192.0.2.1"]));
        let report = merged(vec![table], 20_000);
        assert_eq!((report.rows[0].answers, report.rows[0].last.0), (2, 5));
        assert_eq!(report.records + report.records_ignored, 1_000);
    }
}
