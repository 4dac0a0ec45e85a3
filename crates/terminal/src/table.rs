//! Tables with aligned columns.

use crate::numbers;

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
pub enum Lean {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A cell: text without escape sequences.
#[derive(Clone, Debug)]
pub struct Cell {
    pub(crate) text: String,
    /// The number that the text is about.
    pub(crate) exact: Option<u64>,
}

impl Cell {
    /// `12,345,678`.
    pub fn count(number: u64) -> Self {
        Self { text: numbers::count(number), exact: Some(number) }
    }

    /// `3.94 MiB`.
    pub fn bytes(number: u64) -> Self {
        Self { text: numbers::bytes(number), exact: Some(number) }
    }

    /// `1 frame`, `2,000 frames`.
    pub fn of(number: u64, what: &str) -> Self {
        Self { text: numbers::of(number, what), exact: Some(number) }
    }

    /// Text about a number.
    pub fn about(number: u64, text: impl Into<String>) -> Self {
        Self { text: text.into(), exact: Some(number) }
    }

    /// The same with further words: `12,345 packets`.
    pub fn with(mut self, words: &str) -> Self {
        self.text.push(' ');
        self.text += words;
        self
    }
}

impl<S: Into<String>> From<S> for Cell {
    fn from(text: S) -> Self {
        Self { text: text.into(), exact: None }
    }
}

/// Rows of cells.
#[derive(Debug)]
pub struct Table {
    pub(crate) lean: Vec<Lean>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table; `lean` has an entry for each column.
    pub fn new(lean: &[Lean]) -> Self {
        Self { lean: lean.to_vec(), rows: Vec::new() }
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

    /// The lines, indented, two spaces between columns, nothing after the last cell.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(move |row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.lean.len()).map(widest).collect();
        self.rows.iter().map(move |row| {
            let mut line = String::from(" ");
            for ((cell, lean), &width) in row.iter().zip(&self.lean).zip(&widths) {
                line.push(' ');
                let text = &cell.text;
                match lean {
                    Lean::Left => line += &format!("{text:<width$} "),
                    Lean::Right => line += &format!("{text:>width$} "),
                }
            }
            line.truncate(line.trim_end().len());
            line
        })
    }
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
}
