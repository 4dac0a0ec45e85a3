//! Aligned Markdown tables.

use std::fmt::Write;

/// An aligned Markdown table; the first column is text, the others are numbers.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "| {cell:width$} "),
                _ => write!(text, "| {cell:>width$} "),
            };
        }
        text.push_str("|\n");
        if i == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let _ = write!(
                    text,
                    "|{}{}",
                    "-".repeat(width + 1),
                    if column == 0 { '-' } else { ':' }
                );
            }
            text.push_str("|\n");
        }
    }
    text
}
