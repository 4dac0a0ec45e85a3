//! Parquet: row groups one after another, their columns in batches of rows. Columns with other names are not read.

use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use parquet::basic::{ConvertedType as Converted, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use ringtap_export::sums::{Column, Given, NamedRow};

use super::rows::{ArrivedError, Reason, Rows};

/// Rows of a batch.
const BATCH: usize = 512;

/// Reads all rows.
pub(super) fn read(file: File, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let failed = |rows: &Rows<'_>, error| rows.error(Reason::Parquet(error));
    let reader =
        checked(|| SerializedFileReader::new(file)).map_err(|error| failed(rows, error))?;
    let leaves = reader.metadata().file_metadata().schema_descr().columns();
    let column_of = |leaf: &ColumnDescriptor| Column::named(leaf.path().parts().first()?);
    let known: Vec<_> = leaves
        .iter()
        .enumerate()
        .filter_map(|(place, leaf)| Some((place, column_of(leaf)?)))
        .collect();
    let columns: Vec<_> = known.iter().map(|&(_, column)| Some(column)).collect();
    let is_whole = rows.is_whole(&columns)?;
    let mut number = 0;
    for group in 0..reader.num_row_groups() {
        let opened = checked(|| {
            let group = reader.get_row_group(group)?;
            let open = |&(place, column): &(usize, Column)| {
                Ok(Cells::new(column, &leaves[place], group.get_column_reader(place)?))
            };
            known.iter().map(open).collect::<Result<Vec<_>, ParquetError>>()
        });
        let mut cells = opened.map_err(|error| failed(rows, error))?;
        loop {
            let loaded = checked(|| load(&mut cells)).map_err(|error| failed(rows, error))?;
            if loaded == 0 {
                break;
            }
            for _ in 0..loaded {
                number += 1;
                // Also behind an error, so that all columns are at the next row.
                let mut added = Ok(());
                for own in &mut cells {
                    let one = own.next(&mut rows.row);
                    added = added.and(one);
                }
                rows.end_row(number, added, is_whole);
            }
        }
    }
    Ok(())
}

/// The names of the columns.
pub(super) fn names(file: File, path: &Path) -> Result<Vec<String>, ArrivedError> {
    let reader = checked(|| SerializedFileReader::new(file));
    let reader = reader
        .map_err(|error| ArrivedError { path: path.to_owned(), reason: Reason::Parquet(error) })?;
    let fields = reader.metadata().file_metadata().schema().get_fields();
    Ok(fields.iter().map(|field| field.name().to_owned()).collect())
}

/// Calls the library, which panics on some damaged files. What panicked is not used again.
fn checked<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("it is damaged".to_owned()),
    }
}

/// Reads the next batch of all columns. Returns the number of its rows, 0 at the end.
fn load(cells: &mut [Cells]) -> Result<usize, ParquetError> {
    let mut all = None;
    for own in cells {
        let loaded = own.load()?;
        if *all.get_or_insert(loaded) != loaded {
            return Err(ParquetError::General("columns have different lengths".into()));
        }
    }
    Ok(all.unwrap_or(0))
}

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Unsigned,
    Signed,
    Microseconds,
    Text,
    Other,
}

impl As {
    fn of(leaf: &ColumnDescriptor) -> Self {
        // A part of a structure has a longer path, and is in no list.
        let is_part = leaf.max_rep_level() == 0 && leaf.path().parts().len() > 1;
        match (leaf.physical_type(), leaf.converted_type()) {
            _ if is_part => Self::Other,
            (Physical::INT32, Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32)
            | (Physical::INT64, Converted::UINT_64) => Self::Unsigned,
            (Physical::INT32, Converted::INT_8 | Converted::INT_16 | Converted::INT_32)
            | (Physical::INT32 | Physical::INT64, Converted::NONE)
            | (Physical::INT64, Converted::INT_64 | Converted::TIMESTAMP_MILLIS) => Self::Signed,
            (Physical::INT64, Converted::TIMESTAMP_MICROS) => Self::Microseconds,
            (Physical::BYTE_ARRAY, Converted::UTF8 | Converted::ENUM | Converted::JSON) => {
                Self::Text
            }
            _ => Self::Other,
        }
    }
}

