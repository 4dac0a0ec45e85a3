//! The sum of a row of which names and values are known: of JSON, CSV, Parquet and other formats.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::{CORE_ROWS, RowSum, Spans, TAGS, push_item, push_number, push_text};
use crate::fields::{
    self, Columns, FIELDS, Row, Shape, Type, destinationIPAddress, flowEndMilliseconds,
    sourceIPAddress,
};

/// A column that sums contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column(u8);

impl Column {
    /// The column with this name in JSON, CSV or Parquet; `None` if sums do not contain it.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.get(name).copied()
    }

    /// The columns that every run writes to CSV and Parquet.
    pub fn of_all_runs() -> impl Iterator<Item = Self> {
        let columns = fields::columns(Columns::default());
        columns.filter(|(_, field)| field.is_summed()).map(|(row, _)| Self(row as u8))
    }

    /// Its name in CSV and Parquet.
    pub fn name(self) -> &'static str {
        FIELDS[usize::from(self.0)].name
    }
}

/// All names in JSON, CSV and Parquet.
static NAMES: LazyLock<HashMap<&str, Column>> = LazyLock::new(|| {
    let columns = (0..).zip(&FIELDS).filter(|(_, field)| field.is_summed());
    let names = columns.flat_map(|(row, field)| {
        let keys = field.keys.map(|key| key.trim_matches([',', '"', ':']));
        [field.name, keys[0], keys[1]].map(|name| (name, Column(row)))
    });
    names.collect()
});

/// A value in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// A number; times are milliseconds since 1970.
    Number(u64),
    /// A text, or the digits of a number.
    Text(&'a str),
}

/// The value is not of the type of its column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{column} is {value:?}, which is not a {wanted}")]
pub struct InvalidValue {
    column: &'static str,
    value: String,
    wanted: &'static str,
}

/// Collects the values of a row, in any order; those of a list in their own order. Its memory is that of the longest row.
#[derive(Debug, Default)]
pub struct NamedRow {
    /// The values as they were added.
    bytes: Vec<u8>,
    /// The column of each value, and its end in `bytes`.
    ends: Vec<(Column, usize)>,
    /// Places of values, and their columns, in the order of the table.
    order: Vec<(Column, usize, usize)>,
    /// The bytes of the row.
    row: Vec<u8>,
    /// The columns of the core that were added, also with zero.
    seen: u16,
}

/// Without these a row is not a flow record.
const NEEDED: u16 = 1 << flowEndMilliseconds::POSITION
    | 1 << sourceIPAddress::POSITION
    | 1 << destinationIPAddress::POSITION;

impl NamedRow {
    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.seen = 0;
    }

    /// Adds a value. Call it for each value of a list.
    ///
    /// # Errors
    /// The value is not of the type of the column.
    pub fn add(&mut self, column: Column, value: Given<'_>) -> Result<(), InvalidValue> {
        let row = usize::from(column.0);
        let tag = TAGS[row];
        let is_text = FIELDS[row].value == Type::Text;
        let push: fn(&mut Vec<u8>, u32, u64) =
            if FIELDS[row].is_list_of_numbers() { push_item } else { push_number };
        let invalid = |value: String| {
            let value = value.chars().take(64).collect();
            let wanted = if is_text { "text" } else { "number" };
            InvalidValue { column: column.name(), value, wanted }
        };
        match value {
            Given::Text(text) if is_text => {
                push_text(&mut self.bytes, tag, |bytes| bytes.extend_from_slice(text.as_bytes()));
            }
            Given::Number(number) if !is_text => push(&mut self.bytes, tag, number),
            Given::Text(text) => {
                let number = text.parse().map_err(|_| invalid(text.to_owned()))?;
                push(&mut self.bytes, tag, number);
            }
            Given::Number(number) => return Err(invalid(number.to_string())),
        }
        self.ends.push((column, self.bytes.len()));
        if row < CORE_ROWS {
            self.seen |= 1 << row;
        }
        Ok(())
    }

    /// Adds a field of CSV without its quotes: the values of a list are separated by semicolons, and `\xHH` is an octet.
    ///
    /// # Errors
    /// A value is not of the type of the column.
    pub fn add_csv(&mut self, column: Column, field: &str) -> Result<(), InvalidValue> {
        let whole = FIELDS[usize::from(column.0)].shape != Shape::List;
        if field.is_empty() {
            return Ok(());
        }
        for value in field.split(|letter| letter == ';' && !whole) {
            if value.contains('\\') {
                self.add(column, Given::Text(&unescaped(value)))?;
            } else {
                self.add(column, Given::Text(value))?;
            }
        }
        Ok(())
    }

    /// The sum of the row; `None` if it is not a flow record: end or addresses are missing.
    pub fn sum(&mut self) -> Option<RowSum> {
        if self.seen & NEEDED != NEEDED {
            return None;
        }
        self.order.clear();
        let mut start = 0;
        for &(column, end) in &self.ends {
            self.order.push((column, start, end));
            start = end;
        }
        // Stable, so that lists keep their order.
        self.order.sort_by_key(|&(column, ..)| column);
        self.row.clear();
        let (mut spans, mut core) = (Spans::default(), 0);
        for &(Column(row), start, end) in &self.order {
            let before = self.row.len();
            self.row.extend_from_slice(&self.bytes[start..end]);
            if let Some(span) = spans.get_mut(usize::from(row)) {
                core = self.row.len();
                *span = before..core;
            }
        }
        // Where there is no value, the place is that of the next one.
        for span in spans.iter_mut().rev() {
            match span.end {
                0 => *span = core..core,
                _ => core = span.start,
            }
        }
        Some(RowSum::of_bytes(&mut self.row, &spans))
    }
}

/// A text of CSV with the octets of its escapes.
fn unescaped(text: &str) -> String {
    let (mut octets, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once("\\x") {
        octets.extend_from_slice(before.as_bytes());
        let digits = behind.get(..2).filter(|two| two.bytes().all(|d| d.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(octet) => {
                octets.push(octet);
                rest = &behind[2..];
            }
            None => {
                octets.extend_from_slice(b"\\x");
                rest = behind;
            }
        }
    }
    octets.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&octets).into_owned()
}
