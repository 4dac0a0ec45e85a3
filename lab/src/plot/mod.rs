//! Figures as SVG without scripts.
//!
//! ```text
//!  title
//!  y │      ╭──●  a line, its points and their quartiles
//!    │  ●───╯  ◇   the paper's figure
//!    │      ○      oversubscribed: points without a line
//!    │ - - - - -   the model, dashed
//!    └───────────
//!        x
//! ```
//!
//! Colours are CSS classes: the style has a light and a dark scheme, and stand-alone files contain
//! it. Every distinction by colour is also one by shape, and the legend names it.

mod axis;
mod bars;
mod lines;
mod overview;

use std::fmt::Write;

pub(crate) use bars::{Bar, Bars};
pub(crate) use lines::{Chart, Line, LineKind, Mark};
pub(crate) use overview::{Entry, Overview, Sign};

/// The style of all figures; the page contains it, too.
const STYLE: &str = include_str!("style.css");

const WIDTH: f64 = 720.0;
const FONT: f64 = 13.0;

/// Number of colours; a ninth line has the first colour again.
const COLOURS: usize = 8;

/// A figure as a file of its own.
pub(crate) fn stand_alone(svg: &str) -> String {
    let (head, body) = svg.split_once('>').unwrap_or((svg, ""));
    format!(
        "{head}><style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>{body}\n"
    )
}

/// An SVG document under construction.
struct Canvas {
    svg: String,
    height: f64,
}

impl Canvas {
    fn new(height: f64) -> Self {
        Self { svg: String::new(), height }
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        // Writing to a String cannot fail.
        let _ = write!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    fn path(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(self.svg, "<polyline points=\"{}\" class=\"{class}\"/>", points.join(" "));
    }

    fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        );
    }

    /// Draws one of four shapes, so that lines differ without colour. Hollow marks are not counted.
    fn mark(&mut self, (x, y): (f64, f64), shape: usize, colour: usize, hollow: bool) {
        let class = format!("{} c{}", if hollow { "hollow" } else { "mark" }, colour % COLOURS);
        let r = 4.0;
        let _ = match shape % 4 {
            0 => write!(
                self.svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" class=\"{class}\"/>"
            ),
            1 => write!(
                self.svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" class=\"{class}\"/>",
                x - 3.5,
                y - 3.5
            ),
            2 => {
                write!(self.svg, "<path d=\"M{x:.1} {:.1}l5 9h-10z\" class=\"{class}\"/>", y - 5.0)
            }
            _ => write!(
                self.svg,
                "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" class=\"{class}\"/>",
                y - 5.0
            ),
        };
    }

    /// The whole document; the title is also the text for screen readers.
    fn finish(self, title: &str) -> String {
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
             aria-label=\"{title}\"><title>{title}</title>{}</svg>",
            self.height, self.svg
        )
    }
}

/// Text escaped for XML and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            _ => safe.push(c),
        }
    }
    safe
}
