//! Rows of a table, from the memory of the page or from the store, and how they are shown.

use std::net::IpAddr;

use hashbrown::HashMap;
use ringtap_query::moment::{self, Zone};
use ringtap_terminal::names;
use ringtap_terminal::numbers::count;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Lean, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::view::View;

/// Longest name in a table, characters.
const NAME: usize = 60;

/// Rows. The columns have the names that the questions of `ringtap query` give them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// How the values of a column are shown.
#[derive(Clone, Copy)]
enum As {
    Host,
    Bytes,
    Count,
    Application,
    Name,
    Protocol,
    Time,
    Seconds,
    Microseconds,
    /// A number or a word as it is.
    Plain(Lean),
}

/// Columns: their names in answers, their heads, and how they are shown.
const COLUMNS: [(&str, &str, As); 49] = [
    ("host", "host", As::Host),
    ("peer", "peer", As::Host),
    ("server", "server", As::Host),
    ("client", "a client", As::Host),
    ("source", "source", As::Host),
    ("destination", "destination", As::Host),
    ("source_port", "port", As::Plain(Right)),
    ("port", "port", As::Plain(Right)),
    ("protocol", "protocol", As::Protocol),
    ("application", "application", As::Application),
    ("name", "name", As::Name),
    ("network", "network", As::Plain(Left)),
    ("country", "country", As::Plain(Left)),
    ("number", "AS", As::Plain(Right)),
    ("organisation", "organisation", As::Plain(Left)),
    ("octets", "octets", As::Bytes),
    ("sent", "sent", As::Bytes),
    ("received", "received", As::Bytes),
    ("octets_before", "octets before", As::Bytes),
    ("more", "more", As::Bytes),
    ("packets", "packets", As::Count),
    ("packets_before", "packets before", As::Count),
    ("flows", "flows", As::Count),
    ("flows_before", "flows before", As::Count),
    ("connections", "connections", As::Count),
    ("clients", "clients", As::Count),
    ("peers", "peers", As::Count),
    ("questions", "questions", As::Count),
    ("messages", "messages", As::Count),
    ("answers", "answers", As::Count),
    ("answer", "answer", As::Plain(Left)),
    ("by", "by", As::Plain(Left)),
    ("responses", "responses", As::Count),
    ("mean_us", "mean response", As::Microseconds),
    ("slowest_record_us", "slowest record", As::Microseconds),
    ("rtt_median_us", "median round trip", As::Microseconds),
    ("rtt_longest_us", "longest", As::Microseconds),
    ("answer_mean_us", "mean answer", As::Microseconds),
    ("answer_longest_us", "longest", As::Microseconds),
    ("seconds", "duration", As::Seconds),
    ("start", "start", As::Time),
    ("end", "end", As::Time),
    ("first", "first", As::Time),
    ("last", "last", As::Time),
    ("time", "time", As::Time),
    ("state", "state", As::Plain(Left)),
    ("since", "since", As::Time),
    ("severity", "severity", As::Plain(Left)),
    ("text", "alert", As::Plain(Left)),
];

impl As {
    const fn lean(self) -> Lean {
        match self {
            Self::Host | Self::Application | Self::Name | Self::Protocol | Self::Time => Left,
            Self::Plain(lean) => lean,
            _ => Right,
        }
    }
}

