//! One column of a row group while it grows, and the row that is being filled.

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Milliseconds since 1970, UTC.
    Time,
    /// Unsigned, with this number of bits.
    Number(i8),
    Text,
}

/// How many values a row has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// One.
    Required,
    /// None or one.
    Optional,
    /// Any number.
    List,
}

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

/// The columns of the current row that have no value yet, and the number of rows before it. A missing value costs
/// nothing: its level follows with the next value of the column.
pub(super) struct Row<'a> {
    pub(super) columns: std::slice::IterMut<'a, Column>,
    pub(super) before: usize,
}

impl Row<'_> {
    #[inline]
    fn next(&mut self) -> &mut Column {
        self.columns.next().expect("as many columns as fields")
    }

    /// Leaves `count` columns without a value.
    pub(super) fn skip(&mut self, count: usize) {
        if count > 0 {
            self.columns.nth(count - 1);
        }
    }

    /// The next column, if it gets a value. It then covers the row.
    #[inline]
    fn optional<T>(&mut self, value: Option<T>) -> Option<(&mut Column, T)> {
        let before = self.before;
        let column = self.next();
        let value = value?;
        column.present(before);
        Some((column, value))
    }

    /// Counts and times are stored in signed words with the same bits, as the format requires.
    #[inline]
    pub(super) fn long(&mut self, value: u64) {
        self.next().long(value);
    }

    #[inline]
    pub(super) fn perhaps_long(&mut self, value: Option<u64>) {
        if let Some((column, value)) = self.optional(value) {
            column.long(value);
        }
    }

    #[inline]
    pub(super) fn int(&mut self, value: impl Into<u32>) {
        self.next().int(value.into());
    }

    #[inline]
    pub(super) fn perhaps_int(&mut self, value: Option<impl Into<u32>>) {
        if let Some((column, value)) = self.optional(value) {
            column.int(value.into());
        }
    }

    #[inline]
    pub(super) fn text(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.next().text(push);
    }

    #[inline]
    pub(super) fn perhaps_text<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Vec<u8>, T)) {
        if let Some((column, value)) = self.optional(value) {
            column.text(|text| push(text, value));
        }
    }

    /// The values of a fact: one at most, unless it is a list.
    pub(super) fn facts<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        let before = self.before;
        let column = self.next();
        let list = column.shape == Shape::List;
        for (place, value) in values.enumerate() {
            if !list {
                column.present(before);
            } else {
                if place == 0 {
                    column.cover(before);
                    column.covered += 1;
                }
                column.levels.push(IN_LIST);
                column.repeats.push((place > 0).into());
            }
            column.fact(value);
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
    pub(super) fn new(kind: Kind, shape: Shape) -> Self {
        let values = match kind {
            Kind::Time | Kind::Number(64) => Values::Long(Vec::new()),
            Kind::Number(_) => Values::Int(Vec::new()),
            Kind::Text => Values::Text { bytes: Vec::new(), ends: Vec::new() },
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

    #[inline]
    fn long(&mut self, value: u64) {
        match &mut self.values {
            Values::Long(values) => values.push(value.cast_signed()),
            Values::Int(_) | Values::Text { .. } => unreachable!("a column of 64 bits"),
        }
    }

    #[inline]
    fn int(&mut self, value: u32) {
        match &mut self.values {
            Values::Int(values) => values.push(value.cast_signed()),
            Values::Long(_) | Values::Text { .. } => unreachable!("a column of small numbers"),
        }
    }

    /// Text with U+FFFD for invalid UTF-8, or the digits of a number.
    fn fact(&mut self, value: &[u8]) {
        match &mut self.values {
            Values::Long(values) => {
                let digits = value.iter().filter(|digit| digit.is_ascii_digit());
                let number = digits.fold(0_u64, |number, digit| {
                    number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
                });
                values.push(number.cast_signed());
            }
            Values::Text { bytes, ends } => {
                bytes.extend_from_slice(String::from_utf8_lossy(value).as_bytes());
                ends.push(bytes.len());
            }
            Values::Int(_) => unreachable!("facts are texts or numbers of 64 bits"),
        }
    }

    #[inline]
    fn text(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        match &mut self.values {
            Values::Text { bytes, ends } => {
                push(bytes);
                ends.push(bytes.len());
            }
            Values::Long(_) | Values::Int(_) => unreachable!("a column of text"),
        }
    }
}
