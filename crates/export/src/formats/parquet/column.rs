//! One column of a row group while it grows, and the place of a row in it.

use crate::fields::{Shape, Type, Value};
use crate::formats::lines::{number_of, push_valid};

/// Rows in a group: enough to compress well and to be read in parallel; some tens of megabytes in memory.
pub const GROUP_ROWS: usize = 1 << 16;

/// The levels of a value in a list.
pub(super) const IN_LIST: u8 = 2;

/// Bytes of a text for which memory is reserved, at most.
const TEXT_MOST: usize = 32;

/// The values of a column, one row after another.
pub(super) struct Column {
    pub(super) values: Values,
    pub(super) shape: Shape,
    /// Of each covered row; empty if each has one value, and it is not a column of lists.
    pub(super) levels: Vec<u8>,
    /// Empty unless it is a column of lists.
    pub(super) repeats: Vec<u8>,
    /// Rows up to the last one with a value. Those behind it have none.
    covered: usize,
}

/// In memory.
pub(super) enum Values {
    /// Times and counts of 64 bits.
    Long(Vec<i64>),
    Bits32(Vec<u32>),
    Bits16(Vec<u16>),
    Bits8(Vec<u8>),
    Text {
        bytes: Vec<u8>,
        /// The end of each value in `bytes`, which are far fewer than 4 GiB: facts are counted.
        ends: Vec<u32>,
    },
}

/// The place of a row in a column. A missing value costs nothing: its level follows with the next value of the column.
pub(super) struct Place<'a> {
    pub(super) column: &'a mut Column,
    /// Number of rows before it.
    pub(super) before: usize,
}

impl Place<'_> {
    /// Sets the value of the row. Type and shape are those of the column, and constants where this is called.
    #[inline(always)]
    pub(super) fn set(mut self, kind: Type, shape: Shape, value: Value<'_>) {
        if shape == Shape::Optional && !matches!(value, Value::Fact(..)) {
            self.column.present(self.before);
        }
        match value {
            Value::Number(number) => self.column.number(kind, number),
            Value::TypeCode(_, code) => self.column.number(kind, code.into()),
            Value::Fact(facts, kind) => self.values(facts.values(kind)),
            Value::List(numbers) => {
                let mut place = 0;
                numbers.each(|number| {
                    self.column.next_in_list(self.before, place);
                    self.column.number(kind, number);
                    place += 1;
                });
            }
            text => match &mut self.column.values {
                Values::Text { bytes, ends } => {
                    text.text(bytes);
                    ends.push(bytes.len() as u32);
                }
                _ => unreachable!("a column of text"),
            },
        }
    }

    /// The values of a fact: one at most, unless it is a list.
    fn values<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        for (place, value) in values.enumerate() {
            if self.column.shape == Shape::List {
                self.column.next_in_list(self.before, place);
            } else {
                self.column.present(self.before);
            }
            self.column.fact(value);
        }
    }
}

