//! The tables of a state as columns, for other programs.
//!
//! A row is a key, numbers of 8 bytes and a tail, one after another, big-endian. A column takes its bytes behind those of the
//! one before; columns need not take all of a row.
//!
//! ```text
//! ports     protocol │ port, 2 bytes ║ packets │ octets ║
//! servers                            ║ flows │ octets   ║ name
//! ```

use std::borrow::Cow;
use std::io::Read;
use std::net::IpAddr;

use ringtap_flow::{IpVersion, unescaped};
use ringtap_state::{Row, Schema};

use super::header::MergeError;
use super::inputs::Inputs;

/// How a row stores a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// An address; before the first of a row is its version.
    Address,
    /// A number of one byte.
    U8,
    /// A number of two bytes.
    U16,
    /// A number of eight bytes.
    U64,
    /// Nanoseconds since 1970.
    Time,
    /// The number of an interval; the value is its beginning.
    Interval,
    /// Of the tail, the text up to the next space, with escapes.
    Word,
    /// The rest of the tail, a text.
    Text,
}

use Stored::{Address, Interval, Text, Time, U8, U16, U64, Word};

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Of [`Stored::Address`].
    Address(IpAddr),
    /// Of the numbers.
    Number(u64),
    /// Nanoseconds since 1970; `None` where a row has no time, as the sum of all intervals.
    Time(Option<i64>),
    /// Of the texts; invalid UTF-8 is replaced.
    Text(Cow<'a, str>),
}

/// A table with columns.
#[derive(Debug)]
pub struct Columns {
    /// Its name in states.
    stored: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The columns: their names, and how rows store them.
    pub columns: &'static [(&'static str, Stored)],
}

const fn table(name: &'static str, columns: &'static [(&'static str, Stored)]) -> Columns {
    Columns { stored: name, name, columns }
}

/// Columns of attempts.
const ATTEMPTS: &[(&str, Stored)] = &[
    ("source", Address),
    ("target", Address),
    ("port", U16),
    ("first", Time),
    ("last", Time),
    ("state", U8),
];

/// The tables with columns. The others are live flows, sums without a key, and tables of analyses of other crates.
static TABLES: [Columns; 14] = [
    table(
        "conversations",
        &[
            ("low_address", Address),
            ("low_port", U16),
            ("high_address", Address),
            ("high_port", U16),
            ("protocol", U8),
            ("interval", Interval),
        ],
    ),
    table(
        "protocols",
        &[("interval", Interval), ("protocol", U8), ("packets", U64), ("octets", U64)],
    ),
    table(
        "intervals",
        &[
            ("interval", Interval),
            ("packets", U64),
            ("ipv4_packets", U64),
            ("ipv6_packets", U64),
            ("non_ip_packets", U64),
            ("fragments", U64),
            ("truncated_packets", U64),
            ("inner_packets", U64),
            ("wire_octets", U64),
            ("ip_octets", U64),
            ("first", Time),
            ("last", Time),
        ],
    ),
    table(
        "pairs",
        &[
            ("low_address", Address),
            ("high_address", Address),
            ("low_packets", U64),
            ("low_octets", U64),
            ("high_packets", U64),
            ("high_octets", U64),
        ],
    ),
    table("ports", &[("protocol", U8), ("port", U16), ("packets", U64), ("octets", U64)]),
    table("attempts", ATTEMPTS),
    Columns { stored: "udp attempts", name: "udp_attempts", columns: ATTEMPTS },
    table(
        "applications",
        &[("flows", U64), ("packets", U64), ("octets", U64), ("application", Text)],
    ),
    table("applications_by_time", &[("packets", U64), ("octets", U64), ("application", Text)]),
    table("servers", &[("flows", U64), ("octets", U64), ("name", Text)]),
    table("lookups", &[("flows", U64), ("failed_flows", U64), ("name", Text)]),
    table(
        "tcp_servers",
        &[
            ("address", Address),
            ("port", U16),
            ("round_trip_ns", U64),
            ("round_trips", U64),
            ("handshake_us", U64),
            ("handshakes", U64),
            ("flows", U64),
        ],
    ),
    table(
        "tcp_pairs",
        &[
            ("low_address", Address),
            ("high_address", Address),
            ("retransmissions", U64),
            ("out_of_order", U64),
            ("packets", U64),
        ],
    ),
    table(
        "dns_records",
        &[
            ("answers", U64),
            ("first", Time),
            ("last", Time),
            ("name", Word),
            ("type", Word),
            ("data", Text),
        ],
    ),
];

/// The table of a state with this schema, if it has columns.
fn columns_of(schema: &Schema) -> Option<&'static Columns> {
    TABLES.iter().find(|own| own.stored == schema.name)
}

/// The tables with columns that a state has, in order.
///
/// # Errors
/// If it cannot be read or is damaged.
pub fn tables<R: Read>(state: R) -> Result<Vec<&'static Columns>, MergeError> {
    let inputs = Inputs::open(vec![state])?;
    Ok(inputs.tables.iter().filter_map(|schema| columns_of(schema)).collect())
}

