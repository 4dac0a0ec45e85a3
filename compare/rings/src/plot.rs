//! Throughput by capacity as SVG: a column for each item size; bursts above, single items below.
//!
//! ```text
//!            8 bytes    64 bytes   …
//! bursts    ┌───────┐  ┌───────┐       ── ours   ── rivals, a colour each   ╌╌ streaming limit
//! single    └───────┘  └───────┘       logarithmic; bars from the first to the third quartile
//! ```

use crate::{
    candidates::{Candidate, Mode, Origin},
    claims::Results,
    rounds::Cell,
};
use beside::quantile;
use std::fmt::Write;

const PANEL: [f64; 2] = [250.0, 250.0];
const GAP: [f64; 2] = [62.0, 70.0];
const LEFT: f64 = 70.0;
const TOP: f64 = 92.0;
const LEGEND: f64 = 200.0;

const OURS: &str = "#0b5fff";
/// Colours of our other kinds, from light to dark.
const OTHER_KINDS: [&str; 5] = ["#d3deee", "#bcd0ee", "#a3c1f0", "#86b1f4", "#6fa8ff"];
const RIVALS: [&str; 10] = [
    "#d1495b", "#edae49", "#2e9e6b", "#7d4fb3", "#8c6d46", "#e377c2", "#17a2b8", "#9aa53a",
    "#f2784b", "#555b66",
];

/// A line of a panel.
struct Line<'a> {
    name: String,
    color: &'a str,
    width: f64,
    dashed: bool,
    /// Cells in order of capacity, with the fastest mode at each.
    cells: Vec<&'a Cell>,
}

/// The whole figure.
pub fn svg(results: &Results, sizes: &[usize], capacities: &[usize], machine: &str) -> String {
    let width = LEFT + sizes.len() as f64 * (PANEL[0] + GAP[0]) + LEGEND;
    let height = TOP + 2.0 * (PANEL[1] + GAP[1]);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"#333\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    text(&mut svg, LEFT, 30.0, "start", 18, "Rings: million items per second by capacity");
    text(&mut svg, LEFT, 50.0, "start", 11, machine);
    let rows: [(&str, &[Mode]); 2] =
        [("bursts", &[Mode::Copy, Mode::InPlace]), ("single items", &[Mode::Single])];
    for (row, (title, modes)) in rows.into_iter().enumerate() {
        let y = TOP + row as f64 * (PANEL[1] + GAP[1]);
        for (column, &bytes) in sizes.iter().enumerate() {
            let x = LEFT + column as f64 * (PANEL[0] + GAP[0]);
            let lines = lines(results, bytes, capacities, modes);
            text(&mut svg, x, y - 8.0, "start", 13, &format!("{bytes} bytes, {title}"));
            panel(&mut svg, [x, y], capacities, &lines);
            if column + 1 == sizes.len() {
                legend(&mut svg, [x + PANEL[0] + 28.0, y + 6.0], &lines);
            }
        }
    }
    svg + "</svg>\n"
}

/// The lines of a panel; ours are last, so they are drawn on top.
fn lines<'a>(
    results: &Results<'a>,
    bytes: usize,
    capacities: &[usize],
    modes: &[Mode],
) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = Vec::new();
    let (mut rivals, mut kinds) = (RIVALS.iter().cycle(), OTHER_KINDS.iter().cycle());
    let mut seen: Vec<&str> = Vec::new();
    for candidate in results.candidates {
        let Candidate { name, origin, .. } = candidate;
        // The two variants of the limit are one line, the faster at each capacity.
        let key = if *origin == Origin::Machine { "streaming limit" } else { name };
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        // Assign a colour even if the candidate is not in this panel, so that colours agree between
        // panels.
        let (color, width, dashed) = match *origin {
            Origin::Ours => (OURS, 3.2, false),
            Origin::OursByKind => (*kinds.next().unwrap_or(&OURS), 1.4, false),
            Origin::Rival => (*rivals.next().unwrap_or(&OURS), 1.6, false),
            Origin::Paper => ("#000000", 1.6, true),
            Origin::Machine => ("#999999", 1.4, true),
        };
        let fits = |c: &Candidate| match origin {
            Origin::Machine => c.origin == Origin::Machine,
            _ => c.name == *name && modes.contains(&c.mode),
        };
        let best = |&capacity: &usize| results.best(bytes, capacity, fits);
        let cells: Vec<&Cell> = capacities.iter().filter_map(best).collect();
        if cells.len() == capacities.len() {
            let ours = if candidate.is_ours() { "ringtap " } else { "" };
            lines.push(Line { name: format!("{ours}{key}"), color, width, dashed, cells });
        }
    }
    lines.sort_by(|a, b| a.width.total_cmp(&b.width));
    lines
}

/// Draws a panel: axes and lines.
fn panel(svg: &mut String, [left, top]: [f64; 2], capacities: &[usize], lines: &[Line]) {
    let shares = |cell: &&Cell| [0.25, 0.5, 0.75].map(|share| quantile(&cell.sorted().0, share));
    let all = || lines.iter().flat_map(|line| line.cells.iter().flat_map(shares));
    let low = all().fold(f64::INFINITY, f64::min).max(0.01).log10() - 0.05;
    let high = all().fold(0.0, f64::max).max(0.02).log10() + 0.05;
    let y = |rate: f64| top + PANEL[1] * (high - rate.max(0.01).log10()) / (high - low);
    let step = PANEL[0] / capacities.len() as f64;
    let x = |column: usize| left + step * (column as f64 + 0.5);
    let [width, height] = PANEL;
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#fafafa\"/>"
    );
    for decade in -2..5 {
        for unit in [1.0, 2.0, 5.0] {
            let rate = unit * 10f64.powi(decade);
            if (low..=high).contains(&rate.log10()) {
                let (y, right) = (y(rate), left + width);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#e2e2e2\" stroke-width=\"1\"/>"
                );
                text(svg, left - 6.0, y + 4.0, "end", 10, &rate.to_string());
            }
        }
    }
    for (column, capacity) in capacities.iter().enumerate() {
        text(svg, x(column), top + height + 16.0, "middle", 10, &format!("× {capacity}"));
    }
    for line in lines {
        let (mut path, mut bars) = (String::new(), String::new());
        for (column, cell) in line.cells.iter().enumerate() {
            let [low, median, high] = shares(cell).map(y);
            let x = x(column);
            let _ = write!(path, "{}{x:.1} {median:.1}", if column == 0 { 'M' } else { 'L' });
            let _ = write!(bars, "M{x:.1} {low:.1}V{high:.1}");
        }
        let Line { color, width, .. } = line;
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" {} stroke-linejoin=\"round\"/>\n\
             <path d=\"{bars}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" opacity=\".35\"/>",
            line.stroke()
        );
    }
}

impl Line<'_> {
    fn stroke(&self) -> String {
        let Self { color, width, dashed, .. } = self;
        let dashes = if *dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        format!("fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dashes}")
    }
}

/// Draws the legend, ours first.
fn legend(svg: &mut String, [left, top]: [f64; 2], lines: &[Line]) {
    for (i, line) in lines.iter().rev().enumerate() {
        let y = top + i as f64 * 16.0;
        let right = left + 26.0;
        let _ = writeln!(svg, "<path d=\"M{left} {y}H{right}\" {}/>", line.stroke());
        text(svg, right + 8.0, y + 4.0, "start", 11, &line.name);
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: u32, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{text}</text>"
    );
}
