//! An answer as a table.

use std::fmt;

use ringtap_base::text::shown;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::web::Answer;

/// Columns of octets.
const OCTETS: [&str; 5] = ["octets", "sent", "received", "octets_before", "more"];
/// Columns of numbers that are not counts.
const PLAIN: [&str; 6] = ["port", "source_port", "protocol", "number", "id", "seconds"];
/// Names of protocols.
const PROTOCOLS: [(&str, &str); 5] =
    [("1", "ICMP"), ("6", "TCP"), ("17", "UDP"), ("58", "ICMPv6"), ("132", "SCTP")];

/// A row: its names and values, in order.
struct Row(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Row, M::Error> {
                let mut row = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    row.push(entry);
                }
                Ok(Row(row))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// The rows of an answer in lines of JSON.
fn read(answer: &[u8]) -> serde_json::Result<Vec<Row>> {
    serde_json::Deserializer::from_slice(answer).into_iter::<Row>().collect()
}

/// The rows of an answer in lines of JSON, with the names of their columns.
pub(super) fn rows(answer: &[u8]) -> serde_json::Result<Answer> {
    let rows = read(answer)?;
    let columns = rows.first().map(|Row(row)| row.iter().map(|(name, _)| name.clone()).collect());
    let values = |Row(row): Row| row.into_iter().map(|(_, value)| value).collect();
    Ok(Answer {
        columns: columns.unwrap_or_default(),
        rows: rows.into_iter().map(values).collect(),
    })
}

/// The table of an answer in lines of JSON.
pub(super) fn of(answer: &[u8]) -> anyhow::Result<String> {
    let rows = read(answer)?;
    let Some(Row(first)) = rows.first() else { return Ok("no rows\n".to_owned()) };
    let is_number = |at: usize| {
        rows.iter().all(|row| row.0.get(at).is_none_or(|(_, own)| own.is_number() || own.is_null()))
    };
    let leans: Vec<_> =
        (0..first.len()).map(|at| if is_number(at) { Right } else { Left }).collect();
    let is_of_octets = first.iter().any(|(name, _)| name == "octets");
    let mut table = Table::new(&leans);
    table.row(first.iter().map(|(name, _)| name.clone()));
    for Row(row) in &rows {
        table.row(row.iter().map(|(name, value)| cell(&text(value), name, is_of_octets)));
    }
    let mut page = Page::default();
    page.table(table);
    Ok(page.text())
}

/// A value as text; times without their letters.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text.split_once('T') {
            Some((date, time))
                if date.len() == 10 && date.starts_with(|digit: char| digit.is_ascii_digit()) =>
            {
                format!("{date} {}", time.strip_suffix('Z').unwrap_or(time))
            }
            _ => text.clone(),
        },
        other => other.to_string(),
    }
}

fn cell(value: &str, name: &str, is_of_octets: bool) -> String {
    if name == "protocol" {
        let known = PROTOCOLS.iter().find(|(number, _)| *number == value);
        return known.map_or(value, |(_, name)| name).to_owned();
    }
    if PLAIN.contains(&name) {
        return value.to_owned();
    }
    let (sign, digits) = value.strip_prefix('-').map_or(("", value), |digits| ("-", digits));
    match digits.parse::<u64>() {
        Ok(number) if OCTETS.contains(&name) && is_of_octets => format!("{sign}{}", bytes(number)),
        Ok(number) => format!("{sign}{}", count(number)),
        Err(_) => shown(value).to_string(),
    }
}
