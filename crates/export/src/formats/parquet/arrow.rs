//! Flow records as Arrow record batches, with the names and types of the Parquet file. Source: the Arrow columnar format.
//!
//! ```text
//! row              0     1     2
//! minimumTTL       64          32      values [64, 0, 32]       validity [1, 0, 1]
//! tunnelType             gre           bytes "gre"              offsets [0, 0, 3, 3]
//! httpStatus       200         404     values [200, 404, 500]   offsets [0, 1, 1, 3]
//!                              500
//! ```
//!
//! The arrays grow in their final form, so a batch takes them over without a copy.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, ListArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
    new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::column::{Column, IN_LIST, Values};
use super::columns::Rows;
use crate::fields::{self, Chosen, Columns, Field as Own, Shape, Type};

/// The name of a list's values, as Parquet has it.
const ELEMENT: &str = "element";

const UTC: &str = "UTC";

/// A record batch that grows.
pub(crate) struct GrowingBatch {
    schema: SchemaRef,
    /// With the numbers of their fields.
    arrays: Vec<(usize, GrowingArray)>,
    rows: usize,
    /// Rows for which memory is reserved.
    capacity: usize,
    fact_bytes: usize,
}

impl GrowingBatch {
    /// No rows, with those of the chosen columns that a run with these further columns has.
    pub(crate) fn new(further: Columns, chosen: Chosen, capacity: usize) -> Self {
        let columns = || fields::columns(further).filter(|(row, _)| chosen.has(*row));
        let fields: Vec<_> = columns().map(|(_, own)| field(own)).collect();
        let array = |(row, own): (_, &Own)| (row, GrowingArray::new(own.value, own.shape));
        let arrays = columns().map(array).collect();
        Self { schema: Arc::new(Schema::new(fields)), arrays, rows: 0, capacity, fact_bytes: 0 }
    }

    /// Number of rows.
    pub(crate) const fn len(&self) -> usize {
        self.rows
    }

    /// Approximate memory of the facts in bytes.
    pub(crate) const fn fact_bytes(&self) -> usize {
        self.fact_bytes
    }

    /// Appends copies of all rows, which have the same columns.
    pub(crate) fn append(&mut self, rows: &Rows) {
        for (row, array) in &mut self.arrays {
            array.append(&rows.columns[*row], self.rows, self.capacity);
        }
        self.rows += rows.rows;
        self.fact_bytes += rows.fact_bytes();
    }

    /// Removes all rows and returns them. The next batch reserves memory for `capacity` rows.
    ///
    /// # Errors
    /// More than 2 GiB of text in a column.
    pub(crate) fn take(&mut self, capacity: usize) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        (self.capacity, self.fact_bytes) = (capacity, 0);
        let mut nulls = Vec::new();
        let fields = self.schema.fields().iter();
        let arrays = fields.zip(&mut self.arrays).map(|(field, (_, array))| {
            let next = GrowingArray::new(array.kind, array.shape);
            let array = std::mem::replace(array, next);
            if array.is_null() {
                return Ok(null_array(&mut nulls, field.data_type(), rows));
            }
            array.finish(rows)
        });
        let arrays: Result<Vec<_>, _> = arrays.collect();
        // Without columns it has rows, too.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays?, &options)
    }
}

/// A column without values; those of a type share their memory.
fn null_array(known: &mut Vec<ArrayRef>, data_type: &DataType, rows: usize) -> ArrayRef {
    if let Some(array) = known.iter().find(|array| array.data_type() == data_type) {
        return Arc::clone(array);
    }
    let array = new_null_array(data_type, rows);
    known.push(Arc::clone(&array));
    array
}

fn field(&Own { name, value: kind, shape, .. }: &Own) -> Field {
    match shape {
        Shape::Required => Field::new(name, data_type(kind), false),
        Shape::Optional => Field::new(name, data_type(kind), true),
        Shape::List => Field::new(name, DataType::List(Arc::new(element(kind))), true),
    }
}

/// The field of a list's values.
fn element(kind: Type) -> Field {
    Field::new(ELEMENT, data_type(kind), false)
}

fn data_type(kind: Type) -> DataType {
    match kind {
        Type::Time => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        Type::U8 => DataType::UInt8,
        Type::U16 => DataType::UInt16,
        Type::U32 => DataType::UInt32,
        Type::U64 => DataType::UInt64,
        Type::Text => DataType::Utf8,
    }
}

