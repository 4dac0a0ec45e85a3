//! A text report: sections of lines and tables, at most 100 columns.

use anstyle::{AnsiColor, Style};

use crate::console::bold;
use crate::table::Table;

const HEADING: Style = bold(AnsiColor::Cyan);

/// Columns of a page.
pub const WIDTH: usize = 100;

/// The text so far.
#[derive(Debug, Default)]
pub struct Page(pub String);

impl Page {
    /// Begins a section.
    pub fn heading(&mut self, title: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.0 += &format!("{gap}{HEADING}{title}{HEADING:#}\n");
    }

    /// A line of the section.
    pub fn line(&mut self, text: &str) {
        self.0 += &format!("  {text}\n");
    }

    /// A table in the section.
    pub fn table(&mut self, table: &Table) {
        for line in table.lines() {
            self.0 += &line;
            self.0.push('\n');
        }
    }

    /// A section with a table; nothing if it has no rows.
    pub fn section(&mut self, title: &str, table: &Table) {
        if !table.is_empty() {
            self.heading(title);
            self.table(table);
        }
    }
}
