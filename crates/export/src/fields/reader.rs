//! Single columns of a flow record, for conditions on them.

use std::borrow::Cow;

use ringtap_flow::{FlowRecord, Type as FactType};

use super::{COUNT, FIELDS, READS, Shape, Value, View};
use crate::formats::lines::number_of;

/// Reads a column of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(usize);

/// A value of a column, as Parquet has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Also milliseconds since 1970.
    Number(u64),
    /// UTF-8; what is none is U+FFFD.
    Text(Cow<'a, str>),
}

/// A record whose columns are read.
pub struct Cells<'a>(View<'a>);

impl Cells<'_> {
    /// Calls `read` with the columns of a record.
    pub fn with<T>(record: &FlowRecord, read: impl FnOnce(&Cells<'_>) -> T) -> T {
        let mut reversed = None;
        read(&Cells(View::of(record, &mut reversed)))
    }
}

impl Reader {
    /// The reader of a column; `None` if there is none with this name.
    pub fn of(name: &str) -> Option<Self> {
        let own = |row: &usize| FIELDS[*row].edition > 0 && FIELDS[*row].name == name;
        (0..COUNT).find(own).map(Self)
    }

    /// The flag without which no record has a value, if there is one.
    pub fn needs(self) -> Option<&'static str> {
        FIELDS[self.0].presence.flag()
    }

    /// Whether one of the record's values passes the test: a list has several, an absent column none.
    pub fn any(self, cells: &Cells<'_>, mut test: impl FnMut(Cell<'_>) -> bool) -> bool {
        match READS[self.0](&cells.0) {
            None => false,
            Some(Value::Number(number)) => test(Cell::Number(number)),
            Some(Value::TypeCode(_, code)) => test(Cell::Number(code.into())),
            Some(Value::Fact(facts, kind)) => {
                let is_number = kind.value_type() == FactType::Number;
                let most = if FIELDS[self.0].shape == Shape::List { usize::MAX } else { 1 };
                facts.values(kind).take(most).any(|value| {
                    test(if is_number {
                        Cell::Number(number_of(value))
                    } else {
                        Cell::Text(String::from_utf8_lossy(value))
                    })
                })
            }
            Some(Value::Name(name)) => test(Cell::Text(String::from_utf8_lossy(name))),
            Some(text) => {
                let mut letters = Vec::new();
                text.text(&mut letters);
                test(Cell::Text(String::from_utf8_lossy(&letters)))
            }
        }
    }

    /// The number; `None` if the column is absent or a text.
    pub fn number(self, cells: &Cells<'_>) -> Option<u64> {
        let mut own = None;
        self.any(cells, |cell| {
            own = if let Cell::Number(number) = cell { Some(number) } else { None };
            true
        });
        own
    }
}