impl Answer {
    /// An answer without rows.
    pub(super) fn with(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// The position of a column.
    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|own| own == name)
    }

    /// The number in a column.
    pub(super) fn number(&self, row: &[Value], name: &str) -> u64 {
        let value = self.place(name).and_then(|at| row.get(at));
        value.and_then(Value::as_u64).unwrap_or(0)
    }

    /// The time in a column, seconds since 1970.
    pub(super) fn time_s(&self, row: &[Value], name: &str) -> Option<u64> {
        let text = self.place(name).and_then(|at| row.get(at))?.as_str()?;
        let ms = moment::parse(text, 0, Zone::Utc).ok()?;
        Some(ms.unsigned_abs() / 1_000)
    }

    /// Adds the rows of an answer to another time. Those of equal keys, the first `keys` columns, become one: numbers are
    /// added up; of clients the larger number is kept, because some may be the same, and of texts the first, or the last.
    pub(super) fn add(&mut self, other: &Self, keys: usize) {
        if self.columns.is_empty() {
            self.columns.clone_from(&other.columns);
        }
        if self.columns != other.columns {
            return;
        }
        let key = |row: &[Value]| serde_json::to_string(row.get(..keys).unwrap_or(row));
        let places = self.rows.iter().enumerate();
        let mut places: HashMap<String, usize> =
            places.filter_map(|(at, row)| Some((key(row).ok()?, at))).collect();
        for row in &other.rows {
            let Ok(key) = key(row) else { continue };
            let at = *places.entry(key).or_insert_with(|| {
                self.rows.push(row[..keys.min(row.len())].to_vec());
                self.rows.len() - 1
            });
            let own = &mut self.rows[at];
            own.resize(row.len(), Value::Null);
            for (name, (own, more)) in self.columns.iter().zip(own.iter_mut().zip(row)).skip(keys) {
                join(name, own, more);
            }
        }
    }

    /// The largest rows by a column; equal ones in the order of their keys.
    pub(super) fn sort(&mut self, by: &str, keys: usize) {
        let Some(at) = self.place(by) else { return };
        let number = |row: &[Value]| row.get(at).and_then(Value::as_u64).unwrap_or(0);
        let key =
            |row: &[Value]| -> Vec<Ordered> { row.iter().take(keys).map(Ordered::of).collect() };
        self.rows.sort_by_cached_key(|row| (std::cmp::Reverse(number(row)), key(row)));
    }

    /// The rows as objects.
    pub(super) fn objects(&self) -> Vec<Value> {
        let object = |row: &Vec<Value>| {
            let pairs = self.columns.iter().cloned().zip(row.iter().cloned());
            Value::Object(pairs.collect())
        };
        self.rows.iter().map(object).collect()
    }

    /// The first rows as a table of a view.
    pub(super) fn table(&self, view: &View, rows: usize) -> Table {
        let known: Vec<_> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(at, name)| {
                let (_, head, of) = COLUMNS.iter().find(|(own, ..)| own == name)?;
                Some((at, *head, *of))
            })
            .collect();
        let head: Vec<_> = known.iter().map(|(_, head, of)| (*head, of.lean())).collect();
        let mut table = Table::with_head(&head);
        for row in self.rows.iter().take(rows) {
            table.row(
                known
                    .iter()
                    .map(|&(at, _, of)| cell(view, row.get(at).unwrap_or(&Value::Null), of)),
            );
        }
        table
    }
}

/// Joins a value with that of another time.
fn join(column: &str, own: &mut Value, more: &Value) {
    *own = match (&*own, more) {
        (Value::Null, more) => more.clone(),
        (_, Value::Null) => return,
        (Value::String(one), Value::String(other)) => match column {
            "last" => one.max(other).clone().into(),
            _ => one.min(other).clone().into(),
        },
        (one, other) => {
            let [one, other] = [one, other].map(|number| number.as_u64().unwrap_or(0));
            let joined =
                if column == "clients" { one.max(other) } else { one.saturating_add(other) };
            joined.into()
        }
    };
}

/// A key in its order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Ordered {
    Number(u64),
    Text(String),
}

impl Ordered {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            other => Self::Number(other.as_u64().unwrap_or(0)),
        }
    }
}

fn cell(view: &View, value: &Value, of: As) -> Cell {
    let number = value.as_u64();
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => return "".into(),
        other => other.to_string(),
    };
    match (of, number) {
        (As::Host, _) => {
            let Ok(address) = text.parse::<IpAddr>() else { return text.into() };
            Cell::from(text).to(view.link_with(|view| {
                view.host = Some(super::view::of_one(address));
            }))
        }
        (As::Bytes, Some(number)) => Cell::bytes(number),
        // What grew less than nothing.
        (As::Bytes, None) => match value.as_i64() {
            Some(less) => {
                format!("−{}", ringtap_terminal::numbers::bytes(less.unsigned_abs())).into()
            }
            None => text.into(),
        },
        (As::Count, Some(number)) => Cell::count(number),
        (As::Microseconds, Some(us)) => Cell::about(us, milliseconds(us)),
        (As::Protocol, Some(number)) => match u8::try_from(number) {
            Ok(number) => names::protocol(number).into(),
            Err(_) => text.into(),
        },
        (As::Application, _) => {
            let to = view.link_with(|view| view.application = Some(text.to_lowercase()));
            Cell::from(text).to(to)
        }
        (As::Name, _) => name_cell(view, &text),
        (As::Time, _) => view.time_text(&text).into(),
        (As::Seconds, _) => format!("{text} s").into(),
        _ => text.into(),
    }
}

/// A name, shortened, as a link to its flows.
pub(super) fn name_cell(view: &View, name: &str) -> Cell {
    if name.is_empty() {
        return "".into();
    }
    let mut text: String = name.chars().take(NAME).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    Cell::from(text).to(view.link_with(|view| view.name = Some(name.to_lowercase())))
}

pub(super) fn milliseconds(us: u64) -> String {
    format!("{}.{} ms", count(us / 1000), us / 100 % 10)
}
