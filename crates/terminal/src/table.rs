//! Tables with aligned columns.

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
pub enum Lean {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// Rows of cells. Cells contain no escape sequences.
pub struct Table {
    lean: Vec<Lean>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; `lean` has an entry for each column.
    pub fn new(lean: &[Lean]) -> Self {
        Self { lean: lean.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with at most as many cells as the table has columns.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
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
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.lean.len()).map(widest).collect();
        self.rows.iter().map(move |row| {
            let mut line = String::from(" ");
            for ((cell, lean), &width) in row.iter().zip(&self.lean).zip(&widths) {
                line.push(' ');
                match lean {
                    Lean::Left => line += &format!("{cell:<width$} "),
                    Lean::Right => line += &format!("{cell:>width$} "),
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
        table.row(["größer", "1000", "z"]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines, ["  a          1", "  größer  1000  z"]);
    }
}