impl Values {
    /// Number of values.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Long(values) => values.len(),
            Self::Bits32(values) => values.len(),
            Self::Bits16(values) => values.len(),
            Self::Bits8(values) => values.len(),
            Self::Text { ends, .. } => ends.len(),
        }
    }

    /// Numbers of 32 bits at most in signed words with the same bits, as the format requires.
    pub(super) fn widen(&self, numbers: &mut Vec<i32>) {
        numbers.clear();
        match self {
            Self::Bits32(values) => numbers.extend(values.iter().copied().map(u32::cast_signed)),
            Self::Bits16(values) => numbers.extend(values.iter().copied().map(i32::from)),
            Self::Bits8(values) => numbers.extend(values.iter().copied().map(i32::from)),
            Self::Long(_) | Self::Text { .. } => unreachable!("numbers of 32 bits at most"),
        }
    }

    /// Removes all values and keeps their memory.
    fn clear(&mut self) {
        match self {
            Self::Long(values) => values.clear(),
            Self::Bits32(values) => values.clear(),
            Self::Bits16(values) => values.clear(),
            Self::Bits8(values) => values.clear(),
            Self::Text { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }
}

impl Column {
    /// A column without rows.
    pub(super) fn new(kind: Type, shape: Shape) -> Self {
        let values = match kind {
            Type::Time | Type::U64 => Values::Long(Vec::new()),
            Type::U32 => Values::Bits32(Vec::new()),
            Type::U16 => Values::Bits16(Vec::new()),
            Type::U8 => Values::Bits8(Vec::new()),
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

    /// Adds the levels of the value at a place in the list of the row behind `before` rows.
    #[inline]
    fn next_in_list(&mut self, before: usize, place: usize) {
        if place == 0 {
            self.cover(before);
            self.covered += 1;
        }
        self.levels.push(IN_LIST);
        self.repeats.push((place > 0).into());
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

    /// The levels and repeats of all `rows`, as the format's library takes them.
    pub(super) fn levels_of(&self, rows: usize, levels: &mut Vec<i16>, repeats: &mut Vec<i16>) {
        levels.clear();
        if self.levels.is_empty() {
            levels.resize(self.covered, 1);
        }
        levels.extend(self.levels.iter().copied().map(i16::from));
        levels.resize(levels.len() + rows - self.covered, 0);
        if self.shape == Shape::List {
            repeats.clear();
            repeats.extend(self.repeats.iter().copied().map(i16::from));
            repeats.resize(levels.len(), 0);
        }
    }

    /// Removes all rows and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.covered = 0;
        self.levels.clear();
        self.repeats.clear();
        self.values.clear();
    }

    /// Reserves memory for a row group like `other`, which has the first of its rows: columns that grow bit by bit would be
    /// copied several times. Memory without values is not used.
    pub(super) fn reserve(&mut self, other: &Self, rows: usize) {
        let times = GROUP_ROWS.div_ceil(rows.max(1));
        let count = other.values.len() * times;
        match (&mut self.values, &other.values) {
            (Values::Long(own), _) => own.reserve(count),
            (Values::Bits32(own), _) => own.reserve(count),
            (Values::Bits16(own), _) => own.reserve(count),
            (Values::Bits8(own), _) => own.reserve(count),
            (Values::Text { bytes, ends }, Values::Text { bytes: text, .. }) => {
                bytes.reserve((text.len() * times).min(GROUP_ROWS * TEXT_MOST));
                ends.reserve(count);
            }
            _ => unreachable!("all rows have the same columns"),
        }
        if !other.levels.is_empty() {
            self.levels.reserve(GROUP_ROWS);
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
            (Values::Bits32(own), Values::Bits32(other)) => own.extend_from_slice(other),
            (Values::Bits16(own), Values::Bits16(other)) => own.extend_from_slice(other),
            (Values::Bits8(own), Values::Bits8(other)) => own.extend_from_slice(other),
            (Values::Text { bytes, ends }, Values::Text { bytes: more, ends: other }) => {
                let before = bytes.len() as u32;
                bytes.extend_from_slice(more);
                ends.extend(other.iter().map(|end| before + end));
            }
            _ => unreachable!("all rows have the same columns"),
        }
    }

    /// Appends a value to a column of this type.
    #[inline(always)]
    fn number(&mut self, kind: Type, value: u64) {
        match (kind, &mut self.values) {
            (Type::Time | Type::U64, Values::Long(values)) => values.push(value.cast_signed()),
            (Type::U32, Values::Bits32(values)) => values.push(value as u32),
            (Type::U16, Values::Bits16(values)) => values.push(value as u16),
            (Type::U8, Values::Bits8(values)) => values.push(value as u8),
            _ => unreachable!("a column of such numbers"),
        }
    }

    /// Text with U+FFFD for invalid UTF-8, or the digits of a number.
    fn fact(&mut self, value: &[u8]) {
        match &mut self.values {
            Values::Long(values) => {
                values.push(number_of(value).cast_signed());
            }
            Values::Text { bytes, ends } => {
                push_valid(bytes, value);
                ends.push(bytes.len() as u32);
            }
            _ => unreachable!("facts are texts or numbers of 64 bits"),
        }
    }
}
