//! One column of a row group while it grows, and the place of a row in it.

use crate::fields::{Shape, Type, Value};
use crate::formats::lines::number_of;

/// The levels of a value in a list.
pub(super) const IN_LIST: i16 = 2;

/// The values of a column, one row after another.
pub(super) struct Column {
    pub(super) values: Values,
    pub(super) shape: Shape,
    /// Of each covered row; empty if each has one value, and it is not a column of lists.
    pub(super) levels: Vec<i16>,
    /// Empty unless it is a column of lists.
    pub(super) repeats: Vec<i16>,
    /// Rows up to the last one with a value. Those behind it have none.
    covered: usize,
}

/// In memory.
pub(super) enum Values {
    /// Times and counts of 64 bits.
    Long(Vec<i64>),
    /// Numbers of 8, 16 and 32 bits.
    Int(Vec<i32>),
    Text {
        bytes: Vec<u8>,
        /// The end of each value in `bytes`.
        ends: Vec<usize>,
    },
}

/// The place of a row in a column. A missing value costs nothing: its level follows with the next value of the column.
pub(super) struct Place<'a> {
    pub(super) column: &'a mut Column,
    /// Number of rows before it.
    pub(super) before: usize,
}

impl Place<'_> {
    /// The column, which covers the row from now on.
    #[inline(always)]
    fn column(&mut self) -> &mut Column {
        if self.column.shape != Shape::Required {
            self.column.present(self.before);
        }
        self.column
    }

    /// Sets the value of the row.
    #[inline(always)]
    pub(super) fn set(&mut self, value: Value<'_>) {
        match value {
            Value::Number(number) => self.number(number),
            Value::TypeCode(_, code) => self.number(code.into()),
            Value::Fact(facts, kind) => self.values(facts.values(kind)),
            Value::List(numbers) => {
                let mut place = 0;
                numbers.each(|number| {
                    self.next_in_list(place);
                    self.column.number(number);
                    place += 1;
                });
            }
            text => match &mut self.column().values {
                Values::Text { bytes, ends } => {
                    text.text(bytes);
                    ends.push(bytes.len());
                }
                Values::Long(_) | Values::Int(_) => unreachable!("a column of text"),
            },
        }
    }

    #[inline(always)]
    fn number(&mut self, value: u64) {
        self.column().number(value);
    }

    /// Adds the levels of the value at a place in the row's list.
    #[inline]
    fn next_in_list(&mut self, place: usize) {
        if place == 0 {
            self.column.cover(self.before);
            self.column.covered += 1;
        }
        self.column.levels.push(IN_LIST);
        self.column.repeats.push((place > 0).into());
    }

    /// The values of a fact: one at most, unless it is a list.
    fn values<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        for (place, value) in values.enumerate() {
            if self.column.shape != Shape::List {
                self.column().fact(value);
                continue;
            }
            self.next_in_list(place);
            self.column.fact(value);
        }
    }
}

#[cfg(feature = "arrow")]
impl Values {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Long(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::Text { ends, .. } => ends.len(),
        }
    }
}

impl Column {
    /// A column without rows.
    pub(super) fn new(kind: Type, shape: Shape) -> Self {
        let values = match kind {
            Type::Time | Type::U64 => Values::Long(Vec::new()),
            Type::U8 | Type::U16 | Type::U32 => Values::Int(Vec::new()),
            Type::Text => Values::Text { bytes: Vec::new(), ends: Vec::new() },
        };
        Self { values, shape, levels: Vec::new(), repeats: Vec::new(), covered: 0 }
    }

    /// Adds the row behind `before` rows, whose value follows.
    #[inline]
    fn present(&mut self, before: usize) {
        if self.covered < before {
            self.cover(before);
        }
        if !self.levels.is_empty() {
            self.levels.push(1);
        }
        self.covered = before + 1;
    }

    /// Adds rows without values, so that it covers `rows`.
    fn cover(&mut self, rows: usize) {
        let missing = rows - self.covered;
        if missing > 0 {
            self.fill_levels();
            self.levels.resize(self.levels.len() + missing, 0);
            if self.shape == Shape::List {
                self.repeats.resize(self.repeats.len() + missing, 0);
            }
            self.covered = rows;
        }
    }

    /// Adds the levels of the covered rows, if there are none because each has one value.
    fn fill_levels(&mut self) {
        if self.levels.is_empty() {
            self.levels.resize(self.covered, 1);
        }
    }

    /// Makes the levels of all `rows`.
    pub(super) fn complete(&mut self, rows: usize) {
        if self.shape != Shape::Required {
            self.cover(rows);
            self.fill_levels();
        }
    }

    /// Removes all rows and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.covered = 0;
        self.levels.clear();
        self.repeats.clear();
        match &mut self.values {
            Values::Long(values) => values.clear(),
            Values::Int(values) => values.clear(),
            Values::Text { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// Appends the rows of `other` behind `before` own ones.
    pub(super) fn append(&mut self, before: usize, other: &Self) {
        if other.covered > 0 {
            self.cover(before);
            if !other.levels.is_empty() {
                self.fill_levels();
                self.levels.extend_from_slice(&other.levels);
                self.repeats.extend_from_slice(&other.repeats);
            } else if !self.levels.is_empty() {
                self.levels.resize(self.levels.len() + other.covered, 1);
            }
            self.covered += other.covered;
        }
        match (&mut self.values, &other.values) {
            (Values::Long(own), Values::Long(other)) => own.extend_from_slice(other),
            (Values::Int(own), Values::Int(other)) => own.extend_from_slice(other),
            (Values::Text { bytes, ends }, Values::Text { bytes: more, ends: other }) => {
                let before = bytes.len();
                bytes.extend_from_slice(more);
                ends.extend(other.iter().map(|end| before + end));
            }
            _ => unreachable!("all rows have the same columns"),
        }
    }

    /// Numbers are stored in signed words with the same bits, as the format requires.
    #[inline(always)]
    fn number(&mut self, value: u64) {
        match &mut self.values {
            Values::Long(values) => values.push(value.cast_signed()),
            Values::Int(values) => values.push((value as u32).cast_signed()),
            Values::Text { .. } => unreachable!("a column of numbers"),
        }
    }

    /// Text with U+FFFD for invalid UTF-8, or the digits of a number.
    fn fact(&mut self, value: &[u8]) {
        match &mut self.values {
            Values::Long(values) => {
                values.push(number_of(value).cast_signed());
            }
            Values::Text { bytes, ends } => {
                bytes.extend_from_slice(String::from_utf8_lossy(value).as_bytes());
                ends.push(bytes.len());
            }
            Values::Int(_) => unreachable!("facts are texts or numbers of 64 bits"),
        }
    }
}
