//! A report: sections of lines, tables and charts. As text it has at most 100 columns; [`crate::html`] makes a page of it.

use anstyle::{AnsiColor, Style};

use ringtap_base::text::shown;

use crate::chart::Timeline;
use crate::console::bold;
use crate::table::{Cell, Table};

const HEADING: Style = bold(AnsiColor::Cyan);

/// Columns of the text.
pub const WIDTH: usize = 100;

/// The report so far.
#[derive(Debug, Default)]
pub struct Page {
    /// Key numbers, in HTML only.
    pub(crate) figures: Vec<(&'static str, Cell)>,
    pub(crate) sections: Vec<Section>,
    pub(crate) last: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// As wide as the page, in HTML only.
    pub(crate) wide: bool,
    /// Links beside the title, in HTML only: their texts and where they lead.
    pub(crate) links: Vec<(&'static str, String)>,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    Line(String),
    Table(Table),
    /// In HTML only.
    Charts(Vec<Timeline>),
}

impl Page {
    /// Adds a key number, which HTML shows above all sections.
    pub fn figure(&mut self, name: &'static str, value: Cell) {
        self.figures.push((name, value));
    }

    /// Begins a section.
    pub fn heading(&mut self, title: &str) {
        self.sections.push(Section {
            title: title.into(),
            wide: false,
            links: Vec::new(),
            parts: Vec::new(),
        });
    }

    fn part(&mut self, part: Part) {
        if self.sections.is_empty() {
            self.heading("");
        }
        if let Some(section) = self.sections.last_mut() {
            section.parts.push(part);
        }
    }

    /// Makes the section as wide as the page, in HTML only.
    pub fn widen(&mut self) {
        if let Some(section) = self.sections.last_mut() {
            section.wide = true;
        }
    }

    /// A link beside the title of the section, in HTML only.
    pub fn link(&mut self, text: &'static str, to: String) {
        if let Some(section) = self.sections.last_mut() {
            section.links.push((text, to));
        }
    }

    /// A line of the section.
    pub fn line(&mut self, text: &str) {
        self.part(Part::Line(text.into()));
    }

    /// A table in the section.
    pub fn table(&mut self, table: Table) {
        self.part(Part::Table(table));
    }

    /// A section of charts, in HTML only; nothing if there are none.
    pub fn charts(&mut self, title: &str, charts: Vec<Timeline>) {
        if !charts.is_empty() {
            self.heading(title);
            self.widen();
            self.part(Part::Charts(charts));
        }
    }

    /// A section with a table; nothing if it has no rows.
    pub fn section(&mut self, title: &str, table: Table) {
        if !table.is_empty() {
            self.heading(title);
            self.table(table);
        }
    }

    /// The first table of the section with this title.
    pub fn table_of(&self, title: &str) -> Option<&Table> {
        let parts =
            self.sections.iter().filter(|one| one.title == title).flat_map(|one| &one.parts);
        parts.into_iter().find_map(|part| match part {
            Part::Table(table) => Some(table),
            Part::Line(_) | Part::Charts(_) => None,
        })
    }

    /// The footer.
    pub fn last(&mut self, text: String) {
        self.last = Some(text);
    }

    /// The whole as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Section { title, parts, .. } in &self.sections {
            if matches!(parts[..], [Part::Charts(_)]) {
                continue;
            }
            let lines: Vec<String> = parts.iter().flat_map(Part::lines).collect();
            let gap = if text.is_empty() { "" } else { "\n" };
            if !title.is_empty() {
                text += &format!("{gap}{HEADING}{}{HEADING:#}\n", shown(title));
            }
            lines.iter().for_each(|line| text += &format!("{line}\n"));
        }
        if let Some(last) = &self.last {
            text += &format!("\n{}\n", shown(last));
        }
        text
    }
}

impl Part {
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![format!("  {}", shown(line))],
            Self::Table(table) => table.lines().collect(),
            Self::Charts(_) => Vec::new(),
        }
    }
}
