//! Text, lines and marks of a chart.

use std::fmt::Write;

use ringtap_base::text::shown;

/// The style of all charts, for the page that contains them.
pub const STYLE: &str = include_str!("style.css");

/// Width of a chart, in its own units.
pub const WIDTH: f64 = 720.0;
/// Size of its text.
pub const FONT: f64 = 13.0;

/// Number of colours; a ninth line has the first colour again.
pub const COLOURS: usize = 8;

/// A chart as a file of its own.
pub fn stand_alone(svg: &str) -> String {
    let (head, body) = svg.split_once('>').unwrap_or((svg, ""));
    format!(
        "{head}><style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>{body}\n"
    )
}

/// An SVG document under construction.
#[derive(Debug)]
pub struct Canvas {
    svg: String,
    width: f64,
    height: f64,
}

impl Canvas {
    /// An empty one of this height and [`WIDTH`].
    pub fn new(height: f64) -> Self {
        Self::sized(WIDTH, height)
    }

    /// An empty one.
    pub fn sized(width: f64, height: f64) -> Self {
        Self { svg: String::new(), width, height }
    }

    /// Writes text; `class` selects its style.
    pub fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        // Writing to a String cannot fail.
        let _ = write!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
    }

    /// Draws a line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.svg,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        );
    }

    /// Draws a line through points.
    pub fn path(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(self.svg, "<polyline points=\"{}\" class=\"{class}\"/>", points.join(" "));
    }

    /// Draws a rectangle by its left upper corner.
    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        );
    }

    /// Draws one of four shapes, so that lines differ without colour. Hollow marks are not counted.
    pub fn mark(&mut self, (x, y): (f64, f64), shape: usize, colour: usize, hollow: bool) {
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
    pub fn finish(self, title: &str) -> String {
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" \
             aria-label=\"{title}\"><title>{title}</title>{}</svg>",
            self.width, self.height, self.svg
        )
    }
}

/// Text for people, escaped for XML and HTML.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in shown(text).chars() {
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
