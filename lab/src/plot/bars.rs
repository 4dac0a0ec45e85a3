//! A chart of horizontal bars, with the names of the candidates on the left.

use super::{Axis, Canvas, FONT, WIDTH, short};

/// A figure of bars.
#[derive(Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) label: String,
    pub(crate) log: bool,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Median and quartiles.
    pub(crate) measured: Option<(f64, f64, f64)>,
    pub(crate) oversubscribed: bool,
    pub(crate) paper: Option<f64>,
    /// Text in place of a bar that was not measured: the reason.
    pub(crate) missing: String,
}

const TOP: f64 = 46.0;
const ROW: f64 = 26.0;
const NUMBER: f64 = 74.0;
/// Width of a character, as a part of its height.
const WIDEST: f64 = 0.56;

impl Bars {
    pub(crate) fn svg(&self) -> String {
        let bottom = TOP + self.bars.len() as f64 * ROW;
        let paper = self.bars.iter().any(|bar| bar.paper.is_some());
        let hollow = self.bars.iter().any(|bar| bar.oversubscribed);
        let mut canvas = Canvas::new(bottom + if paper || hollow { 64.0 } else { 44.0 });
        canvas.text(8.0, 20.0, "bold", &self.title);
        let longest = self.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * FONT * WIDEST + 18.0).min(WIDTH * 0.55);
        let values = self.bars.iter().flat_map(|bar| {
            let measured = bar.measured.map(|(y, low, high)| [y, low, high]);
            measured.into_iter().flatten().chain(bar.paper)
        });
        let axis = Axis::new(values, self.log, left, WIDTH - NUMBER);
        for (tick, text) in axis.ticks() {
            let x = axis.place(tick);
            canvas.line((x, TOP - 6.0), (x, bottom), "grid");
            canvas.text(x, bottom + 16.0, "soft middle", &text);
        }
        for (number, bar) in self.bars.iter().enumerate() {
            self.bar(&mut canvas, bar, &axis, left, TOP + number as f64 * ROW);
        }
        canvas.text(left, bottom + 36.0, "soft", &self.label);
        let signs = [
            (paper, "paperbar c7", "the paper's figure"),
            (hollow, "hollow c0", "more threads than cores"),
        ];
        let shown = signs.into_iter().filter(|(is_shown, ..)| *is_shown);
        for (place, (_, class, text)) in shown.enumerate() {
            let x = left + 160.0 * place as f64;
            canvas.rectangle(x, bottom + 47.0, 14.0, 9.0, class);
            canvas.text(x + 20.0, bottom + 56.0, "soft", text);
        }
        canvas.finish(&self.title)
    }

    fn bar(&self, canvas: &mut Canvas, bar: &Bar, axis: &Axis, left: f64, top: f64) {
        canvas.text(left - 8.0, top + 14.0, "end", &bar.name);
        if let Some(paper) = bar.paper {
            let width = axis.place(paper) - left;
            canvas.rectangle(left, top - 1.0, width.max(1.0), 20.0, "paperbar c7");
        }
        let Some((value, low, high)) = bar.measured else {
            let room = ((WIDTH - left - 6.0) / (FONT * WIDEST)) as usize;
            canvas.text(left + 6.0, top + 14.0, "soft", &cut(&bar.missing, room));
            return;
        };
        let fill = if bar.oversubscribed { "hollow" } else { "mark" };
        let width = (axis.place(value) - left).max(1.0);
        canvas.rectangle(left, top + 3.0, width, 12.0, &format!("{fill} c0"));
        if high > low {
            let y = top + 9.0;
            canvas.line((axis.place(low), y), (axis.place(high), y), "axis");
        }
        let further = axis.place(high.max(value).max(bar.paper.unwrap_or(value)));
        canvas.text(further + 6.0, top + 14.0, "soft", &short(value));
    }
}

/// A text of at most this number of characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_end_inside_of_the_picture() {
        assert_eq!(cut("übung", 5), "übung");
        assert_eq!(cut("übungen", 5), "übun…");
        let bar = Bar {
            name: "one".into(),
            measured: None,
            oversubscribed: false,
            paper: None,
            missing: "not available ".repeat(20),
        };
        let svg = Bars { bars: vec![bar], ..Bars::default() }.svg();
        let (_, reason) = svg.split_once(">not available").unwrap();
        let (reason, _) = reason.split_once('<').unwrap();
        assert!(reason.ends_with('…') && reason.len() < 110, "{reason}");
    }
}
