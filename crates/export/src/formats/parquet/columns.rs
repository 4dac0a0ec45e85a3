//! The columns of a row group while it grows: values one after another, and for those that a flow may lack a level,
//! 1 or 0, a row.
//!
//! ```text
//! row              0     1     2
//! minimumTTL       64          32      values [64, 32]          levels [1, 0, 1]
//! tunnelType             gre           bytes "gre", ends [3]    levels [0, 1, 0]
//! httpStatus       200         404     values [200, 404, 500]   levels [2, 0, 2, 2]
//!                              500                              repeats [0, 0, 0, 1]
//! ```
//!
//! A list is an optional group of a repeated group of elements, as the format asks for. Its levels are 2 for a value and 0
//! for a row without values; its repeats are 1 for each further value of a row.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type as Node, TypePtr};
use ringtap_flow::FlowRecord;

use super::column::{Column, Place, Values};
use crate::fields::{
    self, COUNT, Chosen, Columns, FIELDS, Field, Row, Shape, Type, View, Visit, visit,
};

/// Memory of the statistics in a row: without lists, of a first packet, and of a burst.
const STATISTICS_COST: [usize; 3] = [320, 36, 48];

/// Memory of facts in rows by their bytes in records: invalid bytes become three, and a value has an end and levels.
const FACT_COST: usize = 4;

/// Rows in memory, column by column.
pub struct Rows {
    /// By the number of the field, also those that the run does not have.
    pub(super) columns: Box<[Column; COUNT]>,
    pub(super) further: Columns,
    /// The other columns remain empty.
    chosen: Chosen,
    pub(super) rows: usize,
    /// Bytes of facts and statistics, and their levels.
    fact_bytes: usize,
}

impl Rows {
    /// No rows, with these columns besides those of all runs.
    pub fn new(further: Columns) -> Self {
        let column = |row: usize| Column::new(FIELDS[row].value, FIELDS[row].shape);
        let columns = Box::new(std::array::from_fn(column));
        Self { columns, further, chosen: Chosen::ALL, rows: 0, fact_bytes: 0 }
    }

    /// No rows, which will have values in these columns only.
    pub(crate) fn choosing(further: Columns, chosen: Chosen) -> Self {
        Self { chosen, ..Self::new(further) }
    }

    pub(super) fn schema(&self) -> Result<TypePtr, ParquetError> {
        let fields: Result<Vec<_>, _> =
            fields::columns(self.further).map(|(_, field)| node(field)).collect();
        Ok(Arc::new(Node::group_type_builder("flows").with_fields(fields?).build()?))
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Approximate memory of the facts and statistics in bytes, in addition to that of the other columns.
    pub const fn fact_bytes(&self) -> usize {
        self.fact_bytes
    }

    /// Removes all rows and keeps their memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        (self.rows, self.fact_bytes) = (0, 0);
    }

    /// Appends copies of all rows of `other`, which has the same columns.
    pub fn append(&mut self, other: &Self) {
        for (own, column) in self.columns.iter_mut().zip(&other.columns[..]) {
            if self.rows == 0 {
                own.reserve(column, other.rows);
            }
            own.append(self.rows, column);
        }
        self.rows += other.rows;
        self.fact_bytes += other.fact_bytes;
    }

    /// Appends a row.
    pub fn push(&mut self, record: &FlowRecord) {
        let mut reversed = None;
        let view = View::of(record, &mut reversed);
        let Self { columns, further, chosen, rows: before, .. } = self;
        let (further, chosen, before) = (*further, *chosen, *before);
        if chosen == Chosen::ALL {
            visit(&mut Record::<true> { view, columns, further, chosen, before });
        } else {
            visit(&mut Record::<false> { view, columns, further, chosen, before });
        }
        self.fact_bytes += record.facts.bytes().len() * FACT_COST;
        if let Some(own) = record.statistics.as_deref().filter(|_| further.statistics) {
            let [sums, packet, burst] = STATISTICS_COST;
            let bursts = own.bursts(0).count() + own.bursts(1).count();
            self.fact_bytes += sums + packet * own.first_packets().len() + burst * bursts;
        }
        self.rows += 1;
    }

