//! A value over time, as steps.

use super::{Axis, Canvas, FONT, short};

/// Values of equal spans of time, one after the other.
#[derive(Debug)]
pub struct Timeline {
    /// What the value is.
    pub title: String,
    /// Its unit, as `packets/s`.
    pub unit: &'static str,
    /// When the first span begins: seconds since 1970, UTC.
    pub start: f64,
    /// Seconds of a span.
    pub step: f64,
    /// One for each span.
    pub values: Vec<f64>,
    /// Which of the colours.
    pub colour: usize,
    /// The text of a day, by its number since 1970.
    pub day: fn(u64) -> String,
}

const WIDTH: f64 = 480.0;
const TOP: f64 = 34.0;
const HEIGHT: f64 = 120.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 12.0;
/// Most labels of the time axis.
const LABELS: f64 = 6.0;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Seconds between two labels.
const STEPS: [f64; 21] = [
    0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0,
    1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
];

impl Timeline {
    /// The first and the last second, and where they are in the chart's width, from 0 to 1.
    pub(crate) fn time(&self) -> String {
        let end = self.start + self.values.len() as f64 * self.step;
        format!("{} {end} {:.4} {:.4}", self.start, LEFT / WIDTH, RIGHT / WIDTH)
    }

    /// The chart.
    pub fn svg(&self) -> String {
        let bottom = TOP + HEIGHT;
        let mut canvas = Canvas::sized(WIDTH, bottom + 26.0);
        let most = self.values.iter().copied().fold(0.0, f64::max);
        canvas.text(8.0, 16.0, "bold", &self.title);
        canvas.text(RIGHT, 16.0, "soft end", &format!("{}, at most {}", self.unit, short(most)));
        let y = Axis::new(self.values.iter().copied(), false, bottom, TOP);
        for (tick, text) in y.ticks() {
            canvas.line((LEFT, y.place(tick)), (RIGHT, y.place(tick)), "grid");
            canvas.text(LEFT - 7.0, y.place(tick) + 4.0, "soft end", &text);
        }
        let end = self.values.len() as f64 * self.step;
        let x = |seconds: f64| LEFT + seconds / end.max(f64::MIN_POSITIVE) * (RIGHT - LEFT);
        let mut points = vec![(LEFT, bottom)];
        for (at, &value) in self.values.iter().enumerate() {
            let (from, until) = (at as f64 * self.step, (at + 1) as f64 * self.step);
            points.extend([(x(from), y.place(value)), (x(until), y.place(value))]);
        }
        points.push((RIGHT, bottom));
        canvas.path(&points, &format!("area c{}", self.colour));
        canvas.line((LEFT, bottom), (RIGHT, bottom), "axis");
        for (seconds, text) in self.labels(end) {
            let at = x(seconds);
            let half = text.len() as f64 * FONT * 0.3;
            canvas.line((at, bottom), (at, bottom + 4.0), "axis");
            if (half..WIDTH - half).contains(&at) {
                canvas.text(at, bottom + 18.0, "soft middle", &text);
            }
        }
        canvas.finish(&format!("{} over time", self.title))
    }

    /// Times of the axis: seconds after the start, and text.
    fn labels(&self, end: f64) -> Vec<(f64, String)> {
        let days = STEPS[STEPS.len() - 1] * (end / LABELS / STEPS[STEPS.len() - 1]).ceil();
        let step = STEPS.into_iter().find(|step| end / step <= LABELS).unwrap_or(days);
        let first = (self.start / step).ceil();
        let places = (first as u64..).map(|number| number as f64 * step);
        let places = places.take_while(|place| place - self.start <= end);
        places.map(|place| (place - self.start, self.label(place, step))).collect()
    }

    /// A time in UTC, as exact as its distance to the next: the day at midnight.
    fn label(&self, seconds: f64, step: f64) -> String {
        let thousandths = (seconds * 1000.0).round() as u64;
        let (day, of_day) = (thousandths / DAY, thousandths % DAY);
        let text = format!("{:02}:{:02}", of_day / 3_600_000, of_day / 60_000 % 60);
        let second = of_day as f64 / 1000.0 % 60.0;
        match step {
            3600.0.. if of_day == 0 => (self.day)(day),
            60.0.. => text,
            1.0.. => format!("{text}:{second:02.0}"),
            _ => format!("{text}:{second:06.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(start: f64, step: f64, values: Vec<f64>) -> Timeline {
        Timeline {
            title: "T".into(),
            unit: "packets/s",
            start,
            step,
            values,
            colour: 0,
            day: |day| format!("day {day}"),
        }
    }

    #[test]
    fn times_are_labelled_at_even_places() {
        let labels = |start, step, number: usize| {
            let chart = timeline(start, step, vec![1.0; number]);
            let labels = chart.labels(step * number as f64);
            labels.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(labels(86_399.5, 1.0, 6)[..3], ["00:00:00", "00:00:01", "00:00:02"]);
        assert_eq!(labels(0.0, 60.0, 60)[..2], ["00:00", "00:10"]);
        assert_eq!(labels(0.0, 3600.0, 72)[..3], ["day 0", "12:00", "day 1"]);
        assert_eq!(labels(86_400.0, 86_400.0, 40)[..2], ["day 7", "day 14"]);
        assert_eq!(labels(0.25, 0.25, 2)[..2], ["00:00:00.300", "00:00:00.400"]);
    }

    #[test]
    fn unusual_values_are_drawn() {
        for values in [vec![], vec![0.0], vec![f64::MAX, 0.0]] {
            let svg = timeline(1.7e9, 1.0, values).svg();
            assert!(
                svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"),
                "{svg}"
            );
        }
    }
}