/// A column of a batch while it grows.
struct GrowingArray {
    kind: Type,
    shape: Shape,
    values: Buffer,
    /// Of each row up to the last one with a value; unused if every row has one.
    validity: NullBufferBuilder,
    /// The ends of these rows in the values, after a 0; unused unless it is a column of lists.
    offsets: Vec<i32>,
}

impl GrowingArray {
    fn new(kind: Type, shape: Shape) -> Self {
        let values = Buffer::new(kind);
        Self { kind, shape, values, validity: NullBufferBuilder::new(0), offsets: vec![0] }
    }

    /// Whether it is null in all rows.
    fn is_null(&self) -> bool {
        self.shape != Shape::Required && self.validity.is_empty()
    }

    /// Appends the rows of `column` behind `before` own ones. The first values reserve memory for `capacity` rows.
    fn append(&mut self, column: &Column, before: usize, capacity: usize) {
        if column.values.len() == 0 {
            return;
        }
        if self.values.is_empty() {
            self.values.reserve(&column.values, capacity);
        }
        let levels = &column.levels[..];
        if self.shape != Shape::Required {
            self.cover(before);
        }
        match self.shape {
            Shape::Required => self.values.extend(&column.values, None),
            Shape::Optional if levels.is_empty() => {
                self.values.extend(&column.values, None);
                self.validity.append_n_non_nulls(column.values.len());
            }
            Shape::Optional => {
                self.values.extend(&column.values, Some(levels));
                let bits = BooleanBuffer::collect_bool(levels.len(), |row| levels[row] > 0);
                self.validity.append_buffer(&NullBuffer::new(bits));
            }
            Shape::List => {
                self.values.extend(&column.values, None);
                let mut end = last(&self.offsets);
                for (&level, &repeat) in levels.iter().zip(&column.repeats) {
                    let is_value = level == IN_LIST;
                    end += i32::from(is_value);
                    if repeat > 0 {
                        self.offsets.pop();
                    } else {
                        self.validity.append(is_value);
                    }
                    self.offsets.push(end);
                }
            }
        }
    }

    /// Adds missing rows, so that there are `rows`.
    fn cover(&mut self, rows: usize) {
        let missing = rows - self.validity.len();
        self.validity.append_n_nulls(missing);
        match self.shape {
            Shape::List => self.offsets.resize(self.offsets.len() + missing, last(&self.offsets)),
            _ => self.values.pad(missing),
        }
    }

    fn finish(mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        if self.shape == Shape::Required {
            return self.values.finish(None);
        }
        self.cover(rows);
        let validity = self.validity.build();
        if self.shape == Shape::Optional {
            return self.values.finish(validity);
        }
        let (values, offsets) = (self.values.finish(None)?, OffsetBuffer::new(self.offsets.into()));
        let list = ListArray::try_new(Arc::new(element(self.kind)), offsets, values, validity)?;
        Ok(Arc::new(list))
    }
}

fn last(offsets: &[i32]) -> i32 {
    offsets.last().copied().unwrap_or_default()
}

/// Values in their final form.
enum Buffer {
    Time(Vec<i64>),
    Bits64(Vec<u64>),
    Bits32(Vec<u32>),
    Bits16(Vec<u16>),
    Bits8(Vec<u8>),
    Text {
        bytes: Vec<u8>,
        /// The end of each value in `bytes`, after a 0.
        offsets: Vec<i32>,
    },
}

impl Buffer {
    fn new(kind: Type) -> Self {
        match kind {
            Type::Time => Self::Time(Vec::new()),
            Type::U8 => Self::Bits8(Vec::new()),
            Type::U16 => Self::Bits16(Vec::new()),
            Type::U32 => Self::Bits32(Vec::new()),
            Type::U64 => Self::Bits64(Vec::new()),
            Type::Text => Self::Text { bytes: Vec::new(), offsets: vec![0] },
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Time(values) => values.is_empty(),
            Self::Bits64(values) => values.is_empty(),
            Self::Bits32(values) => values.is_empty(),
            Self::Bits16(values) => values.is_empty(),
            Self::Bits8(values) => values.is_empty(),
            Self::Text { offsets, .. } => offsets.len() == 1,
        }
    }