    /// Writes all rows as one row group and removes them.
    pub(super) fn write_to<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        // The levels of a column without values.
        let none = vec![0; self.rows];
        let (mut levels, mut repeats) = (Vec::new(), Vec::new());
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for (row, _) in fields::columns(self.further) {
            let column = &mut self.columns[row];
            let Some(mut out) = group.next_column()? else { break };
            let (levels, repeats) = if column.values.len() == 0 {
                (&none, &none)
            } else {
                column.levels_of(self.rows, &mut levels, &mut repeats);
                (&levels, &repeats)
            };
            let levels = (column.shape != Shape::Required).then_some(&levels[..]);
            let repeats = (column.shape == Shape::List).then_some(&repeats[..]);
            match &mut column.values {
                Values::Long(values) => {
                    out.typed::<Int64Type>().write_batch(values, levels, repeats)?;
                }
                Values::Text { bytes, ends } => {
                    texts.clear();
                    cut(bytes, ends, &mut texts);
                    out.typed::<ByteArrayType>().write_batch(&texts, levels, repeats)?;
                }
                values => {
                    values.widen(&mut numbers);
                    out.typed::<Int32Type>().write_batch(&numbers, levels, repeats)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        self.clear();
        Ok(())
    }
}

/// A record that is appended. `ALL`: all columns are chosen.
struct Record<'a, const ALL: bool> {
    view: View<'a>,
    columns: &'a mut [Column; COUNT],
    further: Columns,
    chosen: Chosen,
    before: usize,
}

impl<const ALL: bool> Visit for Record<'_, ALL> {
    #[inline(always)]
    fn row<R: Row>(&mut self) {
        if R::FIELD.edition > 0
            && self.further.has(R::FIELD.presence)
            && (ALL || self.chosen.has(R::POSITION))
            && let Some(value) = R::of(&self.view)
        {
            let place = Place { column: &mut self.columns[R::POSITION], before: self.before };
            place.set(R::FIELD.value, R::FIELD.shape, value);
        }
    }
}

/// Splits the bytes of a text column into its values.
fn cut(bytes: &mut Vec<u8>, ends: &mut Vec<u32>, texts: &mut Vec<ByteArray>) {
    let next = Vec::with_capacity(bytes.len());
    let whole = ByteArray::from(std::mem::replace(bytes, next));
    let mut start = 0;
    for end in ends.drain(..).map(|end| end as usize) {
        texts.push(whole.slice(start, end - start));
        start = end;
    }
}

/// The column of a field in the schema.
fn node(&Field { name, value, shape, .. }: &Field) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match value {
        Type::Time => (Physical::INT64, LogicalType::timestamp(true, TimeUnit::MILLIS)),
        Type::U64 => (Physical::INT64, LogicalType::integer(64, false)),
        bits @ (Type::U8 | Type::U16 | Type::U32) => {
            (Physical::INT32, LogicalType::integer(bits as i8, false))
        }
        Type::Text => (Physical::BYTE_ARRAY, LogicalType::String),
    };
    let value = |name, repetition| {
        let value = Node::primitive_type_builder(name, physical).with_logical_type(Some(logical));
        value.with_repetition(repetition).build().map(Arc::new)
    };
    let group = |name, repetition, field, logical| {
        let group = Node::group_type_builder(name).with_fields(vec![field]);
        group.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    };
    match shape {
        Shape::Required => value(name, Repetition::REQUIRED),
        Shape::Optional => value(name, Repetition::OPTIONAL),
        Shape::List => {
            let element = value("element", Repetition::REQUIRED)?;
            let list = group("list", Repetition::REPEATED, element, None)?;
            group(name, Repetition::OPTIONAL, list, Some(LogicalType::List))
        }
    }
}
