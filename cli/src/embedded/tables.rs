//! The tables of a state as Arrow record batches.

use std::mem::take;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, RecordBatch, TimestampNanosecondArray, UInt8Array, UInt16Array, UInt64Array,
};
use ringtap_engine::Machine;
use ringtap_monitor::state::{self, Cell, Columns, MergeError, Stored};

use super::{Failure, Stop, Stoppable};

/// Most rows of a batch.
const BATCH_ROWS: usize = 1 << 16;
/// Bytes after which a batch ends; the offsets of texts have 31 bits.
const BATCH_BYTES: u64 = 1 << 28;

/// Bytes of a value, and of a text without its letters, at most.
const VALUE_BYTES: u64 = 48;

/// The names of the tables of a state that have columns.
///
/// # Errors
/// A damaged state.
pub fn tables(state: &[u8]) -> Result<Vec<&'static str>, Failure> {
    let found = state::tables(state).map_err(failed)?;
    Ok(found.into_iter().map(|table| table.name).collect())
}

/// A table of a state: at least one batch, perhaps without rows; `None` if the state has no such table.
///
/// # Errors
/// A damaged state; a table that does not fit in a quarter of the memory; a stop.
pub fn table(bytes: &[u8], name: &str, stop: &Stop) -> Result<Option<Vec<RecordBatch>>, Failure> {
    let found = state::tables(bytes).map_err(failed)?.into_iter().find(|table| table.name == name);
    found.map(|table| Ok(batches(bytes, table, stop)?)).transpose()
}

fn batches(bytes: &[u8], table: &Columns, stop: &Stop) -> anyhow::Result<Vec<RecordBatch>> {
    let most = Machine::this().memory_bytes / 4;
    let mut growing: Vec<Values> = table.columns.iter().map(|(_, own)| Values::of(*own)).collect();
    let (mut whole, mut rows, mut used, mut before) = (Vec::new(), 0, 0, 0);
    state::read_columns(Stoppable { bytes, stop }, table, |column, cell| {
        if column == 0 {
            if rows == BATCH_ROWS || used - before > BATCH_BYTES {
                whole.push(growing.iter_mut().map(Values::take).collect::<Vec<_>>());
                (rows, before) = (0, used);
            }
            rows += 1;
        }
        used += growing[column].push(cell);
        if used > most { Err(MergeError::NoRoom(most)) } else { Ok(()) }
    })
    .map_err(failed)?;
    if rows > 0 || whole.is_empty() {
        whole.push(growing.iter_mut().map(Values::take).collect());
    }
    let batch = |arrays: Vec<ArrayRef>| {
        let columns = table.columns.iter().zip(arrays);
        let columns = columns.map(|((name, stored), array)| (*name, array, has_gaps(*stored)));
        RecordBatch::try_from_iter_with_nullable(columns).context("a table of a state")
    };
    whole.into_iter().map(batch).collect()
}

/// Whether rows may have no value.
const fn has_gaps(stored: Stored) -> bool {
    matches!(stored, Stored::Time | Stored::Interval)
}

fn failed(error: MergeError) -> anyhow::Error {
    let error = match error {
        MergeError::Input { error, .. } => *error,
        other => other,
    };
    anyhow::Error::from(error).context("reading a state")
}

/// The values of a column in a batch that grows.
enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U64(Vec<u64>),
    Time(Vec<Option<i64>>),
    Text(StringBuilder),
}

impl Values {
    fn of(stored: Stored) -> Self {
        match stored {
            Stored::U8 => Self::U8(Vec::new()),
            Stored::U16 => Self::U16(Vec::new()),
            Stored::U64 => Self::U64(Vec::new()),
            Stored::Time | Stored::Interval => Self::Time(Vec::new()),
            Stored::Address | Stored::Word | Stored::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// Adds a value of its kind; returns about the bytes that it takes.
    fn push(&mut self, cell: Cell<'_>) -> u64 {
        match (self, cell) {
            (Self::U8(all), Cell::Number(number)) => all.push(number as u8),
            (Self::U16(all), Cell::Number(number)) => all.push(number as u16),
            (Self::U64(all), Cell::Number(number)) => all.push(number),
            (Self::Time(all), Cell::Time(ns)) => all.push(ns),
            (Self::Text(all), Cell::Address(address)) => all.append_value(address.to_string()),
            (Self::Text(all), Cell::Text(text)) => {
                all.append_value(&text);
                return VALUE_BYTES + text.len() as u64;
            }
            _ => {}
        }
        VALUE_BYTES
    }

    /// The values so far, which are removed.
    fn take(&mut self) -> ArrayRef {
        match self {
            Self::U8(all) => Arc::new(UInt8Array::from(take(all))),
            Self::U16(all) => Arc::new(UInt16Array::from(take(all))),
            Self::U64(all) => Arc::new(UInt64Array::from(take(all))),
            Self::Time(all) => {
                Arc::new(TimestampNanosecondArray::from(take(all)).with_timezone("UTC"))
            }
            Self::Text(all) => Arc::new(all.finish()),
        }
    }
}
