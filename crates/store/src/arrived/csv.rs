//! CSV (RFC 4180) with one record a line, as ringtap writes it: the header has the names of columns; other columns are
//! left out.

use std::fmt;
use std::io::BufRead;

use ringtap_export::sums::Column;

use super::lines::{LINE_BYTES, Line, Lines};
use super::rows::{ArrivedError, Reason, Rows};

/// Whether a file that begins so has the header of records.
pub(super) fn is_header(first: &[u8]) -> bool {
    let line = first.split(|&byte| byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    line.is_some_and(|line| {
        line.trim_end().split(',').any(|name| name.trim_matches('"') == "flowEndMilliseconds")
    })
}

/// Most columns of a file.
const COLUMNS_MOST: usize = 4_096;

/// Reads all lines.
pub(super) fn read(input: impl BufRead, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let mut lines = Lines::new(input);
    let Some(head) = lines.next().map_err(|error| rows.error(error))? else { return Ok(()) };
    let Line::Whole(head) = head else { return Err(rows.error(Reason::Unknown)) };
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    let (mut columns, mut field) = (Vec::new(), String::new());
    let mut rest = str::from_utf8(head).ok();
    while let Some(line) = rest
        && columns.len() < COLUMNS_MOST
    {
        rest = next(line, &mut field).map_err(|_| rows.error(Reason::Unknown))?;
        columns.push(Column::named(&field));
    }
    let is_whole = rows.is_whole(&columns)?;
    while let Some(line) = lines.next().map_err(|error| rows.error(error))? {
        match line {
            Line::Whole(line) => {
                let added = add(line, &columns, &mut field, rows);
                rows.end_row(lines.number, added, is_whole);
            }
            Line::TooLong => {
                rows.invalid(lines.number, format_args!("longer than {LINE_BYTES} bytes"));
            }
        }
    }
    Ok(())
}

/// Adds the values of a line to the row.
fn add(
    line: &[u8],
    columns: &[Option<Column>],
    field: &mut String,
    rows: &mut Rows<'_>,
) -> Result<(), String> {
    let mut rest = Some(str::from_utf8(line).map_err(|error| error.to_string())?);
    for (at, column) in columns.iter().enumerate() {
        let Some(line) = rest else {
            return Err(format!("{at} fields, and the header has {}", columns.len()));
        };
        rest = next(line, field).map_err(|error| error.to_string())?;
        if let Some(column) = *column {
            rows.row.add_csv(column, field).map_err(|error| error.to_string())?;
        }
    }
    match rest {
        None => Ok(()),
        Some(_) => Err(format!("more than the {} fields of the header", columns.len())),
    }
}

/// A quote is missing, or followed by text.
struct Unquoted;

impl fmt::Display for Unquoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quoted field does not end before a comma")
    }
}

/// Sets `field` to the first field of the line, and returns what is behind its comma; `None` if it is the last.
fn next<'a>(line: &'a str, field: &mut String) -> Result<Option<&'a str>, Unquoted> {
    field.clear();
    let Some(mut quoted) = line.strip_prefix('"') else {
        let (own, rest) =
            line.split_once(',').map_or((line, None), |(own, rest)| (own, Some(rest)));
        field.push_str(own);
        return Ok(rest);
    };
    loop {
        let (own, rest) = quoted.split_once('"').ok_or(Unquoted)?;
        field.push_str(own);
        match rest.as_bytes() {
            [] => return Ok(None),
            [b',', ..] => return Ok(Some(&rest[1..])),
            [b'"', ..] => {
                field.push('"');
                quoted = &rest[1..];
            }
            _ => return Err(Unquoted),
        }
    }
}