    /// Reserves memory for `rows`, with texts as long as those of `sample`.
    fn reserve(&mut self, sample: &Values, rows: usize) {
        match self {
            Self::Time(values) => values.reserve(rows),
            Self::Bits64(values) => values.reserve(rows),
            Self::Bits32(values) => values.reserve(rows),
            Self::Bits16(values) => values.reserve(rows),
            Self::Bits8(values) => values.reserve(rows),
            Self::Text { bytes, offsets } => {
                offsets.reserve(rows);
                if let Values::Text { bytes: text, ends } = sample {
                    bytes.reserve(rows * text.len().div_ceil(ends.len().max(1)));
                }
            }
        }
    }

    /// Appends values; with `levels`, one for each of them, which is null at level 0.
    fn extend(&mut self, values: &Values, levels: Option<&[u8]>) {
        match (self, values) {
            (Self::Time(own), Values::Long(values)) => extend(own, values, levels, |value| value),
            (Self::Bits64(own), Values::Long(values)) => {
                extend(own, values, levels, i64::cast_unsigned);
            }
            (Self::Bits32(own), Values::Bits32(values)) => {
                extend(own, values, levels, |value| value);
            }
            (Self::Bits16(own), Values::Bits16(values)) => {
                extend(own, values, levels, |value| value);
            }
            (Self::Bits8(own), Values::Bits8(values)) => {
                extend(own, values, levels, |value| value);
            }
            (Self::Text { bytes, offsets }, Values::Text { bytes: text, ends }) => {
                let before = bytes.len();
                bytes.extend_from_slice(text);
                // `finish` rejects texts that are too long for the offsets.
                let end = |&end: &u32| (before + end as usize) as i32;
                let Some(levels) = levels else { return offsets.extend(ends.iter().map(end)) };
                let (mut next, mut last) = (0, before as i32);
                offsets.extend(levels.iter().map(|&level| {
                    let end = ends.get(next).map_or(last, end);
                    next += usize::from(level);
                    last = if level > 0 { end } else { last };
                    last
                }));
            }
            _ => unreachable!("all rows have the same columns"),
        }
    }

    /// Appends `count` values for rows without one.
    fn pad(&mut self, count: usize) {
        match self {
            Self::Time(values) => values.resize(values.len() + count, 0),
            Self::Bits64(values) => values.resize(values.len() + count, 0),
            Self::Bits32(values) => values.resize(values.len() + count, 0),
            Self::Bits16(values) => values.resize(values.len() + count, 0),
            Self::Bits8(values) => values.resize(values.len() + count, 0),
            Self::Text { offsets, .. } => offsets.resize(offsets.len() + count, last(offsets)),
        }
    }

    fn finish(self, validity: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Time(values) => {
                let times =
                    PrimitiveArray::<TimestampMillisecondType>::new(values.into(), validity);
                Arc::new(times.with_timezone(UTC))
            }
            Self::Bits64(values) => numbers::<UInt64Type>(values, validity),
            Self::Bits32(values) => numbers::<UInt32Type>(values, validity),
            Self::Bits16(values) => numbers::<UInt16Type>(values, validity),
            Self::Bits8(values) => numbers::<UInt8Type>(values, validity),
            Self::Text { bytes, .. } if i32::try_from(bytes.len()).is_err() => {
                return Err(ArrowError::OffsetOverflowError(bytes.len()));
            }
            Self::Text { bytes, offsets } => {
                let offsets = OffsetBuffer::new(offsets.into());
                Arc::new(StringArray::try_new(offsets, bytes.into(), validity)?)
            }
        })
    }
}

fn numbers<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    validity: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), validity))
}

fn extend<T: Default, V: Copy + Default>(
    own: &mut Vec<T>,
    values: &[V],
    levels: Option<&[u8]>,
    convert: impl Fn(V) -> T,
) {
    let Some(levels) = levels else {
        return own.extend(values.iter().map(|&value| convert(value)));
    };
    let mut next = 0;
    own.extend(levels.iter().map(|&level| {
        let value = values.get(next).copied().unwrap_or_default();
        next += usize::from(level);
        if level > 0 { convert(value) } else { T::default() }
    }));
}
