//! Prints any result by its JSON: a list of objects is a table with a column for each field, in the order of the fields.

use std::fmt;

use ringtap_terminal::page::Page;
use ringtap_terminal::table::{Cell, Lean, Table};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, de};

/// A value of JSON whose fields keep their order.
enum Ordered {
    Text(String),
    Number(u64),
    /// Other numbers, as text.
    Other(String),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Ordered, E> {
        Ok(Ordered::Text(String::new()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Text(value.to_string()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Text(value.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Other(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Other(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Ordered, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element()? {
            all.push(value);
        }
        Ok(Ordered::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Ordered, A::Error> {
        let mut all = Vec::new();
        while let Some(field) = fields.next_entry()? {
            all.push(field);
        }
        Ok(Ordered::Object(all))
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

impl Ordered {
    fn of(report: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::from_str(&serde_json::to_string(report)?)
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Other(_))
    }

    /// The values of a row.
    fn cells(&self) -> Vec<&Self> {
        match self {
            Self::Object(fields) => fields.iter().map(|(_, value)| value).collect(),
            Self::List(values) => values.iter().collect(),
            one => vec![one],
        }
    }

    /// The value in a cell. One with parts is in a row of its own elsewhere, or has its number of parts.
    fn cell(&self) -> Cell {
        match self {
            Self::Text(text) | Self::Other(text) => text.clone().into(),
            Self::Number(number) => Cell::count(*number),
            Self::List(values) => Cell::count(values.len() as u64),
            Self::Object(fields) => Cell::count(fields.len() as u64),
        }
    }
}

/// Prints a result in a section of this name.
pub(super) fn any(name: &str, report: &impl Serialize, page: &mut Page) {
    page.heading(&title(name));
    match Ordered::of(report) {
        Ok(Ordered::Object(fields)) => object(&fields, page),
        Ok(Ordered::List(rows)) => list(&rows, page),
        Ok(one) => list(&[one], page),
        Err(error) => page.line(&format!("no JSON: {error}")),
    }
}

/// `long_names` as "Long names".
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let (first, rest) = words.split_at(words.len().min(1));
    first.to_uppercase() + rest
}

/// Numbers and words in one table, then each list in its own.
fn object(fields: &[(String, Ordered)], page: &mut Page) {
    let has_parts = |value: &Ordered| matches!(value, Ordered::List(_) | Ordered::Object(_));
    let mut table = Table::new(&[Lean::Left, Lean::Right]);
    for (name, value) in fields.iter().filter(|(_, value)| !has_parts(value)) {
        table.row([name.replace('_', " ").into(), value.cell()]);
    }
    if !table.is_empty() {
        page.table(table);
    }
    for (name, value) in fields.iter().filter(|(_, value)| has_parts(value)) {
        page.line(&format!("{}:", name.replace('_', " ")));
        match value {
            Ordered::List(rows) => list(rows, page),
            Ordered::Object(fields) => object(fields, page),
            _ => {}
        }
    }
}

fn list(rows: &[Ordered], page: &mut Page) {
    let Some(first) = rows.first() else {
        page.line("none");
        return;
    };
    let width = rows.iter().map(|row| row.cells().len()).max().unwrap_or(0);
    let is_number =
        |at: usize| rows.iter().all(|row| row.cells().get(at).is_none_or(|one| one.is_number()));
    let lean = |at| if is_number(at) { Lean::Right } else { Lean::Left };
    let mut table = match first {
        Ordered::Object(fields) => {
            let name = |at: usize| {
                fields.get(at).map_or(String::new(), |(name, _)| name.replace('_', " "))
            };
            Table::with_names((0..width).map(|at| (name(at).into(), lean(at))))
        }
        _ => Table::new(&(0..width).map(lean).collect::<Vec<_>>()),
    };
    for row in rows {
        table.row(row.cells().into_iter().map(Ordered::cell));
    }
    page.table(table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        host: &'static str,
        counts: u64,
    }

    #[derive(Serialize)]
    struct Report {
        all: u64,
        by_port: Vec<(&'static str, i64)>,
    }

    #[test]
    fn results_are_tables() {
        /// Without the title, which may have colours.
        fn text(value: &impl Serialize) -> String {
            let mut page = Page::default();
            any("long_names", value, &mut page);
            let text = page.text();
            let (title, rest) = text.split_once('\n').unwrap();
            assert!(title.contains("Long names"), "{title}");
            rest.to_owned()
        }
        let rows = [Row { host: "10.0.0.1", counts: 12_000 }, Row { host: "b", counts: 0 }];
        assert_eq!(text(&rows), "  host      counts\n  10.0.0.1  12,000\n  b              0\n");
        let report = Report { all: 3, by_port: vec![("ssh", -1), ("http", 2)] };
        assert_eq!(text(&report), "  all  3\n  by port:\n  ssh   -1\n  http   2\n");
        assert_eq!(text(&[0_u8; 0]), "  none\n");
        assert_eq!(text(&7), "  7\n");
    }
}