/// Calls `each` with the number of a column and its value, row by row, for the rows of a table, and checks the whole state.
///
/// # Errors
/// If the state cannot be read or is damaged, or `each` fails.
pub fn read_columns<R: Read>(
    state: R,
    table: &Columns,
    mut each: impl FnMut(usize, Cell<'_>) -> Result<(), MergeError>,
) -> Result<(), MergeError> {
    let mut inputs = Inputs::open(vec![state])?;
    let interval_ns = inputs.header.settings.interval_ns;
    for at in 0..inputs.tables.len() {
        let is_table = inputs.tables[at].name == table.stored;
        inputs.merge(at, |row| {
            if !is_table {
                return Ok(());
            }
            let mut rest = Rest::of(row);
            for (number, &(_, stored)) in table.columns.iter().enumerate() {
                let cell = rest.take(stored, interval_ns);
                each(number, cell.ok_or(MergeError::Damaged("a row is impossible"))?)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Most numbers of a row in a table with columns.
const MOST_NUMBERS: usize = 11;

/// The values of a row that are not yet taken.
struct Rest<'a> {
    version: Option<IpVersion>,
    key: &'a [u8],
    numbers: std::array::IntoIter<u64, MOST_NUMBERS>,
    tail: &'a [u8],
}

impl<'a> Rest<'a> {
    fn of(row: &Row<'a>) -> Self {
        let numbers = row.numbers().into_iter();
        Self { version: None, key: row.key(), numbers, tail: row.tail }
    }

    /// The next value; `None` if there is none like that.
    fn take(&mut self, stored: Stored, interval_ns: Option<u64>) -> Option<Cell<'a>> {
        Some(match stored {
            Address => {
                if self.version.is_none() {
                    let [version] = self.bytes()?;
                    self.version = IpVersion::from_number(version);
                }
                Cell::Address(self.version?.address(&self.bytes()?))
            }
            U8 if self.key.is_empty() => {
                Cell::Number(u8::try_from(self.numbers.next()?).ok()?.into())
            }
            U8 => Cell::Number(u8::from_be_bytes(self.bytes()?).into()),
            U16 => Cell::Number(u16::from_be_bytes(self.bytes()?).into()),
            U64 => Cell::Number(self.numbers.next()?),
            Time => Cell::Time(self.numbers.next()?.try_into().ok()),
            Interval => {
                let number = u64::from_be_bytes(self.bytes()?);
                let ns = interval_ns.and_then(|length| number.checked_mul(length));
                Cell::Time(ns.and_then(|ns| ns.try_into().ok()))
            }
            Word => {
                let at = self.tail.iter().position(|&byte| byte == b' ')?;
                let (word, rest) = self.tail.split_at(at);
                self.tail = &rest[1..];
                Cell::Text(String::from_utf8_lossy(&unescaped(word)).into_owned().into())
            }
            Text => Cell::Text(String::from_utf8_lossy(self.tail)),
        })
    }

    /// The next bytes of the key.
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.key.split_first_chunk()?;
        self.key = rest;
        Some(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::image::known_tables;

    #[test]
    fn columns_take_the_key_of_their_table_and_no_more_numbers_than_it_has() {
        for table in &TABLES {
            let known = known_tables().into_iter().find(|known| known.name == table.stored);
            let schema = known.unwrap_or_else(|| panic!("no table {}", table.stored));
            let width = |&(_, stored): &(_, Stored)| match stored {
                Address => 16,
                U8 => 1,
                U16 => 2,
                Interval => 8,
                U64 | Time | Word | Text => 0,
            };
            let has_addresses = table.columns.iter().any(|(_, stored)| *stored == Address);
            // The state of an attempt is a number.
            let is_attempt = table.columns == ATTEMPTS;
            let key: usize = table.columns.iter().map(width).sum();
            let key = key + usize::from(has_addresses) - usize::from(is_attempt);
            assert_eq!(key, schema.key, "{}", table.name);
            let numbers = table.columns.iter().filter(|(_, own)| matches!(own, U64 | Time)).count();
            let numbers = numbers + usize::from(is_attempt);
            assert!(numbers <= schema.numbers.len().min(MOST_NUMBERS), "{}", table.name);
            let mut names: Vec<_> = table.columns.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }

    #[test]
    fn rows_without_a_time_or_a_version_have_no_such_value() {
        let rest =
            |key| Rest { version: None, key, numbers: [u64::MAX; 11].into_iter(), tail: b"a" };
        let total = [0xff; 8];
        for interval_ns in [None, Some(1), Some(60_000_000_000)] {
            assert_eq!(rest(&total).take(Interval, interval_ns), Some(Cell::Time(None)));
        }
        assert_eq!(rest(&[]).take(Time, None), Some(Cell::Time(None)));
        for (key, stored) in
            [(&[5; 17][..], Address), (&[4; 16], Address), (&[], U8), (&[1], U16), (&[], Word)]
        {
            assert_eq!(rest(key).take(stored, None), None, "{stored:?}");
        }
    }
}
