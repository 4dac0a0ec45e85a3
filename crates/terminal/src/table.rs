//! Tables with aligned columns.

use std::borrow::Cow;

use ringtap_base::text::{acts, push_hex, shown};

use crate::numbers;

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
pub enum Lean {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A cell. Its text may be any; outputs have it as [`shown`].
#[derive(Clone, Debug)]
pub struct Cell {
    pub(crate) text: String,
    /// The number that the text is about.
    pub(crate) exact: Option<u64>,
    /// Where it leads, in HTML only.
    pub(crate) link: Option<String>,
}

impl Cell {
    /// `12,345,678`.
    pub fn count(number: u64) -> Self {
        Self { text: numbers::count(number), exact: Some(number), link: None }
    }

    /// `3.94 MiB`.
    pub fn bytes(number: u64) -> Self {
        Self { text: numbers::bytes(number), exact: Some(number), link: None }
    }

    /// Text about a number.
    pub fn about(number: u64, text: impl Into<String>) -> Self {
        Self { text: text.into(), exact: Some(number), link: None }
    }

    /// Makes the text a link, in HTML only.
    pub fn to(mut self, link: String) -> Self {
        self.link = Some(link);
        self
    }
}

impl<S: Into<String>> From<S> for Cell {
    fn from(text: S) -> Self {
        Self { text: text.into(), exact: None, link: None }
    }
}

/// Rows of cells.
#[derive(Debug)]
pub struct Table {
    pub(crate) lean: Vec<Lean>,
    /// The names of the columns, if they have any.
    pub(crate) head: Vec<Cow<'static, str>>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table; `lean` has an entry for each column.
    pub fn new(lean: &[Lean]) -> Self {
        Self { lean: lean.to_vec(), head: Vec::new(), rows: Vec::new() }
    }

    /// An empty table with named columns.
    pub fn with_head(columns: &[(&'static str, Lean)]) -> Self {
        Self::with_names(columns.iter().map(|&(name, lean)| (name.into(), lean)))
    }

    /// As [`Table::with_head`], with names that are made.
    pub fn with_names(columns: impl IntoIterator<Item = (Cow<'static, str>, Lean)>) -> Self {
        let (head, lean) = columns.into_iter().unzip();
        Self { lean, head, rows: Vec::new() }
    }

    /// Adds a row with at most as many cells as the table has columns.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        debug_assert!(cells.len() <= self.lean.len());
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Which columns have a text in any row: others, such as origins where none are known, are left out.
    pub(crate) fn used(&self) -> Vec<bool> {
        let is_used = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.any(|cell| !cell.text.is_empty())
        };
        (0..self.lean.len()).map(is_used).collect()
    }

    /// The lines, indented, two spaces between columns, nothing after the last cell.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let texts =
            |row: &'_ Vec<Cell>| row.iter().map(|cell| shown(&cell.text).into_owned()).collect();
        let head = self.head.iter().map(|name| shown(name).into_owned()).collect();
        let head = (!self.head.is_empty()).then_some(head);
        let rows: Vec<Vec<String>> = head.into_iter().chain(self.rows.iter().map(texts)).collect();
        let widest = |column: usize| {
            let texts = rows.iter().filter_map(|row| row.get(column));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.lean.len()).map(widest).collect();
        let used = self.used();
        rows.into_iter().map(move |row| {
            let mut line = String::from(" ");
            let cells = row.iter().zip(&self.lean).zip(&widths).zip(&used);
            for (((text, lean), &width), _) in cells.filter(|(_, used)| **used) {
                line.push(' ');
                match lean {
                    Lean::Left => line += &format!("{text:<width$} "),
                    Lean::Right => line += &format!("{text:>width$} "),
                }
            }
            line.truncate(line.trim_end().len());
            line
        })
    }

    /// The rows as CSV (RFC 4180), with exact numbers where cells have them.
    pub fn csv(&self) -> String {
        let mut csv = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<_> = cells.map(|text| quoted(&text)).collect();
            csv += &cells.join(",");
            csv += "\r\n";
        };
        if !self.head.is_empty() {
            line(&mut self.head.iter().map(|name| name.clone().into_owned()));
        }
        for row in &self.rows {
            let text =
                |cell: &Cell| cell.exact.map_or(cell.text.clone(), |number| number.to_string());
            line(&mut row.iter().map(text));
        }
        csv
    }
}

/// A field of CSV, with backslashes and letters that act on a terminal as `\xHH`.
pub fn quoted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '\\' || acts(letter) {
            push_hex(&mut safe, letter);
        } else {
            safe.push(letter);
        }
    }
    if safe.contains([',', '"']) { format!("\"{}\"", safe.replace('"', "\"\"")) } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[Lean::Left, Lean::Right, Lean::Left]);
        table.row(["a", "1"]);
        table.row(["größer".into(), Cell::count(1000), "z".into()]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines, ["  a           1", "  größer  1,000  z"]);
    }

    #[test]
    fn a_head_is_the_first_line_and_csv_has_exact_numbers() {
        let mut table = Table::with_head(&[("name", Lean::Left), ("packets", Lean::Right)]);
        table.row(["a \"b\", c".into(), Cell::count(12_345)]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines, ["  name      packets", "  a \"b\", c   12,345"]);
        assert_eq!(table.csv(), "name,packets\r\n\"a \"\"b\"\", c\",12345\r\n");
    }

    #[test]
    fn a_column_without_text_is_not_shown_but_is_in_csv() {
        let mut table =
            Table::with_head(&[("a", Lean::Left), ("b", Lean::Left), ("c", Lean::Left)]);
        table.row(["1", "", "2"]);
        assert_eq!(table.lines().collect::<Vec<_>>(), ["  a  c", "  1  2"]);
        assert_eq!(table.csv(), "a,b,c\r\n1,,2\r\n");
    }

    #[test]
    fn no_letter_acts_on_a_terminal() {
        let mut table = Table::new(&[Lean::Left, Lean::Left]);
        table.row(["a\u{202e}\\", "b"]);
        table.row(["\u{9b}2J\n", "c"]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines, ["  a\\u{202e}\\     b", "  \\u{9b}2J\\u{a}  c"]);
        assert_eq!(table.csv(), "a\\xe2\\x80\\xae\\x5c,b\r\n\\xc2\\x9b2J\\x0a,c\r\n");
    }
}
