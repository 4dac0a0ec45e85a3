//! JSON lines: one object a line. Names that are not those of records are left out, and so are nulls.

use std::fmt;
use std::io::BufRead;

use ringtap_export::sums::{Column, Given, NamedRow};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::lines::{LINE_BYTES, Line, Lines};
use super::rows::{ArrivedError, Rows};

/// Reads all lines.
pub(super) fn read(input: impl BufRead, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next().map_err(|error| rows.error(error))? {
        match line {
            Line::Whole(line) => {
                let mut json = serde_json::Deserializer::from_slice(line);
                let object = (&mut json).deserialize_map(Object(&mut rows.row));
                let added = object.and_then(|()| json.end());
                rows.end_row(lines.number, added, true);
            }
            Line::TooLong => {
                rows.invalid(lines.number, format_args!("longer than {LINE_BYTES} bytes"));
            }
        }
    }
    Ok(())
}

/// The object of a record.
struct Object<'a>(&'a mut NamedRow);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(column) = map.next_key_seed(Name)? {
            match column {
                Some(column) => map.next_value_seed(Values { row: self.0, column })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The name of a field.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<Column>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<Column>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Column::named(name))
    }
}

/// The value of a field, or the values of a list.
struct Values<'a> {
    row: &'a mut NamedRow,
    column: Column,
}

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number, a text or a list of them in {}", self.column.name())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.row.add(self.column, Given::Number(number)).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.row.add(self.column, Given::Text(text)).map_err(E::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Values { row, column } = self;
        while list.next_element_seed(Values { row: &mut *row, column })?.is_some() {}
        Ok(())
    }
}
