//! Widgets of the terminal view: a panel of lines and a curve.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Margin, Rect};
use ratatui_core::style::{Color, Style};
use ratatui_core::text::Line;
use ratatui_core::widgets::Widget;

/// Eighths of a cell, from the bottom.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws a frame with a title; returns the area inside.
fn frame(title: &str, area: Rect, buffer: &mut Buffer) -> Rect {
    if area.width < 2 || area.height < 2 {
        return Rect::ZERO;
    }
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for x in area.x + 1..right {
        buffer[(x, area.y)].set_symbol("─");
        buffer[(x, bottom)].set_symbol("─");
    }
    for y in area.y + 1..bottom {
        buffer[(area.x, y)].set_symbol("│");
        buffer[(right, y)].set_symbol("│");
    }
    let corners = [(area.x, area.y, "┌"), (right, area.y, "┐"), (area.x, bottom, "└")];
    for (x, y, symbol) in corners.into_iter().chain([(right, bottom, "┘")]) {
        buffer[(x, y)].set_symbol(symbol);
    }
    buffer.set_stringn(area.x + 1, area.y, title, usize::from(area.width - 2), Style::new());
    area.inner(Margin::new(1, 1))
}

/// A frame with as many lines as fit.
pub(super) struct Panel<'a> {
    title: String,
    lines: Vec<Line<'a>>,
}

impl<'a> Panel<'a> {
    pub(super) fn new(title: &str, lines: Vec<Line<'a>>) -> Self {
        Self { title: title.to_owned(), lines }
    }
}

impl Widget for Panel<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let inner = frame(&self.title, area, buffer);
        for (y, line) in (inner.y..inner.bottom()).zip(&self.lines) {
            buffer.set_line(inner.x, y, line, inner.width);
        }
    }
}

/// Empties an area.
pub(super) struct Clear;

impl Widget for Clear {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        area.intersection(buffer.area).positions().for_each(|at| buffer[at].reset());
    }
}

/// A frame with a curve: one column per number; `most` is full height.
pub(super) struct Curve {
    pub(super) title: String,
    pub(super) numbers: Vec<u64>,
    pub(super) most: u64,
}

impl Widget for Curve {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let inner = frame(&self.title, area, buffer);
        let eighths = u64::from(inner.height) * 8;
        for (x, number) in (inner.x..inner.right()).zip(self.numbers) {
            let mut height =
                u128::from(number) * u128::from(eighths) / u128::from(self.most.max(1));
            for y in (inner.y..inner.bottom()).rev() {
                let level = height.min(8);
                height -= level;
                buffer[(x, y)].set_symbol(LEVELS[level as usize]).set_fg(Color::Green);
            }
        }
    }
}

/// Breaks a text into lines of at most `width` characters, between words if possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let line = lines.last_mut().filter(|line| !line.is_empty());
            let used = line.as_ref().map_or(0, |line| line.chars().count() + 1);
            match line {
                Some(line) if used + rest.len() <= width => {
                    line.push(' ');
                    line.extend(rest.drain(..));
                }
                Some(_) => lines.push(String::new()),
                None => {
                    let first = rest.len().min(width.max(1));
                    if let Some(line) = lines.last_mut() {
                        line.extend(rest.drain(..first));
                    }
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_if_possible() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("extraordinary", 5), ["extra", "ordin", "ary"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_curve_has_one_column_per_number() {
        let area = Rect::new(0, 0, 5, 4);
        let mut buffer = Buffer::empty(area);
        Curve { title: "t".into(), numbers: vec![0, 8, 16], most: 16 }.render(area, &mut buffer);
        let line = |y| (0..5).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert_eq!([line(0), line(1), line(2), line(3)], ["┌t──┐", "│  █│", "│ ██│", "└───┘"]);
    }
}
