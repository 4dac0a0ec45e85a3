//! Parquet: row groups one after another, their columns in batches of rows. Columns with other names are not read.

use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use ringtap_export::sums::{Column, Given, NamedRow};

use super::rows::{ArrivedError, Reason, Rows};

/// Reads all rows.
pub(super) fn read(file: File, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let failed = |rows: &Rows<'_>, error| rows.error(Reason::Parquet(error));
    let reader =
        checked(|| SerializedFileReader::new(file)).map_err(|error| failed(rows, error))?;
    let schema = reader.metadata().file_metadata().schema();
    let known = schema
        .get_fields()
        .iter()
        .filter_map(|field| Some((Column::named(field.name())?, Arc::clone(field))));
    let (columns, fields): (Vec<_>, Vec<_>) =
        known.map(|(column, field)| (Some(column), field)).unzip();
    let is_whole = rows.is_whole(&columns)?;
    let projected = checked(|| {
        let projection = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
        reader.get_row_iter(Some(projection))
    });
    let mut all = projected.map_err(|error| failed(rows, error))?;
    let mut number = 0;
    while let Some(row) = checked(|| all.next().transpose()).map_err(|error| failed(rows, error))? {
        number += 1;
        let mut values = columns.iter().flatten().zip(row.get_column_iter());
        let added = values.try_for_each(|(&column, (_, value))| add(&mut rows.row, column, value));
        rows.end_row(number, added, is_whole);
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

/// Adds a value, or each value of a list.
fn add(row: &mut NamedRow, column: Column, value: &Field) -> Result<(), String> {
    let given = match *value {
        Field::Null => return Ok(()),
        Field::UByte(number) => Given::Number(number.into()),
        Field::UShort(number) => Given::Number(number.into()),
        Field::UInt(number) => Given::Number(number.into()),
        Field::ULong(number) => Given::Number(number),
        Field::Short(number) if number >= 0 => Given::Number(number.cast_unsigned().into()),
        Field::Int(number) if number >= 0 => Given::Number(number.cast_unsigned().into()),
        Field::Long(number) if number >= 0 => Given::Number(number.cast_unsigned()),
        Field::TimestampMillis(number) if number >= 0 => Given::Number(number.cast_unsigned()),
        Field::TimestampMicros(number) if number >= 0 => {
            Given::Number(number.cast_unsigned() / 1_000)
        }
        Field::Str(ref text) => Given::Text(text),
        Field::ListInternal(ref list) => {
            return list.elements().iter().try_for_each(|one| match one {
                Field::ListInternal(_) => Err(format!("{} has a list in a list", column.name())),
                one => add(row, column, one),
            });
        }
        _ => return Err(format!("{} has neither a text nor an unsigned number", column.name())),
    };
    row.add(column, given).map_err(|error| error.to_string())
}
