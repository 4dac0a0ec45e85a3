//! The columns of Parquet files, for their readers.

use super::field::{Shape, Type};
use super::{COLUMNS, FIELDS};

/// A column of flow records in Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub of: ColumnType,
    /// Whether a record has a list of them.
    pub is_list: bool,
    /// Whether it is from payloads, so that events have it, too.
    pub is_fact: bool,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Milliseconds since 1970, UTC.
    Time,
    /// Unsigned.
    Number,
    /// UTF-8.
    Text,
}

/// All columns, also those that not all runs have.
pub fn parquet_columns() -> impl Iterator<Item = Column> {
    let fields = COLUMNS.into_iter().map(|row| &FIELDS[row]).filter(|field| field.edition > 0);
    fields.map(|field| Column {
        name: field.name,
        of: match field.value {
            Type::Time => ColumnType::Time,
            Type::Text => ColumnType::Text,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => ColumnType::Number,
        },
        is_list: field.shape == Shape::List,
        is_fact: field.kind.is_some(),
    })
}
