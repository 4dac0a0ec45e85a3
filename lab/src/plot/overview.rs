//! The overview of a run: a row for each experiment with a mark for each claim.

use super::{Canvas, WIDTH};

#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) title: String,
    /// Text about claims that are not counted with the others; empty if there are none.
    pub(crate) note: String,
    /// Legend of the signs.
    pub(crate) kinds: Vec<(String, Sign)>,
    pub(crate) rows: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) enum Entry {
    /// The title of a paper.
    Heading(String),
    /// An experiment and a sign for each of its claims: measured ones and those of other kinds.
    Claims { id: String, measured: Vec<Sign>, others: Vec<Sign> },
}

/// Shape and colour of a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    pub(crate) shape: usize,
    pub(crate) colour: usize,
    pub(crate) hollow: bool,
}

/// Signs in a line of the legend.
const LEGEND: usize = 3;
/// Space above the rows, without the lines of the legend.
const TOP: f64 = 70.0;
const ROW: f64 = 18.0;
/// Space before a heading.
const GAP: f64 = 9.0;
/// Left edge of the marks.
const LEFT: f64 = 224.0;
const STEP: f64 = 17.0;
/// Maximum number of characters of a paper's title in a line.
const LETTERS: usize = 84;

impl Overview {
    pub(crate) fn svg(&self) -> String {
        let headings = self.rows.iter().filter(|row| matches!(row, Entry::Heading(_))).count();
        let top = TOP + self.kinds.len().div_ceil(LEGEND) as f64 * ROW;
        let height = top + self.rows.len() as f64 * ROW + headings as f64 * GAP;
        let mut canvas = Canvas::new(height);
        canvas.text(8.0, 20.0, "bold", &self.title);
        canvas.text(8.0, 38.0, "soft", &self.note);
        for (number, (words, sign)) in self.kinds.iter().enumerate() {
            let x = 14.0 + (number % LEGEND) as f64 * (WIDTH - 14.0) / LEGEND as f64;
            let y = 58.0 + (number / LEGEND) as f64 * ROW;
            sign.draw(&mut canvas, x, y);
            canvas.text(x + 12.0, y + 4.0, "", words);
        }
        let mut y = top - GAP;
        for row in &self.rows {
            match row {
                Entry::Heading(title) => {
                    y += GAP;
                    canvas.text(8.0, y + 4.0, "bold", &shortened(title));
                }
                Entry::Claims { id, measured, others } => {
                    canvas.text(20.0, y + 4.0, "soft", id);
                    let place = |number: usize| LEFT + number as f64 * STEP;
                    for (number, sign) in measured.iter().enumerate() {
                        sign.draw(&mut canvas, place(number), y);
                    }
                    if !others.is_empty() {
                        let x = place(measured.len());
                        canvas.line((x, y - 7.0), (x, y + 7.0), "axis");
                    }
                    for (number, sign) in others.iter().enumerate() {
                        sign.draw(&mut canvas, place(measured.len() + 1 + number), y);
                    }
                }
            }
            y += ROW;
        }
        canvas.finish(&self.title)
    }
}

impl Sign {
    fn draw(self, canvas: &mut Canvas, x: f64, y: f64) {
        canvas.mark((x, y), self.shape, self.colour, self.hollow);
    }
}

fn shortened(title: &str) -> String {
    match title.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title.to_owned(),
    }
}
