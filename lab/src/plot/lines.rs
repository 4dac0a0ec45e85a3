//! A line chart with one or more panels side by side.

use super::{Axis, COLOURS, Canvas, FONT, WIDTH, short};

/// A figure of lines.
#[derive(Debug, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
    /// Panels: heading and lines.
    pub(crate) panels: Vec<(String, Vec<Line>)>,
}

/// One line of a panel; lines of the same name have the same colour.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) kind: LineKind,
    pub(crate) marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Measured,
    /// Hollow points without a line: trials with more threads than cores.
    Oversubscribed,
    /// The paper's figures: points without a line.
    Paper,
    /// A dashed line without points.
    Model,
}

/// A point and its quartiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

const TOP: f64 = 46.0;
const PANEL: f64 = 270.0;
const LEFT: f64 = 64.0;
const GAP: f64 = 14.0;
const ROW: f64 = 19.0;

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let names = self.names();
        let rows = names.len() + self.keys().len();
        let bottom = TOP + PANEL;
        let legend = bottom + 54.0;
        let mut canvas = Canvas::new(legend + (rows.div_ceil(2) as f64) * ROW + 6.0);
        canvas.text(8.0, 20.0, "bold", &self.title);
        let marks = || self.panels.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.marks);
        let y =
            Axis::new(marks().flat_map(|m| [m.low, m.y, m.high]), self.log_y, bottom, TOP + 8.0);
        let count = self.panels.len().max(1) as f64;
        let width = (WIDTH - LEFT - 10.0 - GAP * (count - 1.0)) / count;
        canvas.text(8.0, TOP - 6.0, "soft", &self.y_label);
        for (number, (heading, lines)) in self.panels.iter().enumerate() {
            let left = LEFT + number as f64 * (width + GAP);
            let right = left + width;
            for (tick, text) in y.ticks() {
                canvas.line((left, y.place(tick)), (right, y.place(tick)), "grid");
                if number == 0 {
                    canvas.text(left - 7.0, y.place(tick) + 4.0, "soft end", &text);
                }
            }
            let x = Axis::close(marks().map(|m| m.x), self.log_x, left + 8.0, right - 8.0);
            canvas.line((left, bottom), (right, bottom), "axis");
            self.x_ticks(&mut canvas, &x, bottom, width);
            canvas.text(right, TOP - 6.0, "soft end", heading);
            for line in lines {
                let colour = names.iter().position(|name| *name == line.name).unwrap_or(0);
                draw(&mut canvas, line, colour, &x, &y);
            }
        }
        canvas.text(LEFT, bottom + 36.0, "soft", &self.x_label);
        self.legend(&mut canvas, &names, legend);
        canvas.finish(&self.title)
    }

    /// Draws the ticks: the measured values if there are at most 12, otherwise round numbers.
    fn x_ticks(&self, canvas: &mut Canvas, x: &Axis, bottom: f64, width: f64) {
        let all = self.panels.iter().flat_map(|(_, lines)| lines).flat_map(|line| &line.marks);
        let mut values: Vec<f64> = all.map(|mark| mark.x).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let known: Vec<_> = values.iter().map(|&v| (v, short(v))).collect();
        let ticks = if values.len() <= 12 { known } else { x.ticks() };
        let mut free = f64::NEG_INFINITY;
        for (tick, text) in ticks {
            let at = x.place(tick);
            let half = text.len() as f64 * FONT * 0.3 + 3.0;
            canvas.line((at, bottom), (at, bottom + 4.0), "axis");
            // Labels that would overlap the previous one are omitted.
            if at - half > free && half * 2.0 < width {
                canvas.text(at, bottom + 18.0, "soft middle", &text);
                free = at + half;
            }
        }
    }

    /// Distinct names of lines, in order of appearance.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|(_, lines)| lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        names
    }

    /// The kinds of lines in the chart that the legend explains.
    fn keys(&self) -> Vec<(LineKind, &'static str)> {
        let all = [
            (LineKind::Oversubscribed, "hollow: more threads than cores"),
            (LineKind::Paper, "diamond: the paper's figure"),
            (LineKind::Model, "dashed: a model, not a measurement"),
        ];
        let lines = || self.panels.iter().flat_map(|(_, lines)| lines);
        all.into_iter().filter(|(kind, _)| lines().any(|line| line.kind == *kind)).collect()
    }

    fn legend(&self, canvas: &mut Canvas, names: &[&str], top: f64) {
        let place = |row: usize| {
            (LEFT + (row % 2) as f64 * (WIDTH - LEFT) / 2.0, top + (row / 2) as f64 * ROW)
        };
        for (row, name) in names.iter().enumerate() {
            let (x, y) = place(row);
            canvas.line((x - 8.0, y), (x + 8.0, y), &format!("line c{}", row % COLOURS));
            canvas.mark((x, y), row, row, false);
            canvas.text(x + 14.0, y + 4.0, "", name);
        }
        for (at, (kind, words)) in self.keys().into_iter().enumerate() {
            let (x, y) = place(names.len() + at);
            match kind {
                LineKind::Model => canvas.line((x - 8.0, y), (x + 8.0, y), "model c7"),
                LineKind::Paper => canvas.mark((x, y), 3, 7, true),
                _ => canvas.mark((x, y), 0, 7, true),
            }
            canvas.text(x + 14.0, y + 4.0, "soft", words);
        }
    }
}

fn draw(canvas: &mut Canvas, line: &Line, colour: usize, x: &Axis, y: &Axis) {
    let class = colour % COLOURS;
    let places: Vec<_> = line.marks.iter().map(|m| (x.place(m.x), y.place(m.y))).collect();
    match line.kind {
        LineKind::Measured => canvas.path(&places, &format!("line c{class}")),
        LineKind::Model => canvas.path(&places, &format!("model c{class}")),
        LineKind::Oversubscribed | LineKind::Paper => {}
    }
    if line.kind == LineKind::Model {
        return;
    }
    for (mark, &place) in line.marks.iter().zip(&places) {
        if mark.high > mark.low {
            let (low, high) = ((place.0, y.place(mark.low)), (place.0, y.place(mark.high)));
            canvas.line(low, high, &format!("spread c{class}"));
        }
        let shape = if line.kind == LineKind::Paper { 3 } else { colour };
        canvas.mark(place, shape, colour, line.kind != LineKind::Measured);
    }
}
