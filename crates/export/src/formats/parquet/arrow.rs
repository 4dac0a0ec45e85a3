//! The same columns as an Arrow record batch. Source: the Arrow columnar format.
//!
//! ```text
//! row              0     1     2
//! minimumTTL       64          32      values [64, 0, 32]       validity [1, 0, 1]
//! tunnelType             gre           bytes "gre"              offsets [0, 0, 3, 3]
//! httpStatus       200         404     values [200, 404, 500]   offsets [0, 1, 1, 3]
//!                              500
//! ```

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray, RecordBatch, StringArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::column::{Column, IN_LIST, Kind, Shape, Values};
use super::columns::{Definition, Rows, definitions};

/// The name of a list's values, as Parquet has it.
const ELEMENT: &str = "element";

const UTC: &str = "UTC";

impl Rows {
    /// Copies all rows to a record batch, with the names and types of the Parquet file.
    ///
    /// # Errors
    /// More than 2 GiB of text in a column.
    pub fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let definitions: Vec<_> = definitions(self.further).collect();
        let fields: Vec<_> = definitions.iter().map(field).collect();
        let mut nulls = Nulls::default();
        self.columns.iter_mut().for_each(|column| column.cover(self.rows));
        let arrays: Result<Vec<_>, _> = definitions
            .iter()
            .zip(&self.columns)
            .map(|(definition, column)| array(definition, column, self.rows, &mut nulls))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays?)
    }
}

/// Columns without values; those of a type share their memory.
#[derive(Default)]
struct Nulls(Vec<ArrayRef>);

impl Nulls {
    fn of(&mut self, data_type: &DataType, rows: usize) -> ArrayRef {
        if let Some(known) = self.0.iter().find(|array| array.data_type() == data_type) {
            return Arc::clone(known);
        }
        let array = new_null_array(data_type, rows);
        self.0.push(Arc::clone(&array));
        array
    }
}

fn field(&(name, kind, shape): &Definition) -> Field {
    match shape {
        Shape::Required => Field::new(name, data_type(kind), false),
        Shape::Optional => Field::new(name, data_type(kind), true),
        Shape::List => Field::new(name, DataType::List(Arc::new(element(kind))), true),
    }
}

/// The field of a list's values.
fn element(kind: Kind) -> Field {
    Field::new(ELEMENT, data_type(kind), false)
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        Kind::Number(8) => DataType::UInt8,
        Kind::Number(16) => DataType::UInt16,
        Kind::Number(32) => DataType::UInt32,
        Kind::Number(_) => DataType::UInt64,
        Kind::Text => DataType::Utf8,
    }
}

fn array(
    &(_, kind, shape): &Definition,
    column: &Column,
    rows: usize,
    nulls: &mut Nulls,
) -> Result<ArrayRef, ArrowError> {
    let levels = &column.levels[..];
    match shape {
        Shape::Required => values(kind, column, None),
        Shape::Optional if column.is_without_values() => Ok(nulls.of(&data_type(kind), rows)),
        Shape::Optional => {
            let all = levels.iter().all(|&level| level > 0);
            values(kind, column, (!all).then_some(levels))
        }
        Shape::List if column.is_without_values() => {
            Ok(nulls.of(&DataType::List(Arc::new(element(kind))), rows))
        }
        Shape::List => {
            let (mut lengths, mut present) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
            for (&level, &repeat) in levels.iter().zip(&column.repeats) {
                let is_value = level == IN_LIST;
                match lengths.last_mut() {
                    Some(length) if repeat > 0 => *length += 1,
                    _ => {
                        lengths.push(usize::from(is_value));
                        present.push(is_value);
                    }
                }
            }
            let offsets = OffsetBuffer::try_from_lengths(lengths);
            let offsets =
                offsets.map_err(|_| ArrowError::OffsetOverflowError(column.levels.len()))?;
            let values = values(kind, column, None)?;
            let present = NullBuffer::from(present);
            let list = ListArray::try_new(Arc::new(element(kind)), offsets, values, Some(present))?;
            Ok(Arc::new(list))
        }
    }
}

/// The values of a column; with `levels`, one for each of them, which is null at level 0.
fn values(kind: Kind, column: &Column, levels: Option<&[i16]>) -> Result<ArrayRef, ArrowError> {
    Ok(match (&column.values, kind) {
        (Values::Long(values), Kind::Time) => {
            let array = numbers::<TimestampMillisecondType, _>(values, levels, |value| value);
            Arc::new(array.with_timezone(UTC))
        }
        (Values::Long(values), _) => {
            Arc::new(numbers::<UInt64Type, _>(values, levels, i64::cast_unsigned))
        }
        (Values::Int(values), Kind::Number(8)) => {
            Arc::new(numbers::<UInt8Type, _>(values, levels, |value| value as u8))
        }
        (Values::Int(values), Kind::Number(16)) => {
            Arc::new(numbers::<UInt16Type, _>(values, levels, |value| value as u16))
        }
        (Values::Int(values), _) => {
            Arc::new(numbers::<UInt32Type, _>(values, levels, i32::cast_unsigned))
        }
        (Values::Text { bytes, ends }, _) => Arc::new(texts(bytes, ends, levels)?),
    })
}

/// Numbers with the bits of those in memory, which are wider or have a sign.
fn numbers<T: ArrowPrimitiveType, V: Copy>(
    values: &[V],
    levels: Option<&[i16]>,
    convert: impl Fn(V) -> T::Native,
) -> PrimitiveArray<T> {
    let Some(levels) = levels else {
        let all: Vec<_> = values.iter().map(|&value| convert(value)).collect();
        return PrimitiveArray::new(all.into(), None);
    };
    let mut next = values.iter();
    let one = |&level: &i16| match level {
        0 => T::Native::default(),
        _ => next.next().map_or(T::Native::default(), |&value| convert(value)),
    };
    let all: Vec<_> = levels.iter().map(one).collect();
    PrimitiveArray::new(all.into(), Some(validity(levels)))
}

fn texts(bytes: &[u8], ends: &[usize], levels: Option<&[i16]>) -> Result<StringArray, ArrowError> {
    let last = ends.last().copied().unwrap_or_default();
    if i32::try_from(last).is_err() {
        return Err(ArrowError::OffsetOverflowError(last));
    }
    let mut offsets = Vec::with_capacity(levels.map_or(ends.len(), <[i16]>::len) + 1);
    offsets.push(0);
    match levels {
        None => offsets.extend(ends.iter().map(|&end| end as i32)),
        Some(levels) => {
            let (mut next, mut end) = (ends.iter(), 0);
            offsets.extend(levels.iter().map(|&level| {
                if level > 0 {
                    end = next.next().map_or(end, |&end| end as i32);
                }
                end
            }));
        }
    }
    let offsets = OffsetBuffer::new(offsets.into());
    StringArray::try_new(offsets, bytes.to_vec().into(), levels.map(validity))
}

fn validity(levels: &[i16]) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(levels.len(), |row| levels[row] > 0))
}