/// The values of a batch of rows, those that are not null.
#[derive(Default)]
struct Values {
    ints: Vec<i32>,
    longs: Vec<i64>,
    texts: Vec<ByteArray>,
}

/// A column of a row group, with a batch of its rows.
struct Cells {
    column: Column,
    values_are: As,
    /// The definition level of a value that is not null, and the deepest list.
    defined: i16,
    lists: i16,
    reader: ColumnReader,
    values: Values,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// The next value, and the next place of a value or null.
    next_value: usize,
    next_place: usize,
}

impl Cells {
    fn new(column: Column, leaf: &ColumnDescriptor, reader: ColumnReader) -> Self {
        Self {
            column,
            values_are: As::of(leaf),
            defined: leaf.max_def_level(),
            lists: leaf.max_rep_level(),
            reader,
            values: Values::default(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
            next_value: 0,
            next_place: 0,
        }
    }

    /// Reads the next batch; returns the number of its rows.
    fn load(&mut self) -> Result<usize, ParquetError> {
        let Self { values: Values { ints, longs, texts }, definitions, repetitions, .. } = self;
        ints.clear();
        longs.clear();
        texts.clear();
        definitions.clear();
        repetitions.clear();
        (self.next_value, self.next_place) = (0, 0);
        let definitions = (self.defined > 0).then_some(definitions);
        let repetitions = (self.lists > 0).then_some(repetitions);
        let (rows, ..) = match &mut self.reader {
            ColumnReader::Int32ColumnReader(own) => {
                own.read_records(BATCH, definitions, repetitions, ints)?
            }
            ColumnReader::Int64ColumnReader(own) => {
                own.read_records(BATCH, definitions, repetitions, longs)?
            }
            ColumnReader::ByteArrayColumnReader(own) => {
                own.read_records(BATCH, definitions, repetitions, texts)?
            }
            ColumnReader::BoolColumnReader(own) => (own.skip_records(BATCH)?, 0, 0),
            ColumnReader::Int96ColumnReader(own) => (own.skip_records(BATCH)?, 0, 0),
            ColumnReader::FloatColumnReader(own) => (own.skip_records(BATCH)?, 0, 0),
            ColumnReader::DoubleColumnReader(own) => (own.skip_records(BATCH)?, 0, 0),
            ColumnReader::FixedLenByteArrayColumnReader(own) => (own.skip_records(BATCH)?, 0, 0),
        };
        Ok(rows)
    }

    /// Adds the next value to the row, or each value of the next list.
    fn next(&mut self, row: &mut NamedRow) -> Result<(), String> {
        let mut added = Ok(());
        loop {
            // Without levels there is one value a row.
            let level = self.definitions.get(self.next_place).copied();
            if self.defined == 0 || level.is_none_or(|level| level == self.defined) {
                added = added.and_then(|()| self.add(row));
                self.next_value += 1;
            }
            self.next_place += 1;
            if self.repetitions.get(self.next_place).is_none_or(|level| *level == 0) {
                return added;
            }
        }
    }

    /// Adds a value.
    fn add(&self, row: &mut NamedRow) -> Result<(), String> {
        let (Self { column, values: Values { ints, longs, texts }, .. }, at) =
            (self, self.next_value);
        let invalid = |what: &str| Err(format!("{} has {what}", column.name()));
        if self.lists > 1 {
            return invalid("a list in a list");
        }
        let given = match (self.values_are, ints.get(at), longs.get(at), texts.get(at)) {
            (As::Unsigned, Some(own), ..) => Given::Number(own.cast_unsigned().into()),
            (As::Unsigned, _, Some(own), _) => Given::Number(own.cast_unsigned()),
            (As::Signed, Some(own), ..) if *own >= 0 => Given::Number(own.cast_unsigned().into()),
            (As::Signed, _, Some(own), _) if *own >= 0 => Given::Number(own.cast_unsigned()),
            (As::Microseconds, _, Some(own), _) if *own >= 0 => {
                Given::Number(own.cast_unsigned() / 1_000)
            }
            (As::Text, .., Some(own)) => match own.as_utf8() {
                Ok(text) => Given::Text(text),
                Err(_) => return invalid("a text that is not UTF-8"),
            },
            _ => return invalid("neither a text nor an unsigned number"),
        };
        row.add(*column, given).map_err(|error| error.to_string())
    }
}
